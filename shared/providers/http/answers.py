"""What a provider's answer means for a task: HTTP statuses and broken connections as errors of our own vocabulary."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from windlass.shared.errors import (
    ContentRejected,
    Forbidden,
    InvalidInput,
    NetworkTimeout,
    NotFound,
    QuotaExhausted,
    RateLimited,
    ServiceUnavailable,
    TaskError,
    Unauthorized,
)
from windlass.shared.providers.base import OrderUnknown
from windlass.shared.scrubbing import scrub

LONGEST_EXCERPT = 300

_MODERATION = re.compile(
    r"moderat|nsfw|guardrail|flagged|content[ _-]?polic|safety[ _-](?:system|filter|check)|banned (?:prompt|word)",
    re.IGNORECASE,
)
_TAG = re.compile(r"<(?:style|script)\b.*?</(?:style|script)>|<[^<>]{0,2000}>", re.IGNORECASE | re.DOTALL)

_BY_STATUS: dict[int, type[TaskError]] = {
    401: Unauthorized,
    402: QuotaExhausted,
    403: Forbidden,
    404: NotFound,
    408: NetworkTimeout,
    410: NotFound,
    425: ServiceUnavailable,
    451: ContentRejected,
}

_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)


@dataclass(frozen=True)
class Said:
    """What an error's body says in words, and by which code."""

    message: str
    code: str | int | None = None


def error_of(provider: str, response: httpx.Response, text: str) -> TaskError:
    """The error that an answer other than 2xx stands for; `text` is its body, or the beginning of it."""
    said = read_words(text)
    if response.is_redirect:
        said = Said("a redirect, which is not followed; check its base_url")
    return error_of_status(provider, response.status_code, said, retry_after=retry_after_of(response.headers))


def error_of_status(
    provider: str, status: int, said: Said, *, retry_after: float | None = None, verb: str = "answered"
) -> TaskError:
    """The same for a status that stands in a body: in an envelope, in the middle of a stream, as a job's end."""
    message = f"{provider} {verb} {status}" + (f": {said.message}" if said.message else "")
    details: dict[str, Any] = {"status": status}
    if said.code is not None and said.code != status:
        details["code"] = said.code
    if status == 429 or (status == 402 and retry_after is not None):
        return RateLimited(message, retry_after=retry_after, **details)
    if status in {400, 403, 422} and _MODERATION.search(f"{said.code} {said.message}"):
        return ContentRejected(message, **details)
    if 400 <= status < 500:
        return _BY_STATUS.get(status, InvalidInput)(message, **details)
    return ServiceUnavailable(message, **details)


def error_of_transport(provider: str, error: Exception) -> TaskError:
    """For `httpx.HTTPError` and what building a request raises: one that got no answer, or half of one."""
    if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol | httpx.LocalProtocolError | UnicodeError):
        return unwritable(provider)
    sent = not isinstance(error, _NEVER_SENT)
    what = "did not answer in time" if isinstance(error, httpx.TimeoutException) else "lost the connection"
    if not sent:
        what = "could not be reached"
    words = scrub(str(error))[:LONGEST_EXCERPT]
    return NetworkTimeout(f"{provider} {what}" + (f": {words}" if words else ""), sent=sent)


def unwritable(provider: str) -> TaskError:
    """For a request that never went out. What was wrong is left out: it quotes the header or address, key and all."""
    return InvalidInput(f"no request to {provider} could be written; its address or its key is malformed")


def not_understood(provider: str, status: int, text: str) -> TaskError:
    """For an answer that claims success and does not have the shape that was agreed on."""
    message = f"{provider} answered {status} with something else than expected: {_excerpt(text)}"
    return ServiceUnavailable(message, status=status)


def may_have_been_taken(error: TaskError) -> bool:
    """Whether an order that failed so may have arrived all the same. A refusal or a failed connect leaves no doubt;
    a 408, 500, 502 or 504, a connection lost after sending or an unreadable 2xx does."""
    status = error.details.get("status")
    if status is None:
        return bool(error.details.get("sent", False))
    return status != 503 and (status == 408 or not 300 <= status < 500)


@contextmanager
def placing_an_order() -> Iterator[None]:
    """Around the request that costs money and the reading of its answer: doubt is raised as `OrderUnknown`."""
    try:
        yield
    except TaskError as error:
        if may_have_been_taken(error):
            raise OrderUnknown(error.message) from error
        raise


def retry_after_of(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Seconds, given as such or as a date: by the provider's own clock where it tells it."""
    value = headers.get("retry-after", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        until = _date(value)
        since = now or _date(headers.get("date", "")) or datetime.now(UTC)
        seconds = math.nan if until is None else (until - since).total_seconds()
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def read_words(text: str) -> Said:
    """The shapes that errors come in: `{"error": {"message", "code"}}`, `{"error": "…", "code"}`, `{"msg", "code"}`,
    `{"message"}`, `{"detail"}`; of anything else, the beginning."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return Said(_excerpt(text))
    if not isinstance(body, dict):
        return Said(_excerpt(text))
    inner = body["error"] if isinstance(body.get("error"), dict) else body
    words = next((inner[k] for k in ("message", "msg", "error", "detail") if isinstance(inner.get(k), str)), text)
    code = inner.get("code")
    # A refusal by moderation is often told by what comes with the message: reasons, flagged input.
    metadata = inner.get("metadata")
    extra = f" {json.dumps(metadata, ensure_ascii=False)}" if isinstance(metadata, dict) and metadata else ""
    return Said(_excerpt(words + extra), code if isinstance(code, str | int) else None)


def _excerpt(text: str) -> str:
    words = " ".join(_TAG.sub(" ", text[: 20 * LONGEST_EXCERPT]).split())
    return scrub(words if len(words) <= LONGEST_EXCERPT else words[: LONGEST_EXCERPT - 1] + "…")


def _date(value: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
