"""What is known of the function under test: the one place that looks into it."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from windlass.shared.actors.awaiting import refuse_awaitables
from windlass.shared.actors.step_rules import is_async
from windlass.shared.errors import InvalidInput

CONTEXTS = {"Context", "AsyncContext"}
MAX_RETRIES = 3
"""Of an actor that declares no other number."""


@dataclass(frozen=True)
class Called:
    """A function, declared as an actor or not."""

    function: Callable[..., Any]
    name: str
    is_async: bool
    context_parameter: str | None
    throws: tuple[type[BaseException], ...]
    timeout_seconds: float
    max_retries: int = MAX_RETRIES
    read: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """How a worker reads its payload, where that is known."""

    def read_by(self, read: Callable[[dict[str, Any]], dict[str, Any]] | None) -> "Called":
        return replace(self, read=read)

    def arguments(self, payload: dict[str, Any], context: Any) -> dict[str, Any]:
        """As a worker gives them: the payload as JSON has it, one model whole, and the context where it is wanted."""
        signature = inspect.signature(self.function)
        given: dict[str, Any] = as_json_has_it(payload)
        taken = [each for each in signature.parameters.values() if each.name != self.context_parameter]
        if self.read is not None:
            given = self.read(given)
        elif len(taken) == 1 and hasattr(taken[0].annotation, "model_validate"):
            given = {taken[0].name: taken[0].annotation.model_validate(given)}
        if self.context_parameter is not None:
            given[self.context_parameter] = context
        try:
            signature.bind(**given)
        except TypeError as error:
            raise InvalidInput(f"{self.name} refuses the payload: {error}") from None
        return given


def called(function: Any) -> Called:
    """An `@actor`, a class whose instances can be called, or a plain function with annotated parameters."""
    plain = getattr(function, "fn", function)
    if inspect.isclass(plain):
        plain = plain()
    if not callable(plain):
        raise TypeError(f"`attempt` takes an actor or a function, and not {function!r}")
    name = getattr(function, "name", None) or getattr(plain, "__name__", type(plain).__name__)
    parameters = inspect.signature(plain, eval_str=True).parameters.values()
    context = next((each.name for each in parameters if _is_context(each)), None)
    throws = tuple(getattr(function, "throws", ()))
    seconds = getattr(function, "timeout_seconds", None) or 300.0
    retries = getattr(function, "max_retries", None)
    retries = MAX_RETRIES if retries is None else retries
    return Called(plain, str(name).lower().replace("_", "-"), is_async(plain), context, throws, seconds, retries)


def _is_context(parameter: inspect.Parameter) -> bool:
    return parameter.name == "context" or getattr(parameter.annotation, "__name__", "") in CONTEXTS


def as_json_has_it(value: Any) -> Any:
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        refuse_awaitables(value, "what should be JSON")
        raise InvalidInput(f"a payload is JSON, and this is none: {error}") from error
