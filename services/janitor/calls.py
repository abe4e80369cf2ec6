"""The duties that somebody calls for: one connection listens for all of them, with or without RabbitMQ."""

import asyncio
from uuid import UUID

from windlass.services.janitor.duties import dependents
from windlass.services.janitor.premises import Premises
from windlass.services.janitor.table import duty_named
from windlass.services.janitor.wall import perform
from windlass.shared import db
from windlass.shared.process.lifetime import until_set
from windlass.shared.store import projects, schedules, webhooks
from windlass.shared.store.flow_control import keys
from windlass.shared.store.tasks import bulk
from windlass.shared.store.workflows import controlling

AGAIN_SECONDS = 1.0
"""After a duty has failed."""


class Calls:
    """Dependents are told, workflows, keys, projects and endpoints looked after on the listener's own connection. Bulk
    jobs, memory and its indexes have loops of their own beside it: none keeps another waiting."""

    def __init__(self, premises: Premises) -> None:
        self._premises = premises
        self._on_the_listener = tuple(map(duty_named, ("dependents", "workflows", "keys", "projects", "endpoints")))
        self._bulk = duty_named("bulk")
        self._memory = duty_named("memory")
        self._vector_indexes = duty_named("vector_indexes")
        self._new_job = asyncio.Event()
        self._listener = db.Listener(
            premises.settings,
            "janitor",
            {
                dependents.CHANNEL: self._called,
                controlling.CHANNEL: self._called,
                keys.CHANNEL: self._keys_called,
                bulk.CHANNEL: self._bulk_called,
                projects.CHANNEL: self._called,
                webhooks.CHANNEL: self._called,
                schedules.CHANNEL: self._schedules_called,
            },
            beat=self._settle,
        )

    async def listen(self) -> None:
        """Until cancelled."""
        await self._listener.run()

    async def run_bulk_jobs(self) -> None:
        """Until cancelled."""
        while True:
            self._new_job.clear()
            outcome = await perform(self._bulk, self._premises)
            await until_set(self._new_job, at_most_seconds=self._pause(outcome.again_in_seconds))

    async def gather_memory(self) -> None:
        """Until cancelled. Nobody calls for it: an event can wait for company, and an end has better things to do."""
        while True:
            outcome = await perform(self._memory, self._premises)
            await asyncio.sleep(self._pause(outcome.again_in_seconds))

    async def look_after_indexes(self) -> None:
        """Until cancelled. To make one takes minutes, in which events are gathered."""
        while True:
            outcome = await perform(self._vector_indexes, self._premises)
            await asyncio.sleep(self._pause(outcome.again_in_seconds))

    async def _settle(self, connection: db.Database) -> float:
        self._premises.listening = connection
        pauses = []
        for duty in self._on_the_listener:
            outcome = await perform(duty, self._premises)
            if isinstance(outcome.error, db.UNAVAILABLE):
                raise outcome.error  # the listener looks for a better connection
            pauses.append(self._pause(outcome.again_in_seconds))
        return min(pauses)

    def _pause(self, wanted_seconds: float | None) -> float:
        return (
            min(AGAIN_SECONDS, self._premises.settings.safety_poll_seconds)
            if wanted_seconds is None
            else wanted_seconds
        )

    def _keys_called(self, provider: str) -> None:
        if provider:
            self._premises.keys_called_by.add(provider)
        self._listener.beat_now()

    def _called(self, _payload: str) -> None:
        self._listener.beat_now()

    def _schedules_called(self, schedule_id: str) -> None:
        if schedule_id == db.ANYTHING:
            self._premises.next_schedule.missed_calls()
        else:
            self._premises.next_schedule.called(UUID(schedule_id))

    def _bulk_called(self, _payload: str) -> None:
        self._new_job.set()
