"""What a step may be called and may come to: one set of rules, for workers and for tests that run without one."""

import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import msgspec

from windlass.shared.actors.awaiting import refuse_awaitables
from windlass.shared.errors import InvalidStep, ResultTooDeep, ResultTooLarge
from windlass.shared.scrubbing import withhold, withhold_label
from windlass.shared.storable import is_deeper_than, storable, storable_text
from windlass.typed_json import DoesNotFit, Unreadable, as_document, promised_by, read_as

LARGEST_BYTES = 1_000_000
"""Of all that a task's steps have come to, as JSON."""
DEEPEST_LEVELS = 64
LONGEST_NAME = 200

_inside: ContextVar[str] = ContextVar("windlass_step", default="")


class StepBook:
    """One attempt's: which steps it has begun, and how much all of its task's hold. For threads as well as for a loop,
    where several steps may be under way at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun: set[str] = set()
        self._sizes: dict[str, int] = {}

    def remember(self, earlier: Mapping[str, Any]) -> None:
        """What earlier attempts have come to counts, too."""
        with self._lock:
            self._sizes |= {name: len(msgspec.json.encode(result)) for name, result in earlier.items()}

    def begin(self, name: str) -> str:
        """The name as it is stored. Each is begun once in an attempt: else nobody could tell which one has finished."""
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
            raise InvalidStep(f"a step's name is text of 1 to {LONGEST_NAME} characters, and not {str(name)[:80]!r}")
        stored = withhold_label(storable_text(name))
        with self._lock:
            if stored in self._begun:
                message = f"there are two steps {stored!r} in one attempt; in a loop, give each a name of its own"
                raise InvalidStep(message, step=stored)
            self._begun.add(stored)
        return stored

    def fit(self, name: str, result: Any) -> bytes:
        """The result as it is kept, if it can be: another attempt would only come to the same."""
        if is_deeper_than(result, DEEPEST_LEVELS):
            message = f"step {name!r} came to JSON that is nested more than {DEEPEST_LEVELS} levels deep"
            raise ResultTooDeep(message, step=name, limit_levels=DEEPEST_LEVELS)
        try:
            written = msgspec.json.encode(withhold(storable(as_document(result))))
        except (TypeError, ValueError, RecursionError, OverflowError) as error:
            refuse_awaitables(result, f"the result of step {name!r}")
            message = (
                f"step {name!r} returned something that JSON cannot hold ({error}): return text, numbers, lists, "
                "dicts, dataclasses or pydantic models"
            )
            raise InvalidStep(message, step=name) from error
        with self._lock:
            before = sum(self._sizes.values())
            if before + len(written) > LARGEST_BYTES:
                message = (
                    f"step {name!r} came to {len(written):,} bytes as JSON; with the {before:,} of the steps before it "
                    f"that is more than the {LARGEST_BYTES:,} that all steps of a task may hold. Keep what is large "
                    "with `context.store_file` and return its content_id"
                )
                sizes = {"size_bytes": len(written), "before_bytes": before, "limit_bytes": LARGEST_BYTES}
                raise ResultTooLarge(message, step=name, **sizes)
            self._sizes[name] = len(written)
        return written


class Call:
    """One call of a step's function, whose result the actor is given as the function's annotation promises it."""

    def __init__(self, name: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._name = name
        self._function = function
        self._unreadable: Unreadable | None = None
        try:
            self._promised = promised_by(function, arguments)
        except Unreadable as error:
            self._promised, self._unreadable = Any, error

    def result(self, written: bytes, returned: Any) -> Any:
        """What a later attempt would be given, too: the first must not see another type, or a bug would show only after
        a crash. Called before `written` is stored."""
        document = msgspec.json.decode(written)
        try:
            result = self._read(document)
        except DoesNotFit as error:
            message = (
                f"step {self._name!r} returned a value that does not fit the return annotation of {self._called()}: "
                f"{error}. It is not stored; change the annotation or the value"
            )
            raise InvalidStep(message, step=self._name) from None
        if self._unreadable is not None and document != returned:
            message = (
                f"step {self._name!r}: the result cannot be given to a later attempt as the type that {self._called()} "
                f"is annotated with: {self._unreadable}. Return plain JSON, a dataclass or a pydantic model, and "
                "import the annotation outside `if TYPE_CHECKING:`"
            )
            raise InvalidStep(message, step=self._name)
        return result

    def stored(self, document: Any) -> Any:
        """The result of an earlier attempt."""
        try:
            return self._read(document)
        except DoesNotFit as error:
            message = (
                f"the stored result of step {self._name!r} does not fit the return annotation of {self._called()}: "
                f"{error}. An earlier attempt stored it; restore the annotation, or rename the step to run it again"
            )
            raise InvalidStep(message, step=self._name) from None

    def _read(self, document: Any) -> Any:
        try:
            return read_as(document, self._promised)
        except Unreadable as error:
            self._unreadable = error
            return document

    def _called(self) -> str:
        called = inspect.unwrap(self._function)
        code = getattr(called, "__code__", None)
        name = getattr(called, "__qualname__", type(called).__name__)
        return name if code is None else f"{name} ({code.co_filename}:{code.co_firstlineno})"


@contextmanager
def inside(name: str) -> Iterator[None]:
    """What is called until the end belongs to this step, also in the tasks and threads that asyncio starts from it."""
    token = _inside.set(name)
    try:
        yield
    finally:
        _inside.reset(token)


def step_under_way() -> str:
    """Empty outside of all steps."""
    return _inside.get()


def is_async(function: Callable[..., Any]) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    if getattr(function, "is_awaited", False):
        return True
    return any(inspect.iscoroutinefunction(each) for each in (inspect.unwrap(function), type(function).__call__))


def refuse_async(name: str, function: Callable[..., Any]) -> None:
    if is_async(function):
        message = f"step {name!r} is an async function, and its actor is not: make the actor `async def` and await it"
        raise InvalidStep(message, step=name)


def refuse_awaitable(name: str, result: Any) -> Any:
    """A plain function that only makes a coroutine has done nothing yet."""
    if inspect.isawaitable(result):
        if inspect.iscoroutine(result):
            result.close()
        message = f"step {name!r} returned something to await, and its actor is not async: make the actor `async def`"
        raise InvalidStep(message, step=name)
    return result


def refuse_plain(name: str, function: Callable[..., Any]) -> None:
    """Before it is called: it would hold up all that runs on the same loop."""
    if not is_async(function):
        called = getattr(function, "__name__", "fn")
        message = (
            f"step {name!r} is a plain function in an async actor, where it would hold up everybody else: "
            f'write `await context.step("{name}", asyncio.to_thread, {called}, …)`'
        )
        raise InvalidStep(message, step=name)
