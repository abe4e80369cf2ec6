"""The duties that somebody calls for: one connection listens for all of them, with or without RabbitMQ."""

import asyncio
import math
import time
from collections.abc import Callable

from windlass.services.janitor.duties import dependents
from windlass.services.janitor.premises import Premises
from windlass.services.janitor.rhythms import UNTIL_CALLED
from windlass.services.janitor.table import Duty, duty_named
from windlass.services.janitor.wall import Outcome, perform
from windlass.shared import db
from windlass.shared.process.lifetime import until_set
from windlass.shared.store import memory, projects, webhooks
from windlass.shared.store.flow_control import keys
from windlass.shared.store.tasks import bulk

AGAIN_SECONDS = 1.0
"""After a duty has failed."""

NEVER = math.inf
ON_THE_LISTENER = ("dependents", "keys", "projects", "endpoints")
BESIDE_IT = ("bulk", "memory")


class Calls:
    """Dependents, keys, projects and endpoints are handled on the listener's own connection when a NOTIFY calls for
    them. Bulk jobs, memory and its indexes have loops of their own, so that none delays another."""

    def __init__(self, premises: Premises) -> None:
        self._premises = premises
        self._due: dict[str, float] = {}
        """When the listener's duties are to be done, by our own clock: those that are to be."""
        self._called = {name: asyncio.Event() for name in BESIDE_IT}
        self._listener = db.Listener(
            premises.settings,
            "janitor",
            {
                dependents.CHANNEL: self._calling("dependents"),
                keys.CHANNEL: self._keys_called,
                bulk.CHANNEL: self._calling("bulk"),
                projects.CHANNEL: self._calling("projects"),
                webhooks.CHANNEL: self._calling("endpoints"),
                memory.CHANNEL: self._calling("memory"),
            },
            beat=self._settle,
        )

    async def listen(self) -> None:
        """Until cancelled."""
        await self._listener.run()

    def call(self, name: str) -> None:
        """For the duty of that name, whoever does it."""
        if name in self._called:
            self._called[name].set()
        elif name in ON_THE_LISTENER:
            self._due[name] = 0.0
            self._listener.beat_now()

    async def run_bulk_jobs(self) -> None:
        """Until cancelled."""
        while True:
            self._called["bulk"].clear()
            pause = self._pause(await perform(duty_named("bulk"), self._premises))
            await until_set(self._called["bulk"], at_most_seconds=pause)

    async def gather_memory(self) -> None:
        """Until cancelled. An event waits for company: while one does, whoever else calls is company."""
        while True:
            self._called["memory"].clear()
            pause = self._pause(await perform(duty_named("memory"), self._premises))
            if pause < UNTIL_CALLED:
                await asyncio.sleep(pause)
            else:
                await until_set(self._called["memory"], at_most_seconds=pause)

    async def look_after_indexes(self) -> None:
        """Until cancelled. To make one takes minutes, in which events are gathered."""
        while True:
            pause = self._pause(await perform(duty_named("vector_indexes"), self._premises))
            await asyncio.sleep(pause)

    async def _settle(self, connection: db.Database) -> float:
        """Does what is due, in the order of the table; a connection that nobody had a use for is asked for nothing."""
        self._premises.listening = connection
        now = time.monotonic()
        due = [duty_named(name) for name in ON_THE_LISTENER if self._due.get(name, NEVER) <= now]
        for duty in due:
            await self._do(duty)
        if not due:
            await connection.fetchval("SELECT 1")
        soonest = min(self._due.values(), default=NEVER) - time.monotonic()
        return min(max(0.0, soonest), self._premises.settings.safety_poll_seconds)

    async def _do(self, duty: Duty) -> None:
        """A call that comes meanwhile is for the next time."""
        del self._due[duty.name]
        outcome = await perform(duty, self._premises)
        again_at = time.monotonic() + self._pause(outcome)
        self._due[duty.name] = min(again_at, self._due.get(duty.name, again_at))
        if isinstance(outcome.error, db.UNAVAILABLE):
            raise outcome.error  # the listener looks for a better connection

    def _pause(self, outcome: Outcome) -> float:
        if outcome.again_in_seconds is None:
            return min(AGAIN_SECONDS, self._premises.settings.safety_poll_seconds)
        return outcome.again_in_seconds

    def _calling(self, name: str) -> Callable[[str], None]:
        return lambda _payload: self.call(name)

    def _keys_called(self, provider: str) -> None:
        if provider:
            self._premises.keys_called_by.add(provider)
        self.call("keys")
