"""Attempts that hold no thread: each is a task of the actors' loop, in a context of its own."""

import asyncio
import contextvars
import threading
from collections.abc import Mapping
from concurrent.futures import wait
from uuid import UUID

from windlass.services.actors.worker.coroutines.belongings import OWNER, Belongings
from windlass.services.actors.worker.coroutines.loop import ActorsLoop
from windlass.services.actors.worker.executor import AsyncActor, Executor, Running


class OnTheLoop:
    """An attempt, and what it has begun."""

    def __init__(self, running: Running) -> None:
        self.running = running
        self.belongings = Belongings()
        self.task: asyncio.Task[None] | None = None

    @property
    def task_id(self) -> UUID:
        return self.running.context.task_id


class LoopRunner:
    """Takes granted attempts from any thread, and runs each from its taking up to its end."""

    def __init__(
        self, executor: Executor, loop: ActorsLoop, actors: Mapping[str, AsyncActor], *, patience_seconds: float
    ) -> None:
        self._executor = executor
        self._loop = loop
        self._actors = actors
        self._patience_seconds = patience_seconds
        self._under_way: dict[UUID, OnTheLoop] = {}
        self._is_given_up = False

    def __len__(self) -> int:
        return len(self._under_way)

    def run(self, running: Running) -> None:
        running.kind = "loop"
        one = OnTheLoop(running)
        self._under_way[running.context.task.claim_token] = one
        if self._is_given_up:  # looked at when it is under way: who gives up looks at those after it
            self._take_away(one)
            return
        self._loop.call_soon_threadsafe(self._begin, one, context=contextvars.Context())

    def of(self, belongings: Belongings | None) -> UUID | None:
        """The task whose attempt has begun them."""
        return next((one.task_id for one in list(self._under_way.values()) if one.belongings is belongings), None)

    def hand_back_all_but(self, culprit: Belongings | None) -> None:
        """From another thread: the loop is stuck and its gate closed, so that none of them ever goes on. Who still has
        a thread at work is handed back when that is over, and else left to the guardian. Who is granted later is handed
        back at once: what was asked for before is still answered."""
        self._is_given_up = True
        siblings = [one for one in list(self._under_way.values()) if one.belongings is not culprit]
        on_threads = [one for one in siblings if one.belongings.at_work_on_threads()]
        for one in siblings:
            if one not in on_threads:
                self._take_away(one)
        if on_threads:
            threading.Thread(target=self._hand_back_later, args=(on_threads,), name="handing-back", daemon=True).start()

    def _begin(self, one: OnTheLoop) -> None:
        OWNER.set(one.belongings)
        one.task = self._loop.attempt(self._attempt(one), one.belongings)

    async def _attempt(self, one: OnTheLoop) -> None:
        running = one.running
        if not self._executor.take_up(running):
            self._put_away(one)
            return
        exception: BaseException | None = None
        try:
            await self._executor.run_async(running, self._actors[running.context.task.actor])
        except BaseException as error:  # noqa: BLE001 - recorded as the attempt's end
            exception = error
        if self._put_away(one):
            self._executor.end(running, exception)

    def _put_away(self, one: OnTheLoop) -> bool:
        """Whether its end is still to be told: once, by whoever comes first."""
        return self._under_way.pop(one.running.context.task.claim_token, None) is not None

    def _take_away(self, one: OnTheLoop) -> None:
        if self._put_away(one):
            self._executor.take_away(one.running)

    def _hand_back_later(self, those: list[OnTheLoop]) -> None:
        for one in those:
            if not wait(one.belongings.at_work_on_threads(), self._patience_seconds).not_done:
                self._take_away(one)
