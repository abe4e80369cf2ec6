"""Tells whoever asked for it that a job has ended, also when the job was ordered before a restart."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from windlass.services.fake_providers.books import Books
from windlass.services.fake_providers.job import Job

TIMEOUT_SECONDS = 15
AT_ONCE = 16
"""So many are told at the same time; jobs that end together would else open a connection each."""


@dataclass(frozen=True)
class Callback:
    url: str
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


class Teller:
    """How one provider tells an end; none where it was given no address, or does not tell such an end."""

    def __init__(self, end: Callable[[Job], Callback | None], forged: Callable[[Job], Callback | None]) -> None:
        self.end = end
        self.forged = forged


class Callbacks:
    def __init__(self, books: Books) -> None:
        self._books = books
        self._tellers: dict[str, Teller] = {}
        self._telling: dict[str, asyncio.Task[None]] = {}
        self._http = httpx.AsyncClient(timeout=TIMEOUT_SECONDS, trust_env=False)
        self._turns = asyncio.Semaphore(AT_ONCE)

    def tell_for(self, provider: str, teller: Teller) -> None:
        self._tellers[provider] = teller

    def take_up(self) -> None:
        """What was ordered from an earlier process."""
        for job in self._books.untold():
            self.expect(job)

    def forge(self, job: Job) -> None:
        """Somebody else, who has got hold of the address, tells an end that is none."""
        if teller := self._tellers.get(job.provider):
            self._start(f"{job.job_id} forged", self._post(job, teller.forged(job)))

    def expect(self, job: Job) -> None:
        """To be called whenever more is known about a job's end; it is told once all the same."""
        teller = self._tellers.get(job.provider)
        if teller is not None and job.ends_at is not None and job.job_id not in self._telling:
            self._start(job.job_id, self._tell_the_end(job, teller))

    async def close(self) -> None:
        for task in list(self._telling.values()):
            task.cancel()
        await asyncio.gather(*self._telling.values(), return_exceptions=True)
        await self._http.aclose()

    def _start(self, name: str, telling: Coroutine[Any, Any, None]) -> None:
        self._telling[name] = task = asyncio.create_task(telling)
        task.add_done_callback(lambda _: self._telling.pop(name, None))

    async def _tell_the_end(self, job: Job, teller: Teller) -> None:
        assert job.ends_at is not None
        await asyncio.sleep(max(job.ends_at - time.time(), 0) + job.behaviour.number("callback-late", 0))
        ended = self._books.find(job.provider, job.job_id)
        if ended is None or ended.ended is not None or not self._books.begin_telling(job):
            return
        if "no-callback" not in job.behaviour:
            for _ in range(2 if "callback-twice" in job.behaviour else 1):
                await self._post(ended, teller.end(ended))

    async def _post(self, job: Job, callback: Callback | None) -> None:
        if callback is None:
            return
        try:
            async with self._turns:
                answer = await self._http.post(callback.url, json=callback.body, headers=dict(callback.headers))
            status = str(answer.status_code)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            status = type(error).__name__
        self._books.note_callback(job, callback.url, status)
