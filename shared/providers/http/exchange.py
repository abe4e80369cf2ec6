"""One request to a provider and its answer as JSON: bounded in time and size, told as an error where it fails."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import httpx

from windlass.shared.errors import NetworkTimeout
from windlass.shared.providers.http.answers import error_of, error_of_transport, not_understood, unwritable
from windlass.shared.scrubbing import SCRUBBED

LARGEST_ANSWER_BYTES = 5_000_000


async def ask(
    http: httpx.AsyncClient,
    provider: str,
    method: str,
    url: str,
    *,
    key: str | None = None,
    body: Any = None,
    query: Mapping[str, str | int] | None = None,
) -> Any:
    """The answer's JSON. Anything but a 2xx with JSON in it is raised as a `TaskError`."""
    headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    text = await send(http, provider, method, url, key=key, headers=headers, json=body, params=query)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise not_understood(provider, 200, text) from error


async def send(
    http: httpx.AsyncClient, provider: str, method: str, url: str, *, key: str | None = None, **request: Any
) -> str:
    """The text of a 2xx answer to a request made as httpx makes them; without the key, should it be quoted there."""
    try:
        written = http.build_request(method, url, **request)
    except (httpx.InvalidURL, ValueError, TypeError, RecursionError) as error:
        raise unwritable(provider) from error
    try:
        async with asyncio.timeout(_longest(http.timeout)):
            response, text = await _read(http, written)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise error_of_transport(provider, error) from error
    except TimeoutError as error:
        raise NetworkTimeout(f"{provider} did not answer in time", sent=True) from error
    if key:
        text = text.replace(key, SCRUBBED)
    if not response.is_success:
        raise error_of(provider, response, text)
    return text


async def _read(http: httpx.AsyncClient, request: httpx.Request) -> tuple[httpx.Response, str]:
    """What is longer than an answer may be is cut off, and then not understood."""
    response = await http.send(request, stream=True)
    try:
        parts = bytearray()
        async for part in response.aiter_bytes():
            parts += part
            if len(parts) > LARGEST_ANSWER_BYTES:
                break
    finally:
        await response.aclose()
    return response, parts[:LARGEST_ANSWER_BYTES].decode(errors="replace")


def _longest(timeout: httpx.Timeout) -> float | None:
    """The client's own times are for each step: an answer that comes in drops would never exceed them."""
    if timeout.connect is None or timeout.read is None:
        return None
    return timeout.connect + timeout.read
