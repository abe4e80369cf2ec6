"""Calls of the store that many attempts make alike: what gathers while the last one is under way goes as one, in one
commit, and each is answered for itself."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from windlass.services.actors.worker.writing.group_commit import GroupCommit
from windlass.shared.db import Database
from windlass.shared.metrics.services import WRITE_BATCH

Item_contra = TypeVar("Item_contra", contravariant=True)
Answer = TypeVar("Answer")
Answer_co = TypeVar("Answer_co", covariant=True)


class CallOfMany(Protocol[Item_contra, Answer_co]):
    """An intent of the store that takes many: one answer for each, and a repeat is harmless. It waits briefly for a
    lock if it is told to."""

    async def __call__(
        self, db: Database, items: Sequence[Item_contra], /, *, briefly: bool = False
    ) -> Sequence[Answer_co]: ...


@dataclass(frozen=True)
class Asked:
    """What has not begun by then never will: who asked has given up, or asked again."""

    item: Any
    until: float


class Promise(Generic[Answer]):
    """Kept on the writer's loop, waited for anywhere."""

    def __init__(self) -> None:
        self.future: Future[Answer] = Future()
        self.future.set_running_or_notify_cancel()

    def give(self, answer: Any) -> None:
        if isinstance(answer, TimeoutError):
            self.future.set_exception(answer)
        else:
            self.future.set_result(answer)

    def fail(self, error: BaseException) -> None:
        self.future.set_exception(error)


class GatheredCalls:
    """One group commit for each kind of call, made when it is first asked for. `make` makes a call, in its turn."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        make: Callable[[Callable[[Database], Awaitable[Sequence[Any]]]], Awaitable[Sequence[Any]]],
    ) -> None:
        self._loop = loop
        self._make = make
        self._lock = threading.Lock()
        self._kinds: dict[CallOfMany[Any, Any], GroupCommit[Asked, Any]] = {}
        self._new: asyncio.Queue[GroupCommit[Asked, Any]] = asyncio.Queue()

    def begin(self, call: CallOfMany[Any, Answer], item: Any, *, patience_seconds: float) -> "Future[Answer]":
        """From any thread. One that does not begin in time fails with `TimeoutError`."""
        promise: Promise[Answer] = Promise()
        self._of(call).hand_over(Asked(item, time.monotonic() + patience_seconds), promise)
        return promise.future

    async def serve(self) -> None:
        async with asyncio.TaskGroup() as serving:
            while True:
                kind = await self._new.get()
                serving.create_task(_serve(kind))
                serving.create_task(kind.offer_one_by_one())

    def _of(self, call: CallOfMany[Any, Any]) -> GroupCommit[Asked, Any]:
        with self._lock:
            if (kind := self._kinds.get(call)) is None:
                # Each waits briefly for a lock, for the others' calls wait meanwhile: who is locked comes again alone.
                kind = GroupCommit(
                    self._loop, lambda asked: self._call(call, asked), offer=lambda asked: self._call(call, asked)
                )
                self._kinds[call] = kind
                self._loop.call_soon_threadsafe(self._new.put_nowait, kind)
        return kind

    async def _call(self, call: CallOfMany[Any, Any], asked: Sequence[Asked]) -> Sequence[Any]:
        return await self._make(lambda database: _those_in_time(call, database, asked))


async def _serve(kind: GroupCommit[Asked, Any]) -> None:
    while True:
        await kind.woken()
        await kind.flush()


async def _those_in_time(call: CallOfMany[Any, Any], database: Database, asked: Sequence[Asked]) -> Sequence[Any]:
    now = time.monotonic()
    in_time = [each.item for each in asked if now < each.until]
    answers = iter(await call(database, in_time, briefly=True) if in_time else ())
    if in_time:
        WRITE_BATCH.labels("gathered").observe(len(in_time))
    return [next(answers) if now < each.until else TimeoutError() for each in asked]
