"""Dramatiq middleware of the user's own: it sees each attempt from inside its claim, and what it may not be."""

import asyncio
import contextvars
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, cast

import dramatiq
from dramatiq.middleware import MiddlewareError, SkipMessage

from windlass.shared.actors.importing import NotLoaded, object_at
from windlass.shared.errors import PermanentError
from windlass.shared.scrubbing import scrub
from windlass.shared.settings import Settings
from windlass.shared.settings.loading import exit_over_settings
from windlass.shared.store.tasks import Claimed

log = logging.getLogger("actors")

THREADS = 4
"""For the middleware of attempts on the loop; each is started when it is first needed."""

REFUSED = {
    "AgeLimit": "a task's greatest age is `max_age_seconds`",
    "AsyncIO": "`async def` actors run on the loop of the process as they are",
    "Callbacks": "nobody calls another actor at the end; use `depends_on`",
    "GroupCallbacks": "groups are not built yet; use `depends_on`",
    "Pipelines": "pipelines are not built yet; use `depends_on`",
    "Prometheus": "every process has /metrics of its own",
    "Results": "each result is kept in Postgres, and `GET /tasks/{id}` has it",
    "Retries": "failures are tried again by `max_retries` and the delays of [retries]",
    "Shutdown": "who has to stop is told by its context, and handed back",
    "ShutdownNotifications": "who has to stop is told by its context, and handed back",
    "TimeLimit": "an attempt's time is `timeout_seconds`",
}
"""Dramatiq's own that would do what Windlass does, by their names and those of their children."""

OF_MESSAGES = {
    f"{when}_{what}"
    for when in ("before", "after")
    for what in ("process_message", "skip_message", "ack", "nack", "enqueue", "delay_message")
} | {"after_skip_message"}
"""What Dramatiq tells about messages: on the wire these are doorbells, and no tasks."""


class Guests:
    """The middleware of one process, in the order of the settings."""

    def __init__(self, guests: list[dramatiq.Middleware]) -> None:
        self._guests = guests
        self.broker: Any = None
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="middleware")

    def beside(self) -> list[dramatiq.Middleware]:
        """For the broker, which tells them of the process and its threads."""
        return [cast("dramatiq.Middleware", type("Beside", (_Beside,), {})(each)) for each in self._guests]

    @contextmanager
    def around(self, task: Claimed) -> Iterator[Callable[[Any], None]]:
        """An attempt runs inside; the result is told to what it yields. The message that they see is the task."""
        if not self._guests:
            yield lambda _result: None
            return
        message = dramatiq.MessageProxy(
            dramatiq.Message(f"{task.actor}.{task.provider}", task.actor, (), task.payload, {}, str(task.task_id))
        )
        came: list[dramatiq.Middleware] = []
        results: list[Any] = []
        try:
            for guest in self._guests:
                came.append(guest)
                self._before(guest, message)
            yield results.append
        except BaseException as error:
            self._after(came, message, exception=error)
            raise
        self._after(came, message, result=next(iter(results), None))

    @asynccontextmanager
    async def around_async(self, task: Claimed) -> AsyncIterator[Callable[[Any], None]]:
        """The same for an attempt on the loop. They may wait for something: each is called on a thread, in the
        attempt's own context."""
        if not self._guests:
            yield lambda _result: None
            return
        inside = self.around(task)
        tell = await self._on_a_thread(inside.__enter__)
        try:
            yield tell
        except BaseException as error:
            await self._on_a_thread(inside.__exit__, type(error), error, error.__traceback__)
            raise
        await self._on_a_thread(inside.__exit__, None, None, None)

    async def _on_a_thread(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What it changes of the context is changed here, too: a guest may leave something there for the actor."""
        context = contextvars.copy_context()
        call = partial(context.run, function, *arguments)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, call)
        finally:
            for variable, value in context.items():
                if variable.get(None) is not value:
                    variable.set(value)

    def _before(self, guest: dramatiq.Middleware, message: Any) -> None:
        try:
            guest.before_process_message(self.broker, message)
        except SkipMessage as error:
            raise PermanentError(f"{type(guest).__name__} has skipped it: {error}") from error
        except MiddlewareError:
            raise
        except Exception:
            log.exception("middleware %s failed before the attempt, which goes on", type(guest).__name__)

    def _after(self, came: list[dramatiq.Middleware], message: Any, **ended: Any) -> None:
        for guest in reversed(came):
            try:
                guest.after_process_message(self.broker, message, **ended)
            except Exception:
                log.exception("middleware %s failed after the attempt, which has ended", type(guest).__name__)


class _Beside:
    """A guest as the broker sees it."""

    def __init__(self, guest: dramatiq.Middleware) -> None:
        self._guest = guest

    def __getattr__(self, name: str) -> Any:
        return _nothing if name in OF_MESSAGES else getattr(self._guest, name)


def _nothing(*_arguments: Any, **_options: Any) -> None: ...


def invite(settings: Settings) -> Guests:
    """Without one of them no attempt may run, so what cannot be had ends the process, with a sentence."""
    return Guests([_invited(settings, named) for named in settings.worker.middleware])


def _invited(settings: Settings, named: str) -> dramatiq.Middleware:
    where = f"{f'{settings.config}: ' if settings.config else ''}[worker] middleware"
    try:
        found = object_at(named)
    except NotLoaded as error:
        exit_over_settings(f"{where}: {error}")
    if not (isinstance(found, type) and issubclass(found, dramatiq.Middleware)):
        exit_over_settings(f"{where}: {named} is no class of Dramatiq middleware")
    for parent in found.__mro__:
        if parent.__module__.startswith("dramatiq.") and parent.__name__ in REFUSED:
            exit_over_settings(f"{where}: {named} cannot work here: {REFUSED[parent.__name__]}")
    try:
        return found()
    except Exception as error:  # noqa: BLE001 - told, and the process ends
        exit_over_settings(f"{where}: {named} cannot be made: {scrub(f'{type(error).__name__}: {error}')}")
