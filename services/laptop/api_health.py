"""What the api says about itself and everything behind it."""

import asyncio
from collections.abc import Callable
from typing import Final, Self

import httpx

from windlass.services.laptop.supervision.unit import StartFailure

REPORT_SECONDS: Final = 3
GIVE_UP_SECONDS: Final = 120
# What is degraded keeps some tasks waiting and nobody from submitting them: an open breaker, a queue left to others.
GOOD_ENOUGH: Final = frozenset({"healthy", "degraded"})
KEY_REFUSED: Final = (
    "the first key was revoked or has expired, and stays so: name another one with WINDLASS_API_KEY; or, where none "
    "was named, remove the file admin_key in the data directory, for a new one"
)


class ApiHealth:
    def __init__(self, url: str, key: str) -> None:
        # Never through a proxy from the environment: it is our own process, next door.
        self._client = httpx.AsyncClient(
            base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=5, trust_env=False
        )

    async def is_ready(self) -> bool:
        try:
            return (await self._client.get("/health/ready")).status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False

    async def is_live(self) -> bool:
        """Whether its event loop runs; on a connection of its own, so that one which is stuck is not the reason."""
        try:
            answer = await self._client.get("/health/live", headers={"Connection": "close"})
        except httpx.HTTPError:
            return False
        return answer.status_code == httpx.codes.OK

    async def until_workers(self, are_there: Callable[[set[int]], bool]) -> None:
        """Returns when the processes that take tasks are those that are waited for."""
        while True:
            if are_there(await self._workers()):
                return
            await asyncio.sleep(0.1)

    async def _workers(self) -> set[int]:
        try:
            listed = (await self._client.get("/api/v1/workers")).raise_for_status().json()["items"]
        except (httpx.HTTPError, ValueError, KeyError):
            return set()
        return {worker["pid"] for worker in listed if worker["state"] == "active"}

    async def until_healthy(self, say: Callable[[str], None]) -> None:
        """Returns when a task that is submitted now will be carried out; says what is missing until then."""
        try:
            async with asyncio.timeout(GIVE_UP_SECONDS):
                await self._until_nothing_is_missing(say)
        except TimeoutError:
            missing = ", ".join(await self._missing())
            raise StartFailure(f"not healthy after {GIVE_UP_SECONDS} s: {missing}") from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._client.aclose()

    async def _until_nothing_is_missing(self, say: Callable[[str], None]) -> None:
        clock = asyncio.get_running_loop().time
        reported: list[str] = []
        reported_at = clock()
        while missing := await self._missing():
            if clock() - reported_at > REPORT_SECONDS or (missing != reported and reported):
                say(f"waiting for {', '.join(missing)}")
                reported, reported_at = missing, clock()
            await asyncio.sleep(0.1)

    async def _missing(self) -> list[str]:
        """The components that do not work yet, in the words of `GET /health`."""
        try:
            health = (await self._client.get("/health")).json()
            if "components" not in health:
                await self._refuse_a_key_that_does_not_open()
            states = {name: component["status"] for name, component in health["components"].items()}
        except (httpx.HTTPError, ValueError, KeyError, TypeError):
            return ["the api's /health"]
        if health["status"] == "healthy":
            return []
        return [f"{name} ({state})" for name, state in states.items() if state not in GOOD_ENOUGH]

    async def _refuse_a_key_that_does_not_open(self) -> None:
        """Nothing that could be waited for makes it open again."""
        if (await self._client.get("/api/v1/queues/status")).status_code == httpx.codes.UNAUTHORIZED:
            raise StartFailure(KEY_REFUSED)
