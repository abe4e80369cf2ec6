"""What an actor asks for when it submits a child: the actor, the payload and the options, as JSON has them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from windlass.shared.actors.awaiting import refuse_awaitables
from windlass.shared.actors.task_options import OPTIONS
from windlass.shared.errors import InvalidInput
from windlass.shared.suggestions import did_you_mean

NOT_FOR_CHILDREN = {
    "user_id": "a child is its parent's user's",
    "parent_task_id": "a child's parent is the task that makes it",
    "dedupe_key": "a child is made once by itself",
    "dedupe_ttl_seconds": "a child is made once by itself",
    "webhook_url": "subscribe a webhook to what becomes of tasks",
}


class ChildRequest(NamedTuple):
    """`among_options`: the payload's fields were given as keyword arguments."""

    actor: str
    payload: dict[str, Any]
    options: dict[str, Any]
    among_options: bool

    @classmethod
    def of(cls, actor: Any, payload: Mapping[str, Any] | None, options: dict[str, Any]) -> "ChildRequest":
        """Raises InvalidInput."""
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
        return cls(said.pop("actor"), said.pop("payload"), said, payload is None)


def _as_json_has_it(value: dict[str, Any]) -> dict[str, Any]:
    """A uuid or a time as text, as a client would send it."""
    try:
        return msgspec.json.decode(msgspec.json.encode(value), type=dict[str, Any])
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        refuse_awaitables(value, "what a child is given")
        raise InvalidInput(f"what a child is given must be JSON: {error}") from error
