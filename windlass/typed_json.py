"""Values as JSON and back: results of actors and steps are read by the annotation that promises their type, and the
client reads its documents in the same way.

pydantic is used where it is loaded, and never imported here: the client does without it.
"""

import asyncio
import functools
import inspect
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine
from types import NoneType, SimpleNamespace
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

T = TypeVar("T")

_first_use = threading.Lock()
_prepared: set[Any] = set()


class Unreadable(TypeError):
    """An annotation that JSON cannot be read by."""


class DoesNotFit(ValueError):
    """JSON that is not what the annotation promises."""


def convert(document: Any, kind: type[T], foreign: Callable[[Any, Any], Any] | None = None) -> T:
    """The document as the type. The lock is for msgspec, which crashes if two threads use a type for the first time at
    once."""
    if kind not in _prepared:
        with _first_use:
            msgspec.json.Decoder(kind)
            _prepared.add(kind)
    return msgspec.convert(document, kind, dec_hook=foreign, str_keys=True)


def plain(value: Any) -> Any:
    """An encoding hook: msgspec cannot write a pydantic model by itself."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} is nothing that JSON has")


def as_document(value: Any) -> Any:
    """The value in dicts, lists, text and numbers. Raises TypeError, or what else encoding raises."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=plain)


def read_as(document: Any, kind: Any) -> Any:
    """The document as the type. Raises DoesNotFit, and Unreadable for a type that JSON cannot be read by."""
    if kind is Any or kind is object or isinstance(kind, TypeVar):
        return document
    try:
        return convert(document, kind, _read_model)
    except msgspec.ValidationError as error:
        raise DoesNotFit(str(error)) from None
    except (TypeError, NotImplementedError):
        return _read_by_pydantic(document, kind)


def promised_by(function: Callable[..., Any], arguments: tuple[Any, ...] = ()) -> Any:
    """The type that a call, or an awaited call, returns according to the annotation; `Any` where there is none. A class
    returns itself, and `asyncio.to_thread` what its first argument does. Raises Unreadable for an annotation that
    names something that does not exist at run time."""
    while isinstance(function, functools.partial):
        arguments, function = (*function.args, *arguments), function.func
    if function is asyncio.to_thread and arguments:
        return promised_by(arguments[0], arguments[1:])
    if inspect.isclass(function):
        return function
    called: Any = inspect.unwrap(function)
    if not hasattr(called, "__annotations__"):
        called = type(called).__call__
    said = SimpleNamespace(__annotations__={"return": getattr(called, "__annotations__", {}).get("return", Any)})
    names = getattr(getattr(called, "__func__", called), "__globals__", {})
    try:
        kind = get_type_hints(said, globalns=names, include_extras=True)["return"]
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise Unreadable(str(error)) from None
    return get_args(kind)[-1] if get_origin(kind) in {Awaitable, Coroutine} else kind


def _read_model(kind: Any, document: Any) -> Any:
    """A type that msgspec does not know. Models are written by the names of their fields, and read so, too."""
    if hasattr(kind, "model_validate_json"):
        return kind.model_validate_json(msgspec.json.encode(document), by_name=True)
    raise NotImplementedError(kind)


def _read_by_pydantic(document: Any, kind: Any) -> Any:
    """What msgspec cannot tell apart, such as a union of two models."""
    pydantic = sys.modules.get("pydantic")
    if pydantic is None or kind is NoneType:
        raise Unreadable(f"{kind!r} cannot be read from JSON")
    try:
        adapter = pydantic.TypeAdapter(kind)
    except Exception:  # noqa: BLE001 - its errors for what it does not know have no common class
        raise Unreadable(f"{kind!r} cannot be read from JSON") from None
    try:
        return adapter.validate_json(msgspec.json.encode(document), by_name=True)
    except ValueError as error:
        raise DoesNotFit(str(error)) from None
