"""An attempt whose payload refers to results of others is given them, before its actor's schema is asked."""

from dataclasses import replace

from windlass.services.actors.worker.context import Context
from windlass.shared.concerns import Concern
from windlass.shared.errors import InvalidInput
from windlass.shared.settings import Settings
from windlass.shared.store.workflows import inputs


def take_input(context: Context, settings: Settings) -> None:
    """Costs one question, and only a task that refers to something, if its worker has not asked already."""
    if not context.task.concerns & Concern.REFERENCES or context.task.has_input:
        return
    found = context.ask(inputs.resolve, context.task_id, largest_bytes=settings.largest_input_bytes)
    if found.input is None:
        raise InvalidInput(f"{found.pointer or '/'}: {found.problem}", pointer=found.pointer)
    context.task = replace(context.task, payload=found.input)
