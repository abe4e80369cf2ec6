"""An actor of one's own as the client knows it: its name, its fields, and what it promises to return."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeVar, cast, get_type_hints

import msgspec

from windlass.client.errors import UnreadableAnswer
from windlass.client.options import SubmitOptions
from windlass.client.task import Task
from windlass.typed_json import DoesNotFit, Unreadable, promised_by, read_as

R_co = TypeVar("R_co", covariant=True)

OPTIONS: Final = frozenset(SubmitOptions.__annotations__)


class Declared(Protocol[R_co]):
    """What `@actor` makes of a function."""

    @property
    def name(self) -> str: ...

    @property
    def called(self) -> Callable[..., Any]:
        """What runs for a task, with its annotations."""

    @property
    def fields(self) -> tuple[str, ...]:
        """Its parameters without the context."""

    def __call__(self, *arguments: Any, **options: Any) -> R_co: ...


def name_of(actor: str | Declared[Any]) -> str:
    name = actor if isinstance(actor, str) else getattr(actor, "name", None)
    if not isinstance(name, str):
        raise TypeError(f"an actor or its name is wanted, and {actor!r} is neither; has it an @actor before it?")
    return name


def asked_for(
    actor: str | Declared[Any], arguments: tuple[Any, ...], said: Mapping[str, Any], **of_the_call: Any
) -> tuple[str, Mapping[str, Any] | None, SubmitOptions]:
    """Name, payload and options. One mapping or model is the payload; other arguments are fields, as Python would give
    them to the function. Fields may stand among the options, as in `POST /tasks/{actor}`."""
    name = name_of(actor)
    if not arguments and said.get("payload") is not None:
        arguments, said = (said["payload"],), {key: value for key, value in said.items() if key != "payload"}
    first = arguments[0] if len(arguments) == 1 else None
    if isinstance(actor, str) and arguments and first is None and arguments != (None,):
        raise TypeError(f"{name} takes one payload, and {len(arguments)} were given")
    if isinstance(actor, str) or isinstance(first, Mapping) or hasattr(first, "model_dump"):
        return name, _whole(first), cast(SubmitOptions, dict(said))
    given = dict(fields_of_a_call(actor, arguments, {})) if arguments not in {(), (None,)} else {}
    taken = (OPTIONS & said.keys()) | {key for key, value in of_the_call.items() if value is not None}
    if clash := sorted(taken & set(actor.fields)):
        raise TypeError(
            f"{clash[0]} is a field of {name} and an option of its task; give the fields apart: {{{clash[0]!r}: …}}"
        )
    fields = {**given, **{key: value for key, value in said.items() if key not in OPTIONS}}
    options = {key: value for key, value in said.items() if key in OPTIONS}
    return name, _one_model(actor, fields), cast(SubmitOptions, options)


def fields_of_a_call(actor: Declared[Any], arguments: tuple[Any, ...], fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The payload that arguments make, as Python would give them to the function."""
    names = actor.fields
    if len(arguments) > len(names):
        raise TypeError(f"{actor.name} takes {len(names)} fields, and {len(arguments)} were given")
    given = dict(zip(names, arguments, strict=False))
    if twice := sorted(given.keys() & fields.keys()):
        raise TypeError(f"{actor.name} was given {twice[0]} twice")
    return _one_model(actor, {**given, **fields})


def required_of(actor: Declared[Any]) -> tuple[str, ...]:
    """The fields that a payload of it cannot do without, in their order."""
    try:
        hints = get_type_hints(actor.called)
    except NameError:
        hints = {}
    model = getattr(hints.get(actor.fields[0]), "model_fields", None) if len(actor.fields) == 1 else None
    if model is not None:
        return tuple(name for name, about in model.items() if about.is_required())
    parameters = inspect.signature(actor.called).parameters
    return tuple(name for name in actor.fields if parameters[name].default is inspect.Parameter.empty)


def with_its_result(actor: str | Declared[Any], task: Task) -> Task:
    """The task, its result as the actor's annotation has it: a model or a tuple is one again."""
    if isinstance(actor, str) or task.result is None:
        return task
    try:
        return msgspec.structs.replace(task, result=read_as(task.result, promised_by(actor.called)))
    except DoesNotFit as error:
        raise UnreadableAnswer(
            f"task {task.task_id} has completed, and its result is not what {actor.name} promises: {error}; "
            "`get` has it as it is"
        ) from error
    except Unreadable:
        return task  # an annotation that nobody can read documents by says nothing


def _one_model(actor: Declared[Any], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """An actor that takes one model may be given it whole."""
    only = next(iter(given.values())) if tuple(given) == actor.fields and len(given) == 1 else None
    return _whole(only) or given if hasattr(only, "model_dump") else given


def _whole(payload: Any) -> Mapping[str, Any] | None:
    document: Mapping[str, Any] | None = payload.model_dump(mode="json") if hasattr(payload, "model_dump") else payload
    return document
