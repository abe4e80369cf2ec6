"""What is called for a claimed task of each actor, and the broker through which Dramatiq calls it."""

from collections.abc import Callable, Iterable, Mapping

import dramatiq

from windlass.services.actors.making import Worker
from windlass.services.actors.worker.consuming import OneChannelBroker
from windlass.services.actors.worker.guests import Guests
from windlass.services.actors.worker.mirror import StateMirror
from windlass.services.actors.worker.results import fitting
from windlass.shared.settings import Settings

Runners = Mapping[str, Callable[[str], None]]


def boot(
    settings: Settings, runners: Runners, queues: Iterable[str], mirror: StateMirror, guests: Guests
) -> OneChannelBroker:
    """The broker with the one middleware that Windlass needs; Dramatiq's defaults are left out on purpose."""
    broker = guests.broker = OneChannelBroker(settings, middleware=[mirror, *guests.beside()])
    for name, runner in runners.items():
        dramatiq.actor(actor_name=name, queue_name=name, broker=broker)(runner)
    # Dramatiq wants a queue for every actor; ours are a provider's, and this process serves only some of them.
    broker.queues.clear()
    broker.queues_pending.clear()
    for queue in queues:
        broker.declare_queue(queue)
    return broker


def make_runners(
    settings: Settings, actors: Mapping[str, Worker], mirror: StateMirror, guests: Guests
) -> dict[str, Callable[[str], None]]:
    """What is called for a task of each actor, once the mirror has claimed it."""
    return {name: _runner(mirror, actor, settings, guests) for name, actor in actors.items()}


def _runner(mirror: StateMirror, actor: Worker, settings: Settings, guests: Guests) -> Callable[[str], None]:
    def act(task_id: str) -> None:  # noqa: ARG001 - the mirror has claimed it and knows everything about it
        running = mirror.running
        running.context.begin()
        with guests.around(running.context.task) as tell:
            running.result = fitting(actor.run(running.context), settings)
            tell(running.result)

    return act
