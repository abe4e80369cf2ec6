"""The actors there are, by the name in a task: each is made once per worker process, from the settings."""

import os
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, runtime_checkable

from windlass.shared.db import Database
from windlass.shared.settings import Settings

Actor = Callable[..., Any]
"""Takes the attempt's context and the checked payload, and returns the result."""


@runtime_checkable
class Resident(Protocol):
    """An actor that has something to do beside its attempts, for as long as its process lives."""

    async def prepare(self, pool: Database) -> None:
        """Before the first task is taken; whoever cannot work here raises `SystemExit`."""

    async def accompany(self, ask: Callable[..., Coroutine[Any, Any, Any]]) -> None:
        """Runs beside the attempts; `ask(intent)` is a call of the store."""


# Imported when they are made: a worker that serves one queue need not load what the others work with.


def _agent(settings: Settings) -> Actor:
    from windlass.services.actors.agent.actor import Agent  # noqa: PLC0415

    return Agent(settings, guardian_pid=os.getppid())


def _media(settings: Settings) -> Actor:
    from windlass.services.actors.media.actor import Media  # noqa: PLC0415

    return Media(settings)


def _probe(_settings: Settings) -> Actor:
    from windlass.services.actors.probe import probe  # noqa: PLC0415

    return probe


def _summarize(settings: Settings) -> Actor:
    from windlass.services.actors.summarize.actor import Summarize  # noqa: PLC0415

    return Summarize(settings)


ACTORS: dict[str, Callable[[Settings], Actor]] = {
    "agent": _agent,
    "media": _media,
    "probe": _probe,
    "summarize": _summarize,
}


def make_actors(settings: Settings) -> dict[str, Actor]:
    """Those whose queues this process serves."""
    served = {queue.partition(".")[0] for queue in settings.consumed_queues(ACTORS)}
    return {name: ACTORS[name](settings) for name in sorted(served)}
