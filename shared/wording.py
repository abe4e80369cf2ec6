"""What is wrong with a value, in our own words: what was meant instead, and what there is to choose from."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, is_dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, ErrorDetails, core_schema

from windlass.shared.suggestions import closest

NOT_KNOWN = {"extra_forbidden", "unexpected_keyword_argument"}

A_UUID = "a UUID, like 01890a5d-ac96-774b-bcce-b302099a8057"
A_MOMENT = "a time in ISO 8601 with its zone, like 2030-01-31T12:00:00Z"

KINDS = {
    "string_type": "text in quotes",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "dataclass_type": "an object",
    "uuid_parsing": A_UUID,
    "uuid_type": A_UUID,
    "datetime_type": A_MOMENT,
    "datetime_parsing": A_MOMENT,
    "datetime_from_date_parsing": A_MOMENT,
    "timezone_aware": A_MOMENT,
    "finite_number": "a finite number",
}


@dataclass(frozen=True)
class Shaped:
    """For `Annotated`: text of a pattern. What does not match is refused in words; the pattern itself is shown in the
    OpenAPI document only."""

    pattern: str
    words: str

    def check(self, text: str) -> str:
        if not re.fullmatch(self.pattern, text):
            raise ValueError(self.words)
        return text

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "pattern": self.pattern}


def in_words(problem: ErrorDetails) -> str:
    """A check of pydantic's that failed, as one of us would say it."""
    kind, context = problem["type"], problem.get("ctx") or {}
    if kind == "missing":
        return "must be given"
    if kind in KINDS:
        return f"must be {KINDS[kind]}"
    if kind in {"literal_error", "enum"}:
        choices = re.findall(r"'([^']*)'", str(context["expected"]))
        given = problem.get("input")
        close = closest(given, choices) if isinstance(given, str) else None
        meant = "" if close is None else f"; did you mean `{close}`?"
        return f"must be {' or '.join(choices)}{meant}"
    said = problem["msg"].removeprefix("Value error, ")
    return re.sub("^(Input|String|List|Tuple|Dictionary|Value) should", "must", said)


def names_at(model: Any, place: Iterable[int | str]) -> list[str]:
    """The fields that there are at a place of a document."""
    kinds = _alternatives(model)
    for part in place:
        kinds = [below for kind in kinds for below in _below(kind, part)]
    return list(dict.fromkeys(name for kind in kinds for name in _fields(kind)))


def _fields(kind: Any) -> dict[str, Any]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {str(field.alias or name): field.annotation for name, field in kind.model_fields.items()}
    if isinstance(kind, type) and is_dataclass(kind):
        return {name: hint for name, hint in get_type_hints(kind).items() if not name.startswith("__")}
    return {}


def _below(kind: Any, part: int | str) -> list[Any]:
    if fields := _fields(kind):
        return _alternatives(fields.get(str(part)))
    if get_origin(kind) is dict:
        return _alternatives(get_args(kind)[1])
    if get_origin(kind) in {list, tuple}:
        return _alternatives(get_args(kind)[0])
    return []


def _alternatives(kind: Any) -> list[Any]:
    if get_origin(kind) is Annotated:
        return _alternatives(get_args(kind)[0])
    if get_origin(kind) in {Union, UnionType}:
        return [below for each in get_args(kind) for below in _alternatives(each)]
    return [kind]
