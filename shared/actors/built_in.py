"""The definitions of the actors that come with Windlass, drawn from the payloads that they take."""

from typing import Any

from windlass.shared.actors.definition import Definition
from windlass.shared.actors.payloads import PAYLOADS
from windlass.shared.toml_tables import DEFAULT_ACTORS

NOT_DEFINED = {"module", "retries", "concurrency"}
"""What a table says, and is not the same for everybody."""


def built_in() -> dict[str, Definition]:
    """By name. What `[actors.NAME]` says goes over it where a task is taken: a definition is the same for everybody."""
    return {
        name: Definition(
            name=name,
            payload_schema=without_titles(payload.model_json_schema()),
            description=" ".join((payload.__doc__ or "").split()),
            **{key: said for key, said in DEFAULT_ACTORS[name].items() if key not in NOT_DEFINED},
        )
        for name, payload in PAYLOADS.items()
    }


def without_titles(schema: Any) -> Any:
    """Pydantic titles every field with its own name. A field that is itself called `title` has a schema there."""
    if isinstance(schema, dict):
        return {
            name: without_titles(below)
            for name, below in schema.items()
            if not (name == "title" and isinstance(below, str))
        }
    return [without_titles(each) for each in schema] if isinstance(schema, list) else schema
