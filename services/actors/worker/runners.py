"""What is called for a claimed task of each actor, and the broker through which Dramatiq calls it."""

from collections.abc import Callable

import dramatiq
from pydantic import ValidationError

from windlass.services.actors.registry import ACTORS, Actor
from windlass.services.actors.worker.consuming import OneChannelBroker
from windlass.services.actors.worker.mirror import StateMirror
from windlass.services.actors.worker.refusals import refusal_of
from windlass.services.actors.worker.results import fitting
from windlass.shared.actors.built_in import built_in
from windlass.shared.actors.payloads import PAYLOADS, Payload
from windlass.shared.settings import Settings
from windlass.shared.wording import in_words


def boot(settings: Settings, actors: dict[str, Actor], mirror: StateMirror) -> OneChannelBroker:
    """The broker with the one middleware that Windlass needs; Dramatiq's defaults are left out on purpose."""
    broker = OneChannelBroker(settings, middleware=[mirror])
    for name, runner in runners(settings, actors, mirror).items():
        dramatiq.actor(actor_name=name, queue_name=name, broker=broker)(runner)
    # Dramatiq wants a queue for every actor; ours are a provider's, and this process serves only some of them.
    broker.queues.clear()
    broker.queues_pending.clear()
    for queue in settings.consumed_queues(ACTORS):
        broker.declare_queue(queue)
    return broker


def runners(settings: Settings, actors: dict[str, Actor], mirror: StateMirror) -> dict[str, Callable[[str], None]]:
    """What is called for a task of each actor, once the mirror has claimed it."""
    return {name: _runner(mirror, run, PAYLOADS[name], settings) for name, run in actors.items()}


def _runner(mirror: StateMirror, run: Actor, payload_type: type[Payload], settings: Settings) -> Callable[[str], None]:
    def act(task_id: str) -> None:  # noqa: ARG001 - the mirror has claimed it and knows everything about it
        running = mirror.running
        context = running.context
        context.begin()
        try:
            payload = payload_type.model_validate(context.task.payload)
        except ValidationError as error:
            own = built_in()[context.task.actor].version
            raise refusal_of(context, own, said_of(error), heard_within_seconds=settings.lease_seconds) from None
        result = run(context, payload)
        running.result = fitting(result, settings)

    return act


def said_of(error: ValidationError) -> str:
    """Each field by its place, without the values, which may be long and may be secret."""
    problems = error.errors(include_url=False)
    return "; ".join(f"/{'/'.join(map(str, each['loc']))} {in_words(each)}" for each in problems)
