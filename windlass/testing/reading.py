"""A payload as it comes to the function in production: read by the declaration's own rules, as a worker does, and where
there is what checks by schemas, checked before by the one that is drawn from the declaration, as the api does."""

import inspect
from collections.abc import Callable
from typing import Any

from windlass.actors import Actor, Misdeclared
from windlass.actors.payload import Misfit, Payload, payload_of
from windlass.shared.errors import InvalidInput
from windlass.testing.calling import Called

Read = Callable[[dict[str, Any]], dict[str, Any]]


def reader_of(function: Any, about: Called) -> Read | None:
    """None for a plain function that says too little about its parameters to be an actor: it is called as it is. An
    actor has been declared, and what is wrong with that is raised."""
    payload = payload_of(function) if isinstance(function, Actor) else _payload_of_plain(function, about)
    if payload is None:
        return None
    check = _check_by_schema(payload)

    def read(document: dict[str, Any]) -> dict[str, Any]:
        try:
            check(document)
            return payload.arguments(document)
        except Misfit as misfit:
            raise InvalidInput(f"{about.name} refuses the payload: {misfit}") from None

    return read


def _payload_of_plain(function: Any, about: Called) -> Payload | None:
    if not (inspect.isroutine(function) or inspect.isclass(function)):
        return None
    try:
        payload = payload_of(Actor(function, name=about.name))
    except Misdeclared:
        return None
    return payload if payload.context == about.context_parameter else None


def _check_by_schema(payload: Payload) -> Callable[[dict[str, Any]], None]:
    """Stricter than who reads it: to a schema, `"1"` is no number."""
    try:
        from windlass.shared.actors.faults import faults_of  # noqa: PLC0415 - needs one of the server's packages
        from windlass.shared.actors.schemas import compiled  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "jsonschema_rs":
            raise
        return lambda _document: None
    schema = payload.schema()
    validator = compiled(schema)

    def check(document: dict[str, Any]) -> None:
        faults = faults_of(validator, schema, document)
        if faults:
            raise Misfit(faults)

    return check
