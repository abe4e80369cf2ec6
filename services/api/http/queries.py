"""What a query may say at each path: a parameter with a typing error must not be taken for none, and a wrong value is
refused with the values that are allowed."""

import difflib
import heapq
import logging
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from litestar import Litestar, Request, Response
from litestar.exceptions import ValidationException
from litestar.routes import HTTPRoute
from litestar.typing import FieldDefinition

from windlass.services.api.http.errors import Problem, problem_response
from windlass.shared.submission.refusal import MOST_REPORTED, escape
from windlass.shared.suggestions import did_you_mean
from windlass.shared.wording import A_MOMENT, A_UUID

log = logging.getLogger("api")

LONGEST_ECHO = 60


class Parameter(NamedTuple):
    """One that a handler, or what it depends on, takes."""

    field: FieldDefinition
    annotation: Any
    """As Litestar converts it."""
    is_required: bool
    is_sequence: bool


Known = Mapping[str, Parameter]


class QueryParameters:
    """Read once from the handlers, as Litestar understood their signatures."""

    def __init__(self) -> None:
        self._known: dict[int, Known] | None = None

    def of(self, app: Litestar, handler: object) -> Known:
        if self._known is None:
            self._known = dict(_read(app))
        return self._known[id(handler)]

    async def refuse_unknown(self, request: Request[Any, Any, Any]) -> None:
        """Before a handler is called. One that providers call takes whatever they append to its address."""
        handler = request.scope["route_handler"]
        if not request.scope["query_string"] or handler.opt.get("any_query"):
            return
        known = self.of(request.app, handler)
        given = request.query_params
        unknown = set(given) - known.keys()
        errors = [
            {"pointer": f"/{escape(name)}", "detail": f"is not a parameter of this path; {did_you_mean(name, known)}"}
            for name in heapq.nsmallest(MOST_REPORTED, unknown)
        ] or [
            {"pointer": f"/{escape(name)}", "detail": "is given more than once, and takes one value"}
            for name in sorted(given)
            if not known[name].is_sequence and len(given.getall(name)) > 1
        ]
        if errors:
            raise _refusal(errors, "unknown-parameter" if unknown else "invalid-request")

    def explain(self, request: Request[Any, Any, Any], error: ValidationException) -> Response[dict[str, Any]]:
        """In place of Litestar's own message, which names our types and patterns."""
        known = self.of(request.app, request.scope["route_handler"])
        errors = [
            {"pointer": f"/{name}", "detail": detail}
            for name, parameter in known.items()
            if (detail := _fault_of(parameter, name, request.query_params.getall(name, [])))
        ]
        if errors:
            return problem_response(request, _refusal(errors, "invalid-request"))
        log.warning("%s %s was refused: %s", request.method, request.url.path, error.extra or error.detail)
        return problem_response(request, Problem(422, "invalid-request", "a parameter of the request is not valid"))


def _refusal(errors: list[dict[str, str]], code: str) -> Problem:
    detail = "; ".join(f"`{each['pointer'][1:]}` {each['detail']}" for each in errors)
    return Problem(422, code, detail, errors=errors)


def _read(app: Litestar) -> Iterator[tuple[int, Known]]:
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for handler, model in route.route_handler_map.values():
                signatures = [each.signature_model for each in handler.resolve_dependencies().values()]
                signatures.append(handler.signature_model)
                yield (
                    id(handler),
                    {
                        each.field_alias: Parameter(
                            signature._fields[each.field_name],
                            signature.__annotations__[each.field_name],
                            each.is_required,
                            each.is_sequence,
                        )
                        for each in model.expected_query_params
                        for signature in signatures
                        if each.field_name in signature._fields
                    },
                )


def _fault_of(parameter: Parameter, name: str, given: list[str]) -> str | None:
    if not given:
        return "must be given" if parameter.is_required else None
    for value in given:
        try:
            wanted = [value] if parameter.is_sequence else value
            msgspec.convert(wanted, parameter.annotation, strict=False)
        except msgspec.ValidationError:
            return f"must be {_allowed(parameter.field, name, value)}, not `{_shortened(value)}`"
    return None


def _allowed(field: FieldDefinition, name: str, value: str) -> str:
    """What may stand there, in words."""
    kind = next(each for each in field.inner_types if not each.is_none_type) if field.is_optional else field
    if kind.is_non_string_sequence:
        (kind,) = kind.inner_types
    if name == "cursor":
        return "the `next_cursor` of the page before"
    if choices := _choices(kind):
        close = difflib.get_close_matches(_shortened(value), choices, n=1)
        return f"{_one_of(choices)} (did you mean `{close[0]}`?)" if close else _one_of(choices)
    if kind.annotation is datetime and " " in value:
        return f"{A_MOMENT} (in a URL, + is written %2B)"
    limits = field.kwarg_definition
    if kind.annotation is str:
        return f"text of {_between(limits, 'min_length', 'max_length')} characters"
    return f"{KINDS[kind.annotation]}{_between(limits, 'ge', 'le', before=' from ')}"


KINDS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    UUID: A_UUID,
    datetime: A_MOMENT,
    date: "a day, like 2030-01-31",
}


def _choices(kind: FieldDefinition) -> list[str]:
    if kind.is_subclass_of(Enum):
        return [str(each.value) for each in kind.annotation]
    return [str(each) for each in kind.args] if kind.is_literal else []


def _one_of(choices: list[str]) -> str:
    return f"one of {', '.join(choices)}" if len(choices) > 1 else choices[0]


def _between(limits: object, lowest: str, highest: str, *, before: str = "") -> str:
    low, high = getattr(limits, lowest, None), getattr(limits, highest, None)
    if low is None:
        return "" if high is None else f"at most {high}"
    return f"{before}{low} to {high}"


def _shortened(value: str) -> str:
    return value if len(value) <= LONGEST_ECHO else f"{value[:LONGEST_ECHO]}…"
