"""An attempt whose payload refers to results of others is given them, before its actor's schema is asked."""

from dataclasses import replace

from windlass.services.actors.worker.context.context import Context
from windlass.shared.concerns import Concern
from windlass.shared.errors import InvalidInput
from windlass.shared.settings import Settings
from windlass.shared.store.workflows import inputs


def take_input(context: Context, settings: Settings) -> None:
    """Costs one question, and only a task that refers to something, if its worker has not asked already."""
    if not _is_wanted(context):
        return
    _take(context, context.ask(inputs.resolve, context.task_id, largest_bytes=settings.largest_input_bytes))


async def take_input_async(context: Context, settings: Settings) -> None:
    """The same from an event loop."""
    if not _is_wanted(context):
        return
    _take(context, await context.ask_async(inputs.resolve, context.task_id, largest_bytes=settings.largest_input_bytes))


def _is_wanted(context: Context) -> bool:
    return bool(context.task.concerns & Concern.REFERENCES) and not context.task.has_input


def _take(context: Context, found: inputs.Resolved) -> None:
    if found.input is None:
        raise InvalidInput(f"{found.pointer or '/'}: {found.problem}", pointer=found.pointer)
    context.task = replace(context.task, payload=found.input)
