"""One try: signed as Standard Webhooks has it, sent through the guarded network, and what came back, briefly."""

import asyncio
import re
import ssl
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal
from uuid import UUID

import httpx
from standardwebhooks import Webhook

from windlass.shared.errors import Forbidden, words_of
from windlass.shared.providers.http.addresses import Allowances
from windlass.shared.providers.http.network import open_client
from windlass.shared.scrubbing import scrub

LONGEST_EXCERPT = 1024
EXCERPT_SECONDS = 2.0
LONGEST_RETRY_AFTER = 86_400.0
GONE = 410

Outcome = Literal["delivered", "refused", "unreachable", "forbidden"]


@dataclass(frozen=True)
class Answer:
    """What an endpoint said, or why it said nothing."""

    outcome: Outcome
    seconds: float
    status_code: int | None = None
    excerpt: str | None = None
    error: str | None = None
    retry_after: float | None = None
    wants_no_more: bool = False

    @property
    def is_delivered(self) -> bool:
        return self.outcome == "delivered"


def headers_of(delivery_id: UUID, body: str, secrets: Sequence[str], now: datetime) -> dict[str, str]:
    """With a signature for each secret, so that the receiver can change to the new one when it likes."""
    name = str(delivery_id)
    return {
        "webhook-id": name,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(Webhook(each).sign(name, now, body) for each in secrets),
        "content-type": "application/json",
    }


async def send(
    url: str,
    delivery_id: UUID,
    body: str,
    secrets: Sequence[str],
    *,
    allowances: Allowances,
    tls: ssl.SSLContext,
    seconds: float,
    owner: str | None = None,
) -> Answer:
    """The name is resolved and judged anew, and a redirect is followed nowhere. The time is for the whole of it."""
    headers = headers_of(delivery_id, body, secrets, datetime.now(UTC))
    began = time.monotonic()
    try:
        async with (
            asyncio.timeout(seconds),
            open_client(allowances, timeout_seconds=seconds, tls=tls, owner=owner) as http,
            http.stream("POST", url, content=body.encode(), headers=headers) as response,
        ):
            excerpt = await beginning_of(response)  # however it ends: the answer is there
        return answer_of(response, excerpt, time.monotonic() - began)
    except Forbidden as error:
        return Answer("forbidden", time.monotonic() - began, error=error.message)
    except TimeoutError:
        return Answer("unreachable", time.monotonic() - began, error=f"no answer within {seconds:g} s")
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        said = scrub(words_of(error))
        return Answer("unreachable", time.monotonic() - began, error=f"not reached: {said}"[:300])


async def beginning_of(response: httpx.Response) -> str:
    """However much more it has to say, and whether it comes to an end with it or not."""
    got = b""
    with suppress(TimeoutError, httpx.HTTPError):
        async with asyncio.timeout(EXCERPT_SECONDS):
            async for piece in response.aiter_raw():
                got += piece
                if len(got) >= LONGEST_EXCERPT:
                    break
    text = got[:LONGEST_EXCERPT].decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
    while len(text.encode()) > LONGEST_EXCERPT:  # what could not be read has become longer
        text = text[:-1]
    return text


def answer_of(response: httpx.Response, excerpt: str, seconds: float) -> Answer:
    """Any 2xx is delivered, and nothing else is. A receiver may also say `webhook-delivery: disable`."""
    status = response.status_code
    wants_no_more = status == GONE or response.headers.get("webhook-delivery", "").strip().lower() == "disable"
    if response.is_success and not wants_no_more:
        return Answer("delivered", seconds, status, excerpt)
    error = f"the endpoint answered {status}"
    if response.is_redirect:
        error += ": a redirect is not followed"
    waits = retry_after(response.headers.get("retry-after"), datetime.now(UTC))
    return Answer("refused", seconds, status, excerpt, error, waits, wants_no_more)


def retry_after(said: str | None, now: datetime) -> float | None:
    """Seconds or a date, within a day; none for what is neither."""
    if said is None:
        return None
    if re.fullmatch(r"\d{1,9}", said.strip()):
        return min(float(said), LONGEST_RETRY_AFTER)
    try:
        until = parsedate_to_datetime(said)
    except (TypeError, ValueError):
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return min(max((until - now).total_seconds(), 0.0), LONGEST_RETRY_AFTER)
