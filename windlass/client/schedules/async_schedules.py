"""Schedules for asyncio; what is said stands in `calls.py`."""

from collections.abc import AsyncIterator, Sequence
from typing import Unpack

from windlass.client.options import Moment
from windlass.client.schedules import calls
from windlass.client.schedules.documents import Preview, RunOutcome, Schedule, ScheduleRun, ScheduleState
from windlass.client.schedules.options import ScheduleChange, ScheduleFields, ScheduleName, Target, Times
from windlass.client.speaking import AsyncSpeaker


class AsyncSchedules:
    """What is started when: `client.schedules`, with `await`. A name is as good as an id."""

    def __init__(self, client: AsyncSpeaker) -> None:
        self._client = client

    async def create(self, name: str, target: Target, **fields: Unpack[ScheduleFields]) -> Schedule:
        """Starts `target` at its times, from now on: `cron` in `timezone`, or `every_seconds`. NameTaken if there is
        one of that name already."""
        return await self._client.perform(calls.create(name, target, fields))

    async def put(self, name: ScheduleName, target: Target, **fields: Unpack[ScheduleFields]) -> Schedule:
        """Makes it, or changes the one that there is to be like this: whoever says the same twice has it once."""
        return await self._client.perform(calls.put(name, target, fields))

    def list(
        self, *, state: ScheduleState | Sequence[ScheduleState] = (), page_size: int = 200
    ) -> AsyncIterator[Schedule]:
        """Newest first, page after page."""
        states: Sequence[ScheduleState] = (state,) if isinstance(state, str) else state
        return self._client.items_of(calls.list_schedules(states, page_size))

    async def get(self, schedule: ScheduleName) -> Schedule:
        """One schedule, with its times in words and the next five."""
        return await self._client.perform(calls.get(schedule))

    async def change(self, schedule: ScheduleName, **changes: Unpack[ScheduleChange]) -> Schedule:
        """Some of its fields. What was due before is decided about as it was."""
        return await self._client.perform(calls.change(schedule, changes))

    async def delete(self, schedule: ScheduleName, *, reason: str | None = None) -> None:
        """It starts nothing any more; what it has started goes on."""
        await self._client.perform(calls.delete(schedule, reason))

    async def pause(self, schedule: ScheduleName, *, reason: str | None = None) -> Schedule:
        """Nothing is started until it is resumed. Again is fine."""
        return await self._client.perform(calls.pause(schedule, reason))

    async def resume(self, schedule: ScheduleName, *, reason: str | None = None) -> Schedule:
        """It goes on from now; what was due meanwhile was missed."""
        return await self._client.perform(calls.resume(schedule, reason))

    async def trigger(self, schedule: ScheduleName, *, reason: str | None = None) -> ScheduleRun:
        """Due now, beside its times; says what became of it."""
        return await self._client.perform(calls.trigger(schedule, reason))

    async def backfill(
        self, schedule: ScheduleName, begin: Moment, end: Moment, *, reason: str | None = None
    ) -> tuple[ScheduleRun, ...]:
        """Starts the due times of a time that is past, at most 100, but for those that were started before."""
        return (await self._client.perform(calls.backfill(schedule, begin, end, reason))).items

    def runs(
        self, schedule: ScheduleName, *, outcome: RunOutcome | Sequence[RunOutcome] = (), page_size: int = 200
    ) -> AsyncIterator[ScheduleRun]:
        """What became of each time that it was due, the latest first."""
        outcomes: Sequence[RunOutcome] = (outcome,) if isinstance(outcome, str) else outcome
        return self._client.items_of(calls.runs(schedule, outcomes, page_size))

    async def preview(self, *, count: int = calls.NEXT, **times: Unpack[Times]) -> Preview:
        """Times in words, and the next of them, without making anything."""
        return await self._client.perform(calls.preview(times, count))
