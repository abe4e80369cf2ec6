"""Documents become the library's types, from any thread."""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_first_use = threading.Lock()
_prepared: set[Any] = set()


def convert(document: Any, kind: type[T], foreign: Callable[[Any, Any], Any] | None = None) -> T:
    """What msgspec knows of a type it gathers at the type's first use; two threads that do so at once crash it."""
    if kind not in _prepared:
        with _first_use:
            msgspec.json.Decoder(kind)
            _prepared.add(kind)
    return msgspec.convert(document, kind, dec_hook=foreign)


def plain(value: Any) -> Any:
    """What msgspec cannot write by itself: a pydantic model, wherever it stands in a payload."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    raise NotImplementedError(f"{type(value).__name__} is nothing that JSON has")
