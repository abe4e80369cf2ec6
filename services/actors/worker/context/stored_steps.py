"""Where the steps of an attempt are kept: in Postgres, under its claim."""

from typing import TYPE_CHECKING, Any

from windlass.services.actors.worker.metrics import step_ended
from windlass.shared.store.tasks.steps import results_of_steps, save_step

if TYPE_CHECKING:
    from windlass.services.actors.worker.context.context import Context


class StoredSteps:
    """What `Steps` asks for. False from those that keep: the claim is no longer the attempt's own."""

    def __init__(self, context: "Context") -> None:
        self._context = context

    def earlier(self) -> dict[str, Any]:
        return self._context.ask(results_of_steps, self._context.task_id)

    async def earlier_async(self) -> dict[str, Any]:
        return await self._context.ask_async(results_of_steps, self._context.task_id)

    def keep(self, name: str, written: bytes, elapsed_ms: int) -> bool:
        return self._counted(self._context.ask(save_step, self._context.task, name, written.decode(), elapsed_ms))

    async def keep_async(self, name: str, written: bytes, elapsed_ms: int) -> bool:
        saving = self._context.ask_async(save_step, self._context.task, name, written.decode(), elapsed_ms)
        return self._counted(await saving)

    def given_back(self) -> None:
        step_ended(self._context.task.actor, "given_back")

    def _counted(self, is_kept: bool) -> bool:  # noqa: FBT001 - an answer, handed on
        if is_kept:
            step_ended(self._context.task.actor, "run")
        return is_kept
