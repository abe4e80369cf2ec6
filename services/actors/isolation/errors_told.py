"""An error that crosses from one process into another: what it is called and says, and what follows from its kind."""

import builtins
import traceback
from typing import Any

import msgspec

from windlass.shared.actors.stopped import Stopped
from windlass.shared.errors import ERROR_TYPES, PermanentError, RateLimited, TaskError

KNOWN: dict[str, type[TaskError]] = {**ERROR_TYPES, "TaskError": TaskError, "PermanentError": PermanentError}


def as_told(error: BaseException) -> dict[str, Any]:
    if isinstance(error, Stopped):
        return {"stopped": True}
    told: dict[str, Any] = {
        "names": [each.__name__ for each in type(error).__mro__],
        "message": str(error),
        "trace": "".join(traceback.format_exception(error)),
    }
    if isinstance(error, TaskError):
        told["kind"] = error.kind
        told["details"] = _plain(error.details)
        told["delays"] = error.delays
        told["is_the_providers_fault"] = error.is_the_providers_fault
    return told


def as_raised(told: dict[str, Any]) -> BaseException:
    """The same error as far as anybody here can tell: of its own name, and a child of what is known on both sides."""
    if told.get("stopped"):
        return Stopped()
    message = told["message"]
    error = _task_error(told, message) if "kind" in told else _foreign(told["names"], message)
    error.trace_elsewhere = told["trace"]  # type: ignore[attr-defined] # for `describe`
    return error


def _task_error(told: dict[str, Any], message: str) -> TaskError:
    name = told["names"][0]
    base = next(KNOWN[each] for each in told["names"] if each in KNOWN)
    own = {"kind": told["kind"], "is_the_providers_fault": told["is_the_providers_fault"]}
    delays = None if told["delays"] is None else tuple(told["delays"])
    kind = base if name == base.__name__ else type(name, (base,), {**own, "delays": delays})
    error: TaskError = _made(kind)
    TaskError.__init__(error, message, **told["details"])
    error.kind = told["kind"]
    if isinstance(error, RateLimited):
        error.retry_after = told["details"].get("retry_after")
    return error


def _foreign(names: list[str], message: str) -> Exception:
    for each in names:
        base = getattr(builtins, each, None)
        if isinstance(base, type) and issubclass(base, Exception) and not issubclass(base, BaseExceptionGroup):
            break
    else:
        base = Exception
    kind = type(names[0], (base,), {"__str__": lambda _self: message})
    error: Exception = _made(kind)
    error.args = (message,)
    return error


def _made(kind: Any) -> Any:
    """Without its own `__init__`, which may want anything."""
    return kind.__new__(kind)


def _plain(details: dict[str, Any]) -> Any:
    try:
        return msgspec.json.decode(msgspec.json.encode(details))
    except (TypeError, ValueError, RecursionError, OverflowError):
        return {name: str(value) for name, value in details.items()}
