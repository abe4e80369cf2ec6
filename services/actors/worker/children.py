"""Children: tasks that an attempt makes, each once, whatever number of attempts comes to the same place."""

import threading
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from windlass.services.actors.worker.child_submissions import name_of, submission_of
from windlass.shared.actors.payloads import PAYLOADS
from windlass.shared.actors.step_rules import step_under_way
from windlass.shared.errors import InvalidInput, InvalidStep
from windlass.shared.store.tasks import Submission, UnknownDependency
from windlass.shared.store.tasks.children import Child, latest_definition, submit_child

if TYPE_CHECKING:
    from windlass.services.actors.worker.context import Context


class Children:
    """One attempt's. A place is the step that is under way, or none, and how many have been made in it before."""

    def __init__(self, context: "Context") -> None:
        self._context = context
        self._lock = threading.Lock()
        self._numbers: defaultdict[str, int] = defaultdict(int)

    def submit(self, actor: Any, payload: Mapping[str, Any] | None, options: dict[str, Any]) -> str:
        context, place, name = self._context, self._next_place(), name_of(actor)
        context.check()
        known = None if name in PAYLOADS else context.ask(latest_definition, name)
        submission = submission_of(name, known, payload, options, context.settings)
        try:
            child = context.ask(submit_child, context.task, place, submission)
        except UnknownDependency as error:
            raise InvalidInput(f"a child of {name} depends on what is not there: {error}") from error
        return self._answer(child, place, submission)

    async def submit_async(self, actor: Any, payload: Mapping[str, Any] | None, options: dict[str, Any]) -> str:
        """The same in an `async def` actor."""
        context, place, name = self._context, self._next_place(), name_of(actor)
        context.check()
        known = None if name in PAYLOADS else await context.ask_async(latest_definition, name)
        submission = submission_of(name, known, payload, options, context.settings)
        try:
            child = await context.ask_async(submit_child, context.task, place, submission)
        except UnknownDependency as error:
            raise InvalidInput(f"a child of {name} depends on what is not there: {error}") from error
        return self._answer(child, place, submission)

    def _next_place(self) -> str:
        step = step_under_way()
        with self._lock:
            self._numbers[step] += 1
            return f"{self._numbers[step]} {step}".rstrip()

    def _answer(self, child: Child, place: str, submission: Submission) -> str:
        if child.refusal is not None:
            self._context.stop("cancelled" if child.refusal == "cancelled" else "lost")
            self._context.check()
        if child.actor != submission.actor:
            message = (
                f"submit {place} was of {child.actor} in an earlier attempt and is of {submission.actor} now: where "
                "what is submitted depends on something that changes, submit it inside a step"
            )
            raise InvalidStep(message, child_id=str(child.child_id))
        return str(child.child_id)
