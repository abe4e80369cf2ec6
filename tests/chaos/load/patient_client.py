"""The API as clients use it who are cut off again and again: each call has its time, and is made until answered."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import httpx

from tests.support.installation import KEY

CALL_SECONDS = 6.0
CONNECTIONS = 24


class NoAnswer(Exception):
    """A call that is made once got none: whether it was heard, nobody can say."""


class PatientClient:
    """`api_urls` are all the same API; a call goes to any of them."""

    def __init__(self, api_urls: Sequence[str], dice: random.Random, key: str = KEY) -> None:
        self.api_urls = list(api_urls)
        self._dice = dice
        self.key = key
        self.oddities: list[str] = []
        # A call waits for its turn as long as it takes: that time is not the network's.
        timeout = httpx.Timeout(CALL_SECONDS, pool=None)
        limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS, keepalive_expiry=5)
        headers = {"Authorization": f"Bearer {key}"}
        self._http = httpx.AsyncClient(headers=headers, timeout=timeout, limits=limits, trust_env=False)

    async def close(self) -> None:
        await self._http.aclose()

    async def once(self, method: str, path: str, **request: Any) -> httpx.Response:
        """One try; an answer that only says "not now" is none."""
        url = f"{self._dice.choice(self.api_urls)}/api/v1{path}"
        try:
            response = await self._http.request(method, url, **request)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise NoAnswer(type(error).__name__) from error
        if response.status_code >= 500:
            if response.status_code != 503:
                self.oddities.append(f"{method} {path} was answered with {response.status_code}: {response.text[:200]}")
            raise NoAnswer(str(response.status_code))
        return response

    async def until_answered(self, method: str, path: str, **request: Any) -> tuple[httpx.Response, int]:
        """The answer, and how many tries had none before it."""
        tries = 0
        while True:
            try:
                response = await self.once(method, path, **request)
                if not _is_in_flight(response):
                    return response, tries
            except NoAnswer:
                tries += 1
            await asyncio.sleep(self._dice.uniform(0.2, 1.0))


def _is_in_flight(response: httpx.Response) -> bool:
    return response.status_code == 409 and "idempotency-key-in-flight" in response.text
