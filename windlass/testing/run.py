"""`attempt(function, …)`: one attempt after the other at one task, each with the accidents that a test wants."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, Self

import msgspec

from windlass.shared.actors.awaiting import Expected, coroutines_remembered, refuse_awaitables
from windlass.shared.scrubbing import withhold
from windlass.shared.storable import storable
from windlass.testing.calling import Called, called
from windlass.testing.memory import Kept, MemoryMachine, Step
from windlass.testing.views import Accidents, AsyncView, Crashed, View
from windlass.typed_json import as_document

NEEDED_TO_READ = {"pydantic", "pydantic_core"}


class NotCompleted(AssertionError):
    """A result was asked for, and the attempt has come to another end."""


class Misused(RuntimeError):
    """Something was asked of an attempt that has ended; `again()` begins the next."""


class Machine(Protocol):
    """Who claims, ends and keeps: memory, or a real database."""

    def claim(self) -> Any: ...
    def end(self, context: Any, result: Any, error: BaseException | None) -> None: ...
    def take_back(self) -> None: ...
    def cancel(self, context: Any) -> None: ...
    def lose_lease(self, context: Any) -> None: ...
    def look(self) -> Kept: ...
    def close(self) -> None: ...


class Run:
    """It begins when something about its end is asked for, so that what is to happen can be said before."""

    def __init__(self, called: Called, payload: dict[str, Any], machine: Machine) -> None:
        self._called = called
        self._payload = payload
        self._machine = machine
        self._accidents = Accidents()
        self._context: Any = None
        self._working: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None
        self._has_ended = False

    # What is to happen

    def cancel(self, *, after: str | None = None) -> Self:
        """Somebody cancels the task: now, or when this step has finished."""
        return self._happen(lambda: self._machine.cancel(self._context), after)

    def stop(self, *, after: str | None = None) -> Self:
        """Its worker is told to stop, and hands the task back."""
        return self._happen(lambda: self._context.stop("stopping"), after)

    def time_out(self, *, after: str | None = None) -> Self:
        """Its time is up."""
        return self._happen(self._let_time_pass, after)

    def lose_lease(self, *, after: str | None = None) -> Self:
        """The task is another's now: nothing that this attempt still says or does is kept."""
        return self._happen(lambda: self._machine.lose_lease(self._context), after)

    def crash_after(self, step: str) -> Self:
        """Its worker is killed when the step has finished."""
        return self._happen(self._accidents.crash, step)

    def crash_inside(self, step: str) -> Self:
        """Its worker is killed when the step's work is done, and nobody knows yet."""
        self._refuse_ended()
        self._accidents.inside.add(step)
        return self

    def again(self) -> Self:
        """The next attempt, which is given what the ones before have kept. One that is dead or cancelled is revived."""
        self.finish()
        if self._machine.look().status == "completed":
            raise Misused("the task has completed, and there is no next attempt")
        self._accidents, self._context, self._has_ended = Accidents(), None, False
        return self

    # What has happened

    @property
    def result(self) -> Any:
        kept = self.finish()
        if kept.status != "completed":
            said = f": {type(kept.error).__name__}: {kept.error}" if kept.error is not None else ""
            raise NotCompleted(f"attempt {kept.attempt} has left the task {kept.status}{said}") from kept.error
        return kept.result

    @property
    def status(self) -> str:
        """The task's, as REST would show it."""
        return self.finish().status

    @property
    def error(self) -> BaseException | None:
        return self.finish().error

    @property
    def events(self) -> list[dict[str, Any]]:
        """Its history over all attempts: `{type, attempt, data}`."""
        return self.finish().events

    @property
    def steps(self) -> list[Step]:
        """Those that have finished, over all attempts."""
        return list(self.finish().steps.values())

    @property
    def children(self) -> list[dict[str, Any]]:
        return list(self.finish().children.values())

    @property
    def files(self) -> dict[str, bytes]:
        """By `content_id`."""
        return self.finish().files

    @property
    def checkpoint(self) -> Any:
        return self.finish().checkpoint

    def finish(self) -> Kept:
        """Runs the attempt to its end, if that has not been done."""
        if not self._has_ended:
            self._has_ended = True
            self._attempt()
        return self._machine.look()

    # How it happens

    def _happen(self, accident: Any, after: str | None) -> Self:
        self._refuse_ended()
        if after is not None:
            self._accidents.after.setdefault(after, []).append(accident)
        elif self._context is None:
            self._accidents.at_once.append(accident)
        else:
            self._interrupt(accident)
        return self

    def _interrupt(self, accident: Any) -> None:
        """From inside the function, or from another thread: an async one is cancelled where it awaits something."""
        accident()
        if self._working is not None:
            loop, task = self._working
            loop.call_soon_threadsafe(task.cancel)

    def _refuse_ended(self) -> None:
        if self._has_ended and self._context is None:
            raise Misused("the attempt has ended; `again()` begins the next")

    def _let_time_pass(self) -> None:
        self._context.deadline = time.monotonic()

    def _attempt(self) -> None:
        context = self._context = self._machine.claim()
        result, error = None, None
        try:
            for accident in self._accidents.at_once:
                accident()
            result = _fitting(self._call(context))
            if context.stop_reason == "lost":
                context.check()
        except asyncio.CancelledError:
            error = self._reason_of_cancel(context)
        except BaseException as raised:  # noqa: BLE001 - recorded as the attempt's end
            error = raised
        finally:
            self._context = None
        if self._accidents.is_dead:
            self._machine.take_back()
            error = error if isinstance(error, Crashed) else Crashed()
        # What was taken back is no longer its own: then its end is dropped, as that of any attempt that comes too late.
        self._machine.end(context, result, error)

    def _reason_of_cancel(self, context: Any) -> BaseException:
        try:
            context.check()
        except BaseException as reason:  # noqa: BLE001 - what it was cancelled for
            return reason
        return asyncio.CancelledError()

    def _call(self, context: Any) -> Any:
        if not self._called.is_async:
            arguments = self._called.arguments(self._payload, View(context, self._accidents))
            with coroutines_remembered():
                return self._called.function(**arguments)
        view = AsyncView(context, self._accidents)
        work = self._awaited(self._called.arguments(self._payload, view), view.expected)
        return _run_apart(work) if _in_a_loop() else asyncio.run(work)

    async def _awaited(self, arguments: dict[str, Any], expected: Expected) -> Any:
        task = asyncio.current_task()
        assert task is not None
        self._working = asyncio.get_running_loop(), task
        try:
            with coroutines_remembered():
                result = await self._called.function(**arguments)
            expected.check()
            return result
        finally:
            expected.close()
            self._working = None


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run_apart(work: Any) -> Any:
    """For a test that is async itself: the function has a loop of its own, on a thread."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.extend((asyncio.run(work), None))
        except BaseException as error:  # noqa: BLE001 - raised again by who waits
            outcome.extend((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    result, error = outcome
    if error is not None:
        raise error
    return result


def _fitting(result: Any) -> Any:
    try:
        return msgspec.json.decode(msgspec.json.encode(withhold(storable(as_document(result)))))
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        refuse_awaitables(result, "the result")
        raise ValueError(f"what the function returned cannot be stored: {error}") from error


def _reader_of(function: Any, about: Called) -> Callable[[dict[str, Any]], dict[str, Any]] | None:
    """By the declaration's own rules, where there is what reads them."""
    try:
        from windlass.testing.reading import reader_of  # noqa: PLC0415 - needs pydantic
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] in NEEDED_TO_READ:
            return None
        raise
    return reader_of(function, about)


@contextmanager
def attempt(
    function: Any,
    payload: dict[str, Any] | None = None,
    /,
    *,
    database_url: str | None = None,
    timeout_seconds: float | None = None,
    **fields: Any,
) -> Iterator[Run]:
    """A run of an actor, or of a plain function, with this payload. In memory; with a `database_url`, one that
    `windlass migrate` has seen, under real claims. What was not asked for by the end of the block runs then."""
    about = called(function)
    about = about.read_by(_reader_of(function, about))
    seconds = timeout_seconds or about.timeout_seconds
    given = dict(payload) if payload is not None else fields
    machine: Machine
    if database_url is None:
        machine = MemoryMachine(about, seconds)
    else:
        from windlass.testing.real import RealMachine  # noqa: PLC0415 - needs the server's packages

        machine = RealMachine(about, given, database_url, seconds)
    run = Run(about, given, machine)
    try:
        yield run
        run.finish()
    finally:
        machine.close()
