"""Gathers what many threads want written and hands it on together: whatever came while the last call was under way
goes as one call, so that a busy process pays one commit for many tasks. Where somebody's lock holds a call up, what it
carried goes on beside the next calls, once more together and then one by one: only who is locked waits."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, Protocol, TypeVar

from windlass.shared import db
from windlass.shared.backoff import Backoff
from windlass.shared.errors import words_of

log = logging.getLogger("actors.writer")

MOST_PER_CALL = 200

GATHER_SECONDS = 0.001
GATHER_TIMES = 4
"""A busy process waits so often for a moment, at most, before its next call: nearly all that a call costs, here and in
Postgres, it costs once, whether it carries two tasks or twenty."""

BUSY_SECONDS = 0.03
"""Who was answered longer ago than this does not come back together with the others: waiting for them would only put
tasks in step, so that the slots of a provider all come free in one moment and none in between."""

OFFER_AGAIN_SECONDS = 0.05
OFFER_AGAIN_WHEN_AWAY_SECONDS = 0.5

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Told_contra = TypeVar("Told_contra", contravariant=True)


class Reply(Protocol[Told_contra]):
    """Who is told what became of an item, on the loop."""

    def give(self, answer: Told_contra, /) -> None: ...

    def fail(self, error: BaseException, /) -> None: ...


class GroupCommit(Generic[Item, Answer]):
    """Items come from any thread, which goes on at once; the calls are made on one event loop.

    `prepare` has the last word about an item before it is first offered. `offer` is the call for those that were held
    up, which waits only briefly for a lock. What `apart` tells apart by numbers is never in one call, and goes in their
    order.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        call: Callable[[Sequence[Item]], Awaitable[Sequence[Answer]]],
        *,
        offer: Callable[[Sequence[Item]], Awaitable[Sequence[Answer]]],
        prepare: Callable[[Item], Item] = lambda item: item,
        apart: Callable[[Item], int] = lambda _: 0,
    ) -> None:
        self._loop = loop
        self._call = call
        self._offer = offer
        self._prepare = prepare
        self._apart = apart
        self._gathered: deque[tuple[Item, Reply[Answer]]] = deque()
        self._held_up: deque[tuple[Item, Reply[Answer]]] = deque()
        self._any_held_up = asyncio.Event()
        self._wake = asyncio.Event()
        self._woken = False
        self._last = 1
        self._answered_at = 0.0

    def hand_over(self, item: Item, reply: Reply[Answer]) -> None:
        """From any thread."""
        self._gathered.append((item, reply))
        if not self._woken:  # one wake-up serves everything that gathers before the loop looks
            self._woken = True
            self._loop.call_soon_threadsafe(self._wake.set)

    def wake(self) -> None:
        """From the loop itself: there is something else to be done before the next call."""
        self._wake.set()

    async def woken(self) -> None:
        await self._wake.wait()
        self._wake.clear()
        self._woken = False

    async def flush(self) -> None:
        while self._gathered:
            await self._wait_for_more()
            self._last = min(len(self._gathered), MOST_PER_CALL)
            # Threads append meanwhile; a deque's ends are safe to use without a lock.
            taken = [self._gathered.popleft() for _ in range(self._last)]
            batch = [(self._prepare(item), reply) for item, reply in taken]
            for group in self._groups(batch):
                await self._write(group)
            self._answered_at = self._loop.time()

    async def offer_one_by_one(self) -> None:
        """Offers what was held up until it is accepted or refused: together, for a lock is often gone by then, and else
        each alone. Until cancelled."""
        while True:
            await self._any_held_up.wait()
            pause = OFFER_AGAIN_SECONDS
            await self._offer_together()
            for _ in range(len(self._held_up)):
                item, reply = self._held_up.popleft()
                try:
                    (answer,) = await self._offer([item])
                    reply.give(answer)
                except db.AWAY_OR_BUSY as error:
                    self._held_up.append((item, reply))
                    if not isinstance(error, db.CONTENDED):
                        pause = OFFER_AGAIN_WHEN_AWAY_SECONDS
                        break
                except Exception as error:  # noqa: BLE001 - recorded by who is told
                    reply.fail(error)
            if self._held_up:
                await asyncio.sleep(pause)
            else:
                self._any_held_up.clear()

    async def _offer_together(self) -> None:
        waiting = [self._held_up.popleft() for _ in range(len(self._held_up))]
        for group in self._groups(waiting):
            try:
                answers = None if len(group) == 1 else await self._offer([item for item, _ in group])
            except Exception:  # noqa: BLE001 - met again by whom it is about, and recorded there
                answers = None
            if answers is None:
                self._held_up.extend(group)
                continue
            for (_, reply), answer in zip(group, answers, strict=True):
                reply.give(answer)

    def _groups(self, batch: Sequence[tuple[Item, Reply[Answer]]]) -> list[list[tuple[Item, Reply[Answer]]]]:
        groups: dict[int, list[tuple[Item, Reply[Answer]]]] = {}
        for each in batch:
            groups.setdefault(self._apart(each[0]), []).append(each)
        return [groups[number] for number in sorted(groups)]

    async def _wait_for_more(self) -> None:
        """Until as many have come as the last time: the threads that were answered together come back together. Who
        came alone goes alone, and at once."""
        if self._loop.time() - self._answered_at > BUSY_SECONDS:
            return
        for _ in range(GATHER_TIMES):
            if len(self._gathered) >= self._last:
                return
            await asyncio.sleep(GATHER_SECONDS)

    async def _write(self, batch: list[tuple[Item, Reply[Answer]]]) -> None:
        """Repeats while Postgres is away or busy; a value that cannot be stored is found by replaying one by one, and
        so is what somebody keeps locked, but without holding up what comes next."""
        backoff = Backoff(first_seconds=0.05, longest_seconds=1)
        while True:
            try:
                answers = await self._call([item for item, _ in batch])
            except db.HELD_UP as error:
                self._put_aside(batch, error)
                return
            except db.AWAY_OR_BUSY as error:
                pause = backoff.pause()
                log.warning("writing again in %.2f s (%s)", pause, words_of(error))
                await asyncio.sleep(pause)
            except Exception as error:  # noqa: BLE001 - recorded by who is told
                if len(batch) > 1 and isinstance(error, db.UNSTORABLE):
                    for each in batch:
                        await self._write([each])
                    return
                for _, reply in batch:
                    reply.fail(error)
                return
            else:
                for (_, reply), answer in zip(batch, answers, strict=True):
                    reply.give(answer)
                return

    def _put_aside(self, batch: list[tuple[Item, Reply[Answer]]], error: BaseException) -> None:
        log.warning("somebody keeps a row locked: %d writes go on one by one (%s)", len(batch), words_of(error))
        self._held_up.extend(batch)
        self._any_held_up.set()
