"""One question to the API and how to read its answer, for whoever carries it over."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import msgspec

from windlass.client.errors import UnreadableAnswer
from windlass.client.task import Listing
from windlass.typed_json import convert, plain

T = TypeVar("T")
Item = TypeVar("Item")

Params = Mapping[str, Any]


@dataclass(frozen=True)
class Request:
    """What goes over the wire; `held_back_seconds` is how long the server may hold the answer back on purpose."""

    method: str
    path: str
    params: Params = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    held_back_seconds: float = 0


@dataclass(frozen=True)
class Call(Generic[T]):
    """`repeatable` calls may be sent again when it is not known whether they arrived."""

    method: str
    path: str
    answer: type[T]
    params: Params = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = True
    repeated_on: frozenset[int] = frozenset()
    held_back_seconds: float = 0
    cursor: str = "cursor"
    is_raw: bool = False
    """The answer is bytes and no document."""

    def request(self) -> Request:
        headers, body = dict(self.headers), None
        if self.body is not None:
            headers["Content-Type"] = "application/json"
            body = msgspec.json.encode(self.body, enc_hook=plain)
        return Request(self.method, self.path, given(self.params), headers, body, self.held_back_seconds)

    def with_params(self, **params: Any) -> "Call[T]":
        return replace(self, params={**self.params, **params})

    def read(self, document: Any) -> T:
        if self.is_raw:
            raw: T = document
            return raw
        try:
            return convert(document, self.answer)
        except msgspec.ValidationError as error:
            raise UnreadableAnswer(f"the answer to {self.method} {self.path} is not understood: {error}") from error


def next_page(call: Call[Listing[Item]], page: Listing[Item]) -> Call[Listing[Item]] | None:
    if page.next_cursor is None:
        return None
    return call.with_params(**{call.cursor: page.next_cursor})


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that were given, as a query has them."""
    return {name: _as_text(value) for name, value in values.items() if value is not None}


def _as_text(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_as_text(each) for each in value]
    text = msgspec.to_builtins(value)
    return ("true" if text else "false") if isinstance(text, bool) else text
