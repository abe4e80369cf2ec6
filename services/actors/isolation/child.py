"""`python -m …isolation.child`: one attempt of an isolated actor, in the process that its keeper has started for it."""

import asyncio
import faulthandler
import io
import logging
import signal
import socket
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from windlass.actors.payload import Misfit, payload_of
from windlass.services.actors.isolation.context import IsolatedContext
from windlass.services.actors.isolation.errors_told import as_told
from windlass.services.actors.isolation.frames import TooLong
from windlass.services.actors.isolation.line import Line
from windlass.shared.actors.attempt.faces import AwaitedContext
from windlass.shared.actors.awaiting import refuse_awaitables, remember_where_coroutines_are_made
from windlass.shared.actors.finding import find
from windlass.shared.actors.importing import NotLoaded
from windlass.shared.actors.stopped import Stopped
from windlass.shared.errors import InvalidInput, ResultTooDeep, ResultTooLarge, SubprocessFailed
from windlass.typed_json import as_document


def main() -> None:
    """The argument is the number of the socket that leads to the worker."""
    line = Line(socket.socket(fileno=int(sys.argv[-1])))
    order = line.first()
    sys.path[:] = order["path"]
    faulthandler.enable()
    for stream in (sys.stdout, sys.stderr):
        assert isinstance(stream, io.TextIOWrapper)
        stream.reconfigure(line_buffering=True, errors="replace")
    context = IsolatedContext(order, line)
    logging.basicConfig(level=order["log_level"], format="%(message)s", handlers=[Lines(line)])
    signal.signal(signal.SIGTERM, lambda *_: _told_to_end(context))
    line.listen()
    end = _attempt(order, context)
    # What it leaves behind may take a moment to end; whoever sends a TERM now means it.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _say(line, end)


class Lines(logging.Handler):
    """Whatever is logged here is logged by the worker, whose lines say which task they are about."""

    def __init__(self, line: Line) -> None:
        super().__init__()
        self._line = line

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._line.tell("log", name=record.name, level=record.levelno, text=self.format(record))
        except Exception:  # noqa: BLE001 - as every handler does it
            self.handleError(record)


def _told_to_end(context: IsolatedContext) -> None:
    """It has been told before and went on: it is stopped where it is, and may still clear up behind itself."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    context.stop("stopping")
    raise Stopped


def _attempt(order: dict[str, Any], context: IsolatedContext) -> dict[str, Any]:
    throws: tuple[type[BaseException], ...] = ()
    try:
        actor, payload = _loaded(order)
        throws = actor.throws
        arguments = payload.arguments(order["payload"])
        call = actor.fn() if actor.is_class else actor.fn
        inside = AwaitedContext(context)
        if payload.context is not None:
            arguments[payload.context] = inside if actor.is_async else context
        context.check()
        remember_where_coroutines_are_made()
        answer = call(**arguments)
        result = _awaited(answer, context) if actor.is_async else answer
        inside.expected.check()
        return {"result": _as_document(result)}
    except Misfit as error:
        return {"error": as_told(InvalidInput(f"in its own process the actor does not take its payload: {error}"))}
    except throws as error:
        return {"error": as_told(error), "thrown": True}
    except BaseException as error:  # noqa: BLE001 - the attempt ends with it, over there
        return {"error": as_told(error)}


def _as_document(result: Any) -> Any:
    """It crosses to the worker as JSON."""
    refuse_awaitables(result, "the result")
    try:
        return as_document(result)
    except (TypeError, ValueError, RecursionError, OverflowError):
        return result  # told apart where it is sent


def _loaded(order: dict[str, Any]) -> tuple[Any, Any]:
    """The worker has loaded it as well: what fails here has changed since, or does not like to be alone."""
    try:
        actor = find(order["actor"], module=order["module"], function=order["function"])
    except NotLoaded as error:
        raise SubprocessFailed(f"in its own process actor {order['actor']} cannot be had: {error}") from error
    return actor, payload_of(actor)


def _awaited(work: Coroutine[Any, Any, Any], context: IsolatedContext) -> Any:
    async def to_its_end() -> Any:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def cancel() -> None:
            with suppress(RuntimeError):  # it has ended meanwhile
                loop.call_soon_threadsafe(task.cancel)

        context.listen(cancel)
        if context.should_end():
            cancel()
        return await work

    try:
        return asyncio.run(to_its_end())
    except BaseException:
        context.check()
        raise


def _say(line: Line, end: dict[str, Any]) -> None:
    try:
        line.end(end)
    except TooLong as error:
        line.end({"error": as_told(ResultTooLarge(f"the result has {error}"))})
    except RecursionError:
        line.end({"error": as_told(ResultTooDeep("the result is JSON that is nested deeper than can be kept"))})
    except (TypeError, ValueError, OverflowError) as error:
        said = ValueError(f"what the attempt said or returned cannot be stored: not storable as JSON: {error}")
        line.end({"error": as_told(said)})


if __name__ == "__main__":
    main()
