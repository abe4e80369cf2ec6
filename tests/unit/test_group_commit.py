"""The batcher's patience: who comes with others waits a moment for them, who comes alone goes at once."""

import asyncio
from collections.abc import Sequence

from tests.support.engine.replies import Reply
from windlass.services.actors.worker.writing.group_commit import BUSY_SECONDS, GATHER_SECONDS, GroupCommit
from windlass.shared import db


def test_those_who_were_answered_together_go_together_the_next_time() -> None:
    assert calls_made(came_last_time=2, late_by_seconds=GATHER_SECONDS / 2) == [["one", "another"]]


def test_who_came_alone_goes_alone_and_at_once() -> None:
    assert calls_made(came_last_time=1, late_by_seconds=GATHER_SECONDS / 2) == [["one"], ["another"]]


def test_nobody_is_waited_for_very_long() -> None:
    assert calls_made(came_last_time=2, late_by_seconds=None) == [["one"], ["another"]]


def test_who_was_answered_long_ago_goes_at_once_however_many_came_with_it() -> None:
    """Else tasks of some length would be put in step: all end in one moment, and start in one."""
    made = calls_made(came_last_time=2, late_by_seconds=GATHER_SECONDS / 2, answered_ago_seconds=BUSY_SECONDS * 2)
    assert made == [["one"], ["another"]]


async def nobody_is_held_up(items: Sequence[str]) -> Sequence[str]:
    raise AssertionError(items)


def test_what_was_held_up_goes_once_more_together_and_then_one_by_one() -> None:
    assert offers_made(locked_for=1) == [["one", "another"]]
    assert offers_made(locked_for=2) == [["one", "another"], ["one"], ["another"]]


def offers_made(*, locked_for: int) -> list[list[str]]:
    """Of two that came together; whoever has what they want locked keeps it for so many calls."""
    calls: list[list[str]] = []

    async def call(items: Sequence[str]) -> Sequence[str]:
        calls.append(list(items))
        if len(calls) <= locked_for:
            raise db.HELD_UP[0]("somebody has it locked")
        return items

    async def offer() -> None:
        batcher: GroupCommit[str, str] = GroupCommit(asyncio.get_running_loop(), call, offer=call)
        replies: list[Reply[str]] = [Reply(), Reply()]
        batcher._gathered.extend(zip(("one", "another"), replies, strict=True))
        await batcher.flush()
        offering = asyncio.create_task(batcher.offer_one_by_one())
        for reply, answer in zip(replies, ("one", "another"), strict=True):
            assert await asyncio.to_thread(reply.wait) == answer
        offering.cancel()

    asyncio.run(offer())
    return calls[1:]


JUST_NOW = -600
"""However long the machine keeps us from asking."""


def calls_made(
    *, came_last_time: int, late_by_seconds: float | None, answered_ago_seconds: float = JUST_NOW
) -> list[list[str]]:
    """Of two, the second of which comes so late, or when the first has gone without it."""
    calls: list[list[str]] = []

    async def call(items: Sequence[str]) -> Sequence[str]:
        calls.append(list(items))
        return items

    async def gather() -> None:
        loop = asyncio.get_running_loop()
        batcher: GroupCommit[str, str] = GroupCommit(loop, call, offer=nobody_is_held_up)
        batcher._last, batcher._answered_at = came_last_time, loop.time() - answered_ago_seconds
        batcher._gathered.append(("one", Reply()))
        late = asyncio.Event()

        def come_late() -> None:
            batcher._gathered.append(("another", Reply()))
            late.set()

        if late_by_seconds is not None:
            loop.call_later(late_by_seconds, come_late)
        await batcher.flush()
        if late_by_seconds is None:
            come_late()
        await late.wait()
        await batcher.flush()

    asyncio.run(gather())
    return calls


def test_what_is_apart_is_never_in_one_call_with_the_others_and_comes_after_them() -> None:
    calls: list[list[str]] = []

    async def call(items: Sequence[str]) -> Sequence[str]:
        calls.append(list(items))
        return items

    async def gather() -> list[str]:
        loop = asyncio.get_running_loop()
        batcher: GroupCommit[str, str] = GroupCommit(loop, call, offer=nobody_is_held_up, apart=str.isupper)
        replies: dict[str, Reply[str]] = {item: Reply() for item in ("A", "b", "C", "d")}
        batcher._gathered.extend(replies.items())
        await batcher.flush()
        return [reply.wait() for reply in replies.values()]

    assert asyncio.run(gather()) == ["A", "b", "C", "d"]
    assert calls == [["b", "d"], ["A", "C"]]
