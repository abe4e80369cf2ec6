"""The duties that somebody calls for: one connection listens for all of them, with or without RabbitMQ."""

import asyncio

from windlass.services.janitor.duties import dependents
from windlass.services.janitor.premises import Premises
from windlass.services.janitor.table import duty_named
from windlass.services.janitor.wall import perform
from windlass.shared import db
from windlass.shared.process.lifetime import until_set
from windlass.shared.store.flow_control import keys
from windlass.shared.store.tasks import bulk

AGAIN_SECONDS = 1.0
"""After a duty has failed."""


class Calls:
    """Dependents are told and keys looked after on the listener's own connection. Bulk jobs have a loop of their own
    beside it: neither keeps the other waiting."""

    def __init__(self, premises: Premises) -> None:
        self._premises = premises
        self._on_the_listener = duty_named("dependents"), duty_named("keys")
        self._bulk = duty_named("bulk")
        self._new_job = asyncio.Event()
        self._listener = db.Listener(
            premises.settings,
            "janitor",
            {
                dependents.CHANNEL: self._dependents_called,
                keys.CHANNEL: self._keys_called,
                bulk.CHANNEL: self._bulk_called,
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

    def _dependents_called(self, _payload: str) -> None:
        self._listener.beat_now()

    def _keys_called(self, provider: str) -> None:
        if provider:
            self._premises.keys_called_by.add(provider)
        self._listener.beat_now()

    def _bulk_called(self, _payload: str) -> None:
        self._new_job.set()
