"""Documents become the library's types, from any thread."""

import threading
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_first_use = threading.Lock()
_prepared: set[Any] = set()


def convert(document: Any, kind: type[T]) -> T:
    """What msgspec knows of a type it gathers at the type's first use; two threads that do so at once crash it."""
    if kind not in _prepared:
        with _first_use:
            msgspec.json.Decoder(kind)
            _prepared.add(kind)
    return msgspec.convert(document, kind)
