"""The shapes that follow the registry: what each actor takes, as a whole task and by itself, as OpenAPI has them."""

from typing import Any

from windlass.shared.actors.task_options import OPTIONS
from windlass.shared.submission.known import Actors

COMPONENT = "#/components/schemas/{name}"
ITS_OWN = {"$id", "$schema", "$defs"}
"""Of a schema that stands alone; within the document they would mean something else."""


def payload_of(actor: str) -> str:
    return f"payload.{actor}"


def task_of(actor: str) -> str:
    return f"task.{actor}"


def shortcut_of(actor: str) -> str:
    return f"shortcut.{actor}"


def reference(name: str) -> dict[str, str]:
    return {"$ref": COMPONENT.format(name=name)}


def with_actors(shapes: dict[str, Any], actors: Actors) -> dict[str, Any]:
    """`NewTask` becomes one of many, told apart by the actor."""
    general = shapes["NewTask"]
    found = dict(shapes)
    for name, known in sorted(actors.items()):
        schema = known.definition.payload_schema
        found |= hoisted(payload_of(name), schema)
        found[task_of(name)] = task_schema(name, schema, general, known.definition.description)
        found[shortcut_of(name)] = shortcut_schema(found[payload_of(name)], general)
    found["NewTask"] = {
        "description": general["description"],
        "oneOf": [reference(task_of(name)) for name in sorted(actors)],
        "discriminator": {
            "propertyName": "actor",
            "mapping": {name: COMPONENT.format(name=task_of(name)) for name in sorted(actors)},
        },
    }
    return found


def task_schema(actor: str, schema: dict[str, Any], general: dict[str, Any], description: str) -> dict[str, Any]:
    fields = general["properties"]
    own = {
        "actor": {"const": actor, "description": fields["actor"]["description"]},
        "payload": reference(payload_of(actor)),
    }
    return {
        "type": "object",
        "description": description or f"A task of {actor}.",
        "properties": {**fields, **own},
        "required": ["actor", *(["payload"] if schema.get("required") else [])],
        "additionalProperties": False,
    }


def shortcut_schema(payload: dict[str, Any], general: dict[str, Any]) -> dict[str, Any]:
    """A payload's fields and a task's options side by side; of two that have the same name, the task's."""
    options = {name: schema for name, schema in general["properties"].items() if name in OPTIONS}
    return {**payload, "properties": {**payload.get("properties", {}), **options}}


def hoisted(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The schema under its name, and what it has in `$defs` under names that begin with it."""
    definitions = schema.get("$defs", {})
    found = {f"{name}.{each}": _moved(below, name) for each, below in definitions.items()}
    whole = {key: value for key, value in schema.items() if key not in ITS_OWN}
    return {name: _moved(whole, name), **found}


def _moved(schema: Any, name: str) -> Any:
    if isinstance(schema, list):
        return [_moved(each, name) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _pointing(value, name) if key == "$ref" else _moved(value, name) for key, value in schema.items()}


def _pointing(target: Any, name: str) -> Any:
    """Everything that a schema refers to is within itself."""
    if not (isinstance(target, str) and target.startswith("#")):
        return target
    moved = target.removeprefix("#/$defs/")
    return COMPONENT.format(name=f"{name}.{moved}" if moved != target else f"{name}{target[1:]}")
