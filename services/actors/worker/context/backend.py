"""A worker as the backend of its attempts: what they keep is stored in Postgres, under their claim."""

from typing import Any

from windlass.services.actors.worker.context.asking import Asking
from windlass.services.actors.worker.context.children import Children
from windlass.services.actors.worker.context.stored_files import StoredFiles
from windlass.services.actors.worker.metrics import step_ended
from windlass.shared.actors.attempt.child_requests import ChildRequest
from windlass.shared.store.flow_control import rates
from windlass.shared.store.tasks.steps import results_of_steps, save_step

LONGEST_WAIT_SECONDS = 0.5
"""A rate that an operator changes is in force within a second, also for attempts that wait for it."""


class WorkerBackend:
    """One attempt's, on a thread or on the loop: `asking` knows which."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._context = asking.context
        self._children = Children(asking)
        self._files = StoredFiles(asking.context)
        self._claims_place_is_left = not asking.context.task.job_open

    async def earlier_steps(self) -> dict[str, Any]:
        return await self._asking.ask(results_of_steps, self._context.task_id)

    async def keep_step(self, name: str, written: str, elapsed_ms: int) -> None:
        context = self._context
        if not await self._asking.ask(save_step, context.task, name, written, elapsed_ms):
            context.stop("lost")
            context.check()
        step_ended(context.task.actor, "run")

    def step_given_back(self) -> None:
        step_ended(self._context.task.actor, "given_back")

    async def submit(self, place: str, child: ChildRequest) -> str:
        return await self._children.submit(place, child)

    async def store_file(self, data: Any, media_type: str | None) -> str:
        """Reading and writing files blocks."""
        return await self._asking.waits.call(self._files.store, data, media_type)

    async def take_rate(self) -> None:
        """The first place is the claim's, unless the attempt goes on waiting for an open job. The attempt's time stands
        still while it waits for another place: waiting is not failing, and must not end in `TimedOut`."""
        is_left, self._claims_place_is_left = self._claims_place_is_left, False
        if is_left:
            return
        context, said = self._context, ""
        with context.waiting_for_others():
            while wait := await self._asking.ask(rates.take, context.task.provider):
                reason = f"Waiting for the provider's rate ({wait.rate_limit} in {wait.per_seconds} s)"
                if reason != said:
                    context.progress(reason)
                    said = reason
                again = LONGEST_WAIT_SECONDS if wait.again_seconds is None else wait.again_seconds
                await self._asking.waits.sleep(min(again, LONGEST_WAIT_SECONDS))
                context.check()
        if said:
            context.progress("Processing")
