"""What is called for a claimed task of each actor, and the broker through which Dramatiq calls it."""

from collections.abc import Callable, Iterable, Mapping

import dramatiq

from windlass.services.actors.worker.executor import Actor, Executor
from windlass.services.actors.worker.guests import Guests
from windlass.services.actors.worker.mirror import StateMirror
from windlass.shared.broker import DoorbellBroker
from windlass.shared.settings import Settings

Runners = Mapping[str, Callable[[str], None]]


def boot(
    settings: Settings, runners: Runners, queues: Iterable[str], mirror: StateMirror, guests: Guests
) -> DoorbellBroker:
    """The broker with the one middleware that Windlass needs; Dramatiq's defaults are left out on purpose."""
    broker = guests.broker = DoorbellBroker(settings, middleware=[mirror, *guests.beside()])
    for name, runner in runners.items():
        dramatiq.actor(actor_name=name, queue_name=name, broker=broker)(runner)
    # Dramatiq wants a queue for every actor; ours are a provider's, and this process serves only some of them.
    broker.queues.clear()
    broker.queues_pending.clear()
    for queue in queues:
        broker.declare_queue(queue)
    return broker


def make_runners(
    actors: Mapping[str, Actor], mirror: StateMirror, executor: Executor
) -> dict[str, Callable[[str], None]]:
    """What is called for a task of each actor, once a thread has taken it up."""
    return {name: _runner(mirror, executor, actor) for name, actor in actors.items()}


def _runner(mirror: StateMirror, executor: Executor, actor: Actor) -> Callable[[str], None]:
    def act(task_id: str) -> None:  # noqa: ARG001 - the message carries the attempt itself
        executor.run(mirror.running, actor)

    return act
