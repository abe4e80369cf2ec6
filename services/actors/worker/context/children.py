"""Children: tasks that an attempt makes, each once, whatever number of attempts comes to the same place."""

import math
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from windlass.services.actors.worker.context.child_submissions import Wanted, actors_for, child_of, wanted_of
from windlass.shared.actors.step_rules import step_under_way
from windlass.shared.errors import InvalidInput, InvalidStep
from windlass.shared.store.tasks import Submission, UnknownDependency
from windlass.shared.store.tasks.children import Child, submit_child
from windlass.shared.submission.known import Actors

if TYPE_CHECKING:
    from windlass.services.actors.worker.context.context import Context

REMEMBERED_SECONDS = 1.0
"""What is registered counts within a second, also for those who make many children."""


class Children:
    """One attempt's. A place is the step that is under way, or none, and how many have been made in it before."""

    def __init__(self, context: "Context") -> None:
        self._context = context
        self._lock = threading.Lock()
        self._numbers: defaultdict[str, int] = defaultdict(int)
        self._known: dict[str, tuple[float, Actors]] = {}

    def submit(self, actor: Any, payload: Mapping[str, Any] | None, options: dict[str, Any]) -> str:
        context, place, wanted = self._context, self._next_place(), self._wanted(actor, payload, options)
        name = wanted.task.actor
        actors = self._remembered(name) or self._remember(name, context.ask(actors_for, name, **self._heard()))
        submission = child_of(wanted, actors, context.settings)
        with _unknown_dependency(name):
            child = context.ask(submit_child, context.task, place, submission)
        return self._answer(child, place, submission)

    async def submit_async(self, actor: Any, payload: Mapping[str, Any] | None, options: dict[str, Any]) -> str:
        """The same in an `async def` actor."""
        context, place, wanted = self._context, self._next_place(), self._wanted(actor, payload, options)
        name = wanted.task.actor
        actors = self._remembered(name)
        if actors is None:
            actors = self._remember(name, await context.ask_async(actors_for, name, **self._heard()))
        submission = child_of(wanted, actors, context.settings)
        with _unknown_dependency(name):
            child = await context.ask_async(submit_child, context.task, place, submission)
        return self._answer(child, place, submission)

    def _wanted(self, actor: Any, payload: Mapping[str, Any] | None, options: dict[str, Any]) -> Wanted:
        self._context.check()
        return wanted_of(actor, payload, options, self._context.settings)

    def _heard(self) -> dict[str, float]:
        return {"heard_within_seconds": self._context.settings.lease_seconds}

    def _remembered(self, name: str) -> Actors | None:
        """Who makes many children at once asks once who takes them."""
        learned, actors = self._known.get(name, (-math.inf, None))
        return actors if time.monotonic() < learned + REMEMBERED_SECONDS else None

    def _remember(self, name: str, actors: Actors) -> Actors:
        self._known[name] = (time.monotonic(), actors)
        return actors

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


@contextmanager
def _unknown_dependency(actor: str) -> Iterator[None]:
    try:
        yield
    except UnknownDependency as error:
        raise InvalidInput(f"a child of {actor} depends on what is not there: {error}") from error
