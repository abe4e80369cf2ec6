"""Children: tasks that an attempt makes, each once, whatever number of attempts comes to the same place."""

import math
import time
from typing import NamedTuple

from pydantic import ValidationError

from windlass.services.actors.worker.context.asking import Asking
from windlass.shared.actors.attempt.child_requests import ChildRequest
from windlass.shared.actors.new_task import NewTask
from windlass.shared.db import Database
from windlass.shared.errors import InvalidInput, InvalidStep
from windlass.shared.store.operating import registry
from windlass.shared.store.tasks import Submission, UnknownDependency
from windlass.shared.store.tasks.children import Child, submit_child
from windlass.shared.submission.known import Actors, known_actors
from windlass.shared.submission.refusal import Refused, wrong_fields
from windlass.shared.submission.rules import submission_of
from windlass.shared.submission.storing import refuse_unstorable

REMEMBERED_SECONDS = 1.0
"""A new registration counts within a second, also for an attempt that makes many children."""


class Children:
    """One attempt's."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._known: dict[str, tuple[float, Actors]] = {}

    async def submit(self, place: str, request: ChildRequest) -> str:
        submission = await self._checked(request)
        try:
            child = await self._asking.ask(submit_child, self._asking.context.task, place, submission)
        except UnknownDependency as error:
            message = f"a child of {request.actor} depends on what is not there: {error}"
            raise InvalidInput(message) from error
        return self._answer(child, place, submission)

    async def _checked(self, request: ChildRequest) -> Submission:
        """By the rules that hold for what comes over REST. Raises InvalidInput."""
        settings = self._asking.context.settings
        said = {"actor": request.actor, "payload": request.payload, **request.options}
        try:
            refuse_unstorable(said, settings)
            wanted = NewTask.model_validate(said)
            actors = await self._actors_for(wanted.actor)
            return submission_of(wanted, Parent(), settings, actors, among_options=request.among_options)
        except ValidationError as error:
            raise _invalid(request.actor, Refused("invalid-task", wrong_fields(error, NewTask))) from error
        except Refused as refused:
            raise _invalid(request.actor, refused) from refused

    async def _actors_for(self, name: str) -> Actors:
        """An attempt that makes many children at once asks once which actors there are."""
        learned, actors = self._known.get(name, (-math.inf, None))
        if actors is None or time.monotonic() >= learned + REMEMBERED_SECONDS:
            heard = self._asking.context.settings.lease_seconds
            actors = await self._asking.ask(_actors, name, heard_within_seconds=heard)
            self._known[name] = (time.monotonic(), actors)
        return actors

    def _answer(self, child: Child, place: str, submission: Submission) -> str:
        context = self._asking.context
        if child.refusal is not None:
            context.stop("cancelled" if child.refusal == "cancelled" else "lost")
            context.check()
        if child.actor != submission.actor:
            message = (
                f"submit {place} was of {child.actor} in an earlier attempt and is of {submission.actor} now: where "
                "what is submitted depends on something that changes, submit it inside a step"
            )
            raise InvalidStep(message, child_id=str(child.child_id))
        return str(child.child_id)


class Parent(NamedTuple):
    """The submitter of a child. The key that the parent was submitted with is not stored, so that a child has no admin
    rights. The user is filled in from the parent's row."""

    user_id: str = ""
    is_admin: bool = False


async def _actors(db: Database, name: str, *, heard_within_seconds: float) -> Actors:
    """All versions of the actor of this name that count, or all actors if there is none: the error suggests a name."""
    served = await registry.queues(db)
    rows = await registry.read(db, heard_within_seconds=heard_within_seconds, actor=name)
    actors = known_actors(rows, served)
    if name in actors:
        return actors
    return known_actors(await registry.read(db, heard_within_seconds=heard_within_seconds), served)


def _invalid(actor: str, refused: Refused) -> InvalidInput:
    errors = [each._asdict() for each in refused.wrong]
    return InvalidInput(f"the child of {actor} is invalid: {refused}", code=refused.code, errors=errors)
