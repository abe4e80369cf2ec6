"""Where one more task would start at once: it is rung for when it is heard of, and the look comes meanwhile."""

from windlass.services.dispatcher.publisher import Doorbell
from windlass.shared.admission import ProviderView, would_start
from windlass.shared.settings import provider_of


class Foresight:
    """What the last look at each provider has foreseen, good for one doorbell. A look takes longer than the doorbell
    itself; one that was rung for nothing costs a row of a call."""

    def __init__(self) -> None:
        self._queues: dict[str, list[str]] = {}

    def learn(self, view: ProviderView) -> None:
        self._queues[view.name] = would_start(view)

    def has_seen(self, provider: str) -> bool:
        """Whether somebody has looked since it was last taken from."""
        return provider in self._queues

    def take(self, queue: str) -> Doorbell | None:
        """Another one of the same provider has to be looked at first."""
        return Doorbell(queue, 1) if queue in self._queues.pop(provider_of(queue), ()) else None
