"""What is wrong with a payload by its schema: each field by its place, in our own words."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from jsonschema_rs import ValidationError
from jsonschema_rs import ValidationErrorKind as Kind

from windlass.shared.actors.schemas import Validator
from windlass.shared.suggestions import FEW, closest, did_you_mean
from windlass.shared.wording import A_MOMENT, A_UUID

Place = tuple[int | str, ...]

FEW_WORDS = 10
"""Where there are more to choose from, the likeliest is said without all the others."""
MOST_UNKNOWN = 1000
"""Unknown fields that are still reported one by one; a client that sends more made no typing error."""

TYPES = {
    "string": "text in quotes",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
FORMATS = {"uuid": A_UUID, "date-time": A_MOMENT, "date": "a date, like 2030-01-31", "email": "an e-mail address"}

FEWEST = (Kind.MinLength, Kind.MinItems, Kind.MinProperties)
MOST = (Kind.MaxLength, Kind.MaxItems, Kind.MaxProperties)
BOUNDS: dict[type[Kind], str] = {
    Kind.Minimum: "greater than or equal to",
    Kind.Maximum: "less than or equal to",
    Kind.ExclusiveMinimum: "greater than",
    Kind.ExclusiveMaximum: "less than",
    Kind.MultipleOf: "a multiple of",
}
OTHER_WORDS: dict[type[Kind], str] = {
    Kind.OneOfMultipleValid: "fits more than one of the shapes of which it may have one",
    Kind.UniqueItems: "must not hold the same item twice",
    Kind.FalseSchema: "must not be here",
    Kind.Not: "is of a kind that is excluded here",
    Kind.Contains: "does not hold an item that has to be in it",
}


class Fault(NamedTuple):
    """One thing that is wrong, and where in the payload it stands."""

    place: Place
    detail: str


def faults_of(
    validator: Validator, schema: Mapping[str, Any], payload: Any, beside: Collection[str] = ()
) -> list[Fault]:
    """All of them, in the order of the schema's fields; `beside` are names that stand next to the payload's own."""
    if (unknown := _unknown_at_top(schema, payload)) > MOST_UNKNOWN:
        return [Fault((), f"has {unknown:,} unknown fields")]
    said = (fault for error in validator.iter_errors(payload) for fault in _said_of(error, schema, beside))
    order = {name: number for number, name in enumerate(schema.get("properties", ()))}
    return sorted(
        dict.fromkeys(said), key=lambda fault: order.get(str(fault.place[0]), len(order)) if fault.place else -1
    )


def _unknown_at_top(schema: Mapping[str, Any], payload: Any) -> int:
    """Counted without the validator, which would describe each of them."""
    if schema.get("additionalProperties") is not False or not isinstance(payload, dict):
        return 0
    return len(payload.keys() - schema.get("properties", {}).keys())


def _said_of(error: ValidationError, schema: Mapping[str, Any], beside: Collection[str]) -> Iterator[Fault]:
    place = tuple(error.instance_path)
    match error.kind:
        case Kind.Required(name):
            yield Fault((*place, name), "must be given")
        case Kind.AdditionalProperties(names) | Kind.UnevaluatedProperties(names):
            known = [*_fields_at(schema, error.schema_path[:-1]), *(() if place else beside)]
            for number, name in enumerate(names):
                likely = f"; {did_you_mean(name, known)}" if number < FEW else ""
                yield Fault((*place, name), f"there is no such field{likely}")
        case Kind.AnyOf(branches) | Kind.OneOfNotValid(branches):
            yield from _of_the_likeliest(branches, place, schema, beside)
        case Kind.PropertyNames(below):
            for fault in _said_of(below, schema, beside):
                yield Fault(place, f"has a name that is wrong: {fault.detail}")
        case _:
            yield Fault(place, _in_words(error))


def _of_the_likeliest(
    branches: Sequence[Sequence[ValidationError]], place: Place, schema: Mapping[str, Any], beside: Collection[str]
) -> Iterator[Fault]:
    """Where the value may be one of several kinds: what is wrong with it as the one that it looks like."""
    alike = [errors for errors in branches if not any(_is_of_another_kind(error, place) for error in errors)]
    if alike:
        for error in min(alike, key=lambda errors: (_names_another(errors, place), len(errors))):
            yield from _said_of(error, schema, beside)
        return
    wrong = [error for errors in branches for error in errors if _is_of_another_kind(error, place)]
    kinds = list(dict.fromkeys(kind for error in wrong for kind in _kinds(error.kind)))
    chosen = [kind for kind in kinds if kind != TYPES["null"]] or kinds
    options = [each for error in wrong for each in _options(error.kind)]
    if options:
        yield Fault(place, _one_of(options, wrong[0].instance, also=[kind for kind in chosen if kind in kinds]))
    else:
        yield Fault(place, f"must be {' or '.join(chosen)}")


def _is_of_another_kind(error: ValidationError, place: Place) -> bool:
    return tuple(error.instance_path) == place and isinstance(error.kind, Kind.Type | Kind.Constant | Kind.Enum)


def _names_another(errors: Sequence[ValidationError], place: Place) -> bool:
    """Of shapes that are told apart by a word in one of their fields, that word is the first thing to go by."""
    return any(len(error.instance_path) == len(place) + 1 and isinstance(error.kind, Kind.Constant) for error in errors)


def _kinds(kind: Kind) -> list[str]:
    return [TYPES.get(each, each) for each in kind.types] if isinstance(kind, Kind.Type) else []


def _options(kind: Kind) -> list[Any]:
    if isinstance(kind, Kind.Enum):
        return list(kind.options)
    return [kind.expected_value] if isinstance(kind, Kind.Constant) else []


def _in_words(error: ValidationError) -> str:  # noqa: PLR0911 - one for each kind of words
    kind = error.kind
    if isinstance(kind, Kind.Type):
        return f"must be {' or '.join(_kinds(kind))}"
    if isinstance(kind, Kind.Enum | Kind.Constant):
        return _one_of(_options(kind), error.instance)
    if isinstance(kind, FEWEST):
        return f"must have at least {_count(kind.limit, kind)}"
    if isinstance(kind, MOST):
        return f"must have at most {_count(kind.limit, kind)}"
    if isinstance(kind, Kind.Pattern):
        return f"must match the pattern {kind.pattern}"
    if isinstance(kind, Kind.Format):
        return f"must be {FORMATS.get(kind.format, f'of the format {kind.format}')}"
    if (relation := BOUNDS.get(type(kind))) is not None:
        return f"must be {relation} {kind.value}"
    # In its own words the library repeats the value, however long it is and whatever it holds.
    return OTHER_WORDS.get(type(kind), f"is not as `{kind.name}` of its schema wants it")


def _count(limit: int, kind: Kind) -> str:
    what = "character" if isinstance(kind, Kind.MinLength | Kind.MaxLength) else "item"
    return f"{limit} {what}{'' if limit == 1 else 's'}"


def _one_of(options: Iterable[Any], given: Any, also: Sequence[str] = ()) -> str:
    words = [each if isinstance(each, str) else _as_json(each) for each in dict.fromkeys(map(_hashable, options))]
    close = closest(given, words) if isinstance(given, str) else None
    meant = "" if close is None else f"; did you mean `{close}`?"
    if len(words) > FEW_WORDS and close is not None:
        return f"is none of the {len(words)} words that may stand here{meant}"
    return f"must be {' or '.join([*words, *also])}{meant}"


def _hashable(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else _as_json(value)


def _as_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _fields_at(schema: Mapping[str, Any], path: Sequence[int | str]) -> list[str]:
    """The names that an object may have there."""
    node: Any = schema
    for part in path:
        node = node[part]
    found = dict.fromkeys(node.get("properties", ()))
    for each in node.get("allOf", ()):
        found |= dict.fromkeys(each.get("properties", ()) if isinstance(each, dict) else ())
    return list(found)
