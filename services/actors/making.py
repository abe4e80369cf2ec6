"""The actors that this process works with: each is made once, from what was loaded, and runs claimed attempts."""

import inspect
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from windlass.actors.payload import Misfit, Payload, plain
from windlass.services.actors.isolation.attempts import Isolated
from windlass.services.actors.worker.context.async_context import AsyncAttempt
from windlass.services.actors.worker.context.context import Context
from windlass.services.actors.worker.ending.refusals import refusal_of
from windlass.shared.actors.awaiting import remember_where_coroutines_are_made
from windlass.shared.actors.loading import Loaded, LoadedActor
from windlass.shared.actors.versions import Version
from windlass.shared.concerns import Concern
from windlass.shared.db import Database
from windlass.shared.errors import Thrown
from windlass.shared.scrubbing import scrub
from windlass.shared.settings import OWN, Settings


@runtime_checkable
class Resident(Protocol):
    """An actor that has something to do beside its attempts, for as long as its process lives."""

    async def prepare(self, pool: Database) -> None:
        """Before the first task is taken; whoever cannot work here raises `SystemExit`."""

    async def accompany(self, ask: Callable[..., Coroutine[Any, Any, Any]]) -> None:
        """Runs beside the attempts; `ask(intent)` is a call of the store."""


@dataclass(frozen=True)
class Worker:
    """An actor at work in this process."""

    call: Callable[..., Any]
    payload: Payload
    is_async: bool
    throws: tuple[type[BaseException], ...]
    version: Version
    heard_within_seconds: float
    """So long ago a worker of another version may have been heard of last, and lives."""

    @property
    def holds_a_thread(self) -> bool:
        return not self.is_async

    def run(self, context: Context) -> Any:
        """One attempt, to its result."""
        try:
            arguments = self._arguments(context, context)
        except Misfit as error:
            raise self._refusal(context, error) from None
        remember_where_coroutines_are_made()
        try:
            return plain(self.call(**arguments))
        except self.throws as error:
            raise Thrown(error) from error

    async def run_async(self, context: Context) -> Any:
        """The same of a coroutine, on the loop."""
        inside = AsyncAttempt(context)
        try:
            arguments = self._arguments(context, inside)
        except Misfit as error:
            raise await context.on_loop().call(self._refusal, context, error) from None
        remember_where_coroutines_are_made()
        try:
            result = await self.call(**arguments)
            inside.expected.check()
            return plain(result)
        except self.throws as error:
            raise Thrown(error) from error
        finally:
            inside.expected.close()

    def _arguments(self, context: Context, seen_from_inside: Any) -> dict[str, Any]:
        """It was accepted by what was known of the actor then, which may have been another version. What stands in it
        of others' results has been held against its schema by nobody yet. Raises Misfit."""
        payload = context.task.payload
        if context.task.concerns & Concern.REFERENCES:
            check(payload, self.version)
        arguments = self.payload.arguments(payload)
        if self.payload.context is not None:
            arguments[self.payload.context] = seen_from_inside
        return arguments

    def _refusal(self, context: Context, error: Misfit) -> BaseException:
        return refusal_of(
            context,
            self.version.name,
            str(error),
            heard_within_seconds=self.heard_within_seconds,
            pointer=error.pointer,
        )


@dataclass(frozen=True)
class IsolatedWorker(Worker):
    """One whose attempts have processes of their own, which threads wait for: `call` starts them."""

    @property
    def holds_a_thread(self) -> bool:
        return True

    def run(self, context: Context) -> Any:
        try:
            self._arguments(context, context)
        except Misfit as error:  # refused here, where another version can be asked for
            raise self._refusal(context, error) from None
        return self.call(context)


def check(payload: Any, version: Version) -> None:
    """As strictly as at a submit; raises Misfit."""
    if not version.takes(payload):
        raise Misfit(version.faults_of(payload))


def wanted(settings: Settings) -> set[str] | None:
    """The actors of the queues that this process is to serve; none for all, and `own` for all of somebody's own."""
    return {queue.partition(".")[0] for queue in settings.queues} if settings.queues else None


def make(loaded: Loaded, settings: Settings, served: Collection[str]) -> dict[str, Worker]:
    """Those of these names. One that cannot be made is broken, as one that cannot be imported is."""
    made: dict[str, Worker] = {}
    for name in sorted(loaded.actors.keys() & set(served)):
        try:
            made[name] = _made(loaded.actors[name], settings)
        except Exception as error:  # noqa: BLE001 - told, and its queue is not served
            loaded.broken[name] = scrub(f"actor {name} cannot be made: {type(error).__name__}: {error}")
            del loaded.actors[name]
    return made


def _made(loaded: LoadedActor, settings: Settings) -> Worker:
    actor, definition = loaded.actor, loaded.definition
    about = (loaded.payload, actor.is_async, actor.throws, Version.of(definition), settings.lease_seconds)
    if loaded.isolate:
        return IsolatedWorker(Isolated(definition, settings, function=settings.actors[actor.name].function), *about)
    call: Callable[..., Any] = actor.fn
    if actor.is_class:
        takes = inspect.signature(actor.fn).parameters
        call = actor.fn(settings) if "settings" in takes else actor.fn()
    return Worker(call, *about)


def unknown_queues(settings: Settings) -> dict[str, str]:
    """What `WINDLASS_QUEUES` names of somebody's own, now that these are loaded, and nobody serves."""
    known = {*settings.all_queues(), OWN}
    return {
        queue: f"WINDLASS_QUEUES names {queue}, and no provider serves it" for queue in set(settings.queues) - known
    }
