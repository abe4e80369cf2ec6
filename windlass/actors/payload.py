"""An actor's payload: its schema, drawn from the annotated parameters, and how a document becomes the arguments.

The one room here that needs pydantic: it is imported where schemas are drawn and payloads are read.
"""

import inspect
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import NoneType
from typing import Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUserError
from pydantic_core import ErrorDetails

from windlass.actors.context import is_context
from windlass.actors.declaration import Actor, Misdeclared
from windlass.shared.wording import NOT_KNOWN, in_words

CANNOT_DRAW = (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema, PydanticUserError)

FIELD = "its_"
"""Before each parameter's name inside the model: pydantic has methods of its own, such as `copy`."""


class Misfit(ValueError):
    """A payload that the actor does not take; the message has all that is wrong, each with its place, and `pointer` is
    that of the first."""

    def __init__(self, wrong: Iterable[tuple[Iterable[int | str], str]]) -> None:
        said = [(_pointer(place), detail) for place, detail in wrong]
        self.pointer = said[0][0]
        super().__init__("; ".join(f"{pointer or '/'}: {detail}" for pointer, detail in said))


@dataclass(frozen=True)
class Payload:
    """How the payload of one actor is read."""

    actor: str
    model: type[BaseModel]
    whole: str | None
    """The parameter that takes the model itself."""
    context: str | None
    """The parameter that takes the context."""

    def arguments(self, document: dict[str, Any]) -> dict[str, Any]:
        """Raises Misfit."""
        config = self.model.model_config
        extra: Literal["forbid"] | None = None if "extra" in config else "forbid"
        try:
            # No stricter than the schema, by which it was accepted. Who is strict all the same is so about JSON, which
            # has neither tuples nor dates.
            if config.get("strict"):
                read = self.model.model_validate_json(json.dumps(document), extra=extra)
            else:
                read = self.model.model_validate(document, extra=extra)
        except ValidationError as error:
            raise Misfit((each["loc"], _in_words(each)) for each in error.errors(include_url=False)) from None
        if self.whole is not None:
            return {self.whole: read}
        return {name.removeprefix(FIELD): getattr(read, name) for name in self.model.model_fields}

    def schema(self) -> dict[str, Any]:
        try:
            drawn = self.model.model_json_schema()
        except CANNOT_DRAW as error:
            raise Misdeclared(f"actor {self.actor}: no JSON Schema can be drawn: {_first_line(error)}") from None
        if "extra" not in self.model.model_config:
            drawn["additionalProperties"] = False
        return drawn


def payload_of(actor: Actor[..., Any]) -> Payload:
    """Raises Misdeclared with what is wrong with the parameters."""
    hints = _hints(actor)
    parameters = list(inspect.signature(actor.called).parameters.values())[1 if actor.is_class else 0 :]
    context, taken = None, []
    for each in parameters:
        _check(actor.name, each, hints)
        if is_context(hints[each.name]):
            context = each.name
        else:
            taken.append(each)
    if len(taken) == 1 and _is_model(model := hints[taken[0].name]):
        return Payload(actor.name, model, taken[0].name, context)
    fields: dict[str, Any] = {each.name: (hints[each.name], each.default) for each in taken}
    return Payload(actor.name, _model(actor.name, fields), None, context)


def result_schema_of(actor: Actor[..., Any]) -> dict[str, Any] | None:
    """None where the annotation says nothing, or what it says is nothing that JSON can be checked by."""
    returned = _hints(actor).get("return", Any)
    if returned in (Any, None, NoneType):
        return None
    try:
        return TypeAdapter(returned).json_schema(mode="serialization")
    except CANNOT_DRAW:
        return None


def plain(result: Any) -> Any:
    """A model as the JSON that it stands for; everything else as it is."""
    return result.model_dump(mode="json") if isinstance(result, BaseModel) else result


def _hints(actor: Actor[..., Any]) -> dict[str, Any]:
    called: Callable[..., Any] = actor.called
    try:
        return get_type_hints(called, include_extras=True)
    except NameError as error:
        raise Misdeclared(
            f"actor {actor.name}: its annotations cannot be read, for {error}; import it outside `if TYPE_CHECKING:`"
        ) from None


def _check(actor: str, parameter: inspect.Parameter, hints: dict[str, Any]) -> None:
    name, kind = parameter.name, parameter.kind
    if kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
        stars = "*" if kind is parameter.VAR_POSITIONAL else "**"
        raise Misdeclared(f"actor {actor}: {stars}{name} says nothing about the payload; name its fields one by one")
    if kind is parameter.POSITIONAL_ONLY:
        raise Misdeclared(f"actor {actor}: parameter {name} must be one that can be given by its name, not before a /")
    if name not in hints:
        wanted = ": windlass.Context" if name == "context" else ", as in `text: str`"
        raise Misdeclared(f"actor {actor}: parameter {name} has no annotation; give it one{wanted}")


def _model(actor: str, fields: dict[str, Any]) -> type[BaseModel]:
    declared: dict[str, Any] = {
        f"{FIELD}{name}": (
            annotation,
            Field(alias=name) if default is inspect.Parameter.empty else Field(default, alias=name),
        )
        for name, (annotation, default) in fields.items()
    }
    title = "".join(word.capitalize() for word in actor.split("-"))
    try:
        return create_model(title, __config__=ConfigDict(extra="forbid", frozen=True), **declared)
    except CANNOT_DRAW as error:
        raise Misdeclared(f"actor {actor}: its payload cannot be JSON: {_first_line(error)}") from None


def _is_model(annotation: Any) -> bool:
    return inspect.isclass(annotation) and issubclass(annotation, BaseModel)


def _pointer(place: Iterable[int | str]) -> str:
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in place)


def _in_words(problem: ErrorDetails) -> str:
    return "there is no such field" if problem["type"] in NOT_KNOWN else in_words(problem)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
