"""Providers that call back when a job has ended. Nothing they say is believed: it wakes the attempt, which asks."""

import hashlib
import hmac
import logging
from typing import Any

from litestar import Request, post
from litestar.datastructures import State
from litestar.params import FromPath

from windlass.services.api.access.auth import bearer, count_failure
from windlass.services.api.http.bodies import field_problem, read_json
from windlass.services.api.http.errors import Problem
from windlass.services.api.media.callback_jobs import job_of
from windlass.shared.scrubbing import redact
from windlass.shared.settings import Settings
from windlass.shared.store import orders

log = logging.getLogger("api")

LARGEST_BYTES = 256_000

Calling = Request[Any, Any, State]


@post("/callbacks/{token:str}", public=True, any_query=True, status_code=200, request_max_body_size=LARGEST_BYTES)
async def hear_by_token(request: Calling, state: State, token: FromPath[str]) -> dict[str, Any]:
    """For the provider of one job: the address that came with the order is the right to call it."""
    callback_hash = hashlib.sha256(token.encode()).digest()
    provider = await orders.provider_of_callback(state.pool, callback_hash)
    if provider is None:
        raise not_ours(request)
    body = await read_callback(request)
    job_id = job_of(state.settings, provider, body)
    await orders.hear(state.pool, redact(body), callback_hash=callback_hash, job_id=job_id)
    return {}


@post(
    "/callbacks/provider/{name:str}",
    public=True,
    any_query=True,
    status_code=200,
    request_max_body_size=LARGEST_BYTES,
)
async def hear_by_job(request: Calling, state: State, name: FromPath[str]) -> dict[str, Any]:
    """For a provider that calls one address for all jobs, with the key that was agreed with it as bearer token."""
    if not holds_key(state.settings, name, bearer(request.headers.get("authorization", ""))):
        raise not_ours(request)
    body = await read_callback(request)
    job_id = job_of(state.settings, name, body)
    if job_id is None or await orders.hear(state.pool, redact(body), provider=name, job_id=job_id) is None:
        log.info("%s called back about a job that is not ours", name)
        raise nothing_here()
    return {}


async def read_callback(request: Calling) -> dict[str, Any]:
    body = await read_json(request, largest_bytes=LARGEST_BYTES)
    if not isinstance(body, dict):
        raise field_problem("", "invalid-callback", "a callback is a JSON object")
    return body


def holds_key(settings: Settings, provider: str, sent: str | None) -> bool:
    expected = settings.callback_key_of(provider) if provider in settings.providers else None
    return bool(expected and sent) and hmac.compare_digest(str(sent).encode(), str(expected).encode())


def not_ours(request: Calling) -> Problem:
    """Says the same whatever was wrong; who only guesses is told to wait."""
    count_failure(request, "too many calls that mean nothing here came from your address; try again in {seconds} s")
    return nothing_here()


def nothing_here() -> Problem:
    return Problem(404, "not-found", "there is nothing here")


HANDLERS = [hear_by_token, hear_by_job]
