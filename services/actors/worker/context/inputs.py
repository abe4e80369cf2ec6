"""An attempt whose payload refers to results of others is given them, before its actor's schema is asked."""

from dataclasses import replace

from windlass.services.actors.worker.context.asking import Asking
from windlass.shared.concerns import Concern
from windlass.shared.errors import InvalidInput
from windlass.shared.store.workflows import inputs


async def take_input(asking: Asking) -> None:
    """Costs one question, and only a task that refers to something, if its worker has not asked already."""
    context = asking.context
    if not context.task.concerns & Concern.REFERENCES or context.task.has_input:
        return
    largest = context.settings.largest_input_bytes
    found = await asking.ask(inputs.resolve, context.task_id, largest_bytes=largest)
    if found.input is None:
        raise InvalidInput(f"{found.pointer or '/'}: {found.problem}", pointer=found.pointer)
    context.task = replace(context.task, payload=found.input)
