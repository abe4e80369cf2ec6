"""From what an actor says to a child that can be stored: by the rules that hold for what comes over REST."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from pydantic import ValidationError

from windlass.shared.actors.awaiting import refuse_awaitables
from windlass.shared.actors.new_task import NewTask
from windlass.shared.actors.task_options import OPTIONS
from windlass.shared.db import Database
from windlass.shared.errors import InvalidInput
from windlass.shared.settings import Settings
from windlass.shared.store.operating import registry
from windlass.shared.store.tasks import Submission
from windlass.shared.submission.known import Actors, known_actors
from windlass.shared.submission.refusal import Refused, wrong_fields
from windlass.shared.submission.rules import submission_of
from windlass.shared.submission.storing import refuse_unstorable
from windlass.shared.suggestions import did_you_mean

NOT_FOR_CHILDREN = {
    "user_id": "a child is its parent's user's",
    "parent_task_id": "a child's parent is the task that makes it",
    "dedupe_key": "a child is made once by itself",
    "dedupe_ttl_seconds": "a child is made once by itself",
    "webhook_url": "subscribe a webhook to what becomes of tasks",
}


class Attempt(NamedTuple):
    """Who asks for a child. Whose key its task came with nobody knows any more: what REST keeps for admins is refused.
    The user is the parent's, who is filled in from its row."""

    user_id: str = ""
    is_admin: bool = False


class Wanted(NamedTuple):
    """A child to be, and whether its payload was said among the options."""

    task: NewTask
    among_options: bool


async def actors_for(db: Database, name: str, *, heard_within_seconds: float) -> Actors:
    """All versions that count of the actor of this name; where there is none, all actors, so that it can be said who
    may be meant."""
    served = await registry.queues(db)
    rows = await registry.read(db, heard_within_seconds=heard_within_seconds, actor=name)
    actors = known_actors(rows, served)
    if name in actors:
        return actors
    return known_actors(await registry.read(db, heard_within_seconds=heard_within_seconds), served)


def wanted_of(actor: Any, payload: Mapping[str, Any] | None, options: dict[str, Any], settings: Settings) -> Wanted:
    """Raises InvalidInput, as everything here does."""
    name = actor if isinstance(actor, str) else getattr(actor, "name", None)
    if not isinstance(name, str):
        raise InvalidInput(f"`submit` takes an actor or its name, and not {actor!r}")
    for option in options.keys() & NOT_FOR_CHILDREN.keys():
        raise InvalidInput(f"`submit` takes no {option}: {NOT_FOR_CHILDREN[option]}")
    fields = {option: value for option, value in options.items() if option not in OPTIONS}
    if payload is not None and fields:
        unknown = min(fields)
        raise InvalidInput(f"there is no option {unknown}; {did_you_mean(unknown, OPTIONS)}")
    own = {option: value for option, value in options.items() if option in OPTIONS}
    said = _as_json_has_it({"actor": name, "payload": dict(fields if payload is None else payload), **own})
    try:
        refuse_unstorable(said, settings)
        task = NewTask.model_validate(said)
    except ValidationError as error:
        raise _invalid(name, Refused("invalid-task", wrong_fields(error, NewTask))) from error
    except Refused as refused:
        raise _invalid(name, refused) from refused
    return Wanted(task, payload is None)


def child_of(wanted: Wanted, actors: Actors, settings: Settings) -> Submission:
    try:
        return submission_of(wanted.task, Attempt(), settings, actors, among_options=wanted.among_options)
    except Refused as refused:
        raise _invalid(wanted.task.actor, refused) from refused


def _as_json_has_it(value: Any) -> Any:
    """A uuid or a time as text, as a client would send it."""
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        refuse_awaitables(value, "what a child is given")
        raise InvalidInput(f"what a child is given must be JSON: {error}") from error


def _invalid(actor: str, refused: Refused) -> InvalidInput:
    errors = [each._asdict() for each in refused.wrong]
    return InvalidInput(f"the child of {actor} is invalid: {refused}", code=refused.code, errors=errors)
