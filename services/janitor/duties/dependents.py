"""Dependents: those that the end or the revival of their parent has left are told page by page."""

from windlass.shared import db
from windlass.shared.settings import Settings
from windlass.shared.store.tasks import dependencies

AGAIN_SECONDS = 0.1
"""When somebody was in the way."""

CHANNEL = "windlass_settle"


class Settler:
    """Woken by whoever leaves dependents unsettled, with or without RabbitMQ; asks by itself now and then."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._listener = db.Listener(settings, "janitor", {CHANNEL: self._heard}, beat=self.settle)

    async def run(self) -> None:
        await self._listener.run()

    async def settle(self, connection: db.Database) -> float:
        """Until there are none; returns how long to wait for the next."""
        try:
            while await dependencies.settle_next(connection):
                pass
        except db.CONTENDED:
            return AGAIN_SECONDS
        return self._settings.safety_poll_seconds

    def _heard(self, _payload: str) -> None:
        self._listener.beat_now()
