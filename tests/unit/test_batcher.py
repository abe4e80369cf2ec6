"""The batcher's patience: who comes with others waits a moment for them, who comes alone goes at once."""

import asyncio
from collections.abc import Sequence

from services.actors.batcher import GATHER_SECONDS, Batcher, Reply


def test_those_who_were_answered_together_go_together_the_next_time() -> None:
    assert calls_made(came_last_time=2, late_by_seconds=GATHER_SECONDS / 2) == [["one", "another"]]


def test_who_came_alone_goes_alone_and_at_once() -> None:
    assert calls_made(came_last_time=1, late_by_seconds=GATHER_SECONDS / 2) == [["one"], ["another"]]


def test_nobody_is_waited_for_very_long() -> None:
    assert calls_made(came_last_time=2, late_by_seconds=0.5) == [["one"], ["another"]]


def calls_made(*, came_last_time: int, late_by_seconds: float) -> list[list[str]]:
    calls: list[list[str]] = []

    async def call(items: Sequence[str]) -> Sequence[str]:
        calls.append(list(items))
        return items

    async def gather() -> None:
        loop = asyncio.get_running_loop()
        batcher: Batcher[str, str] = Batcher(loop, call)
        batcher._last = came_last_time
        batcher._gathered.append(("one", Reply()))
        late = asyncio.Event()

        def come_late() -> None:
            batcher._gathered.append(("another", Reply()))
            late.set()

        loop.call_later(late_by_seconds, come_late)
        await batcher.flush()
        await late.wait()
        await batcher.flush()

    asyncio.run(gather())
    return calls
