"""Spans along a task's way from the request to the provider: hooks that cost nothing while nobody wants traces.

Only `sdk.py` beside this file knows the SDK, and it is imported only where `WINDLASS_OTLP_ENDPOINT` is set.
"""

import hashlib
import importlib.util
import logging
import re
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Literal, Protocol, Self
from uuid import UUID

from windlass.shared.settings import Settings
from windlass.shared.settings.loading import exit_over_settings

log = logging.getLogger("tracing")

Kind = Literal["server", "client", "producer", "consumer"]
Attributes = Mapping[str, str | int]

STOP_SECONDS = 2.0
"""What has not been sent by then, as a process ends, is not sent."""

MOST_LINKS = 16

NEEDED = ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http.trace_exporter")
"""The extra `tracing`."""

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")


class Span:
    """A span that is not kept: what everybody is given while tracing is off."""

    def __enter__(self) -> Self:
        """What is begun until it is left is below this one."""
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None: ...

    def leave(self) -> None:
        """What is begun here from now on is not below it, but it is not over. It may be entered again, elsewhere."""

    def note(self, **attributes: str | int) -> None:
        """Names are written with `__` for a dot."""

    def fail(self, error_type: str) -> None:
        """The type alone: what an error says may hold a payload or a secret."""

    def end(self) -> None:
        """For a span that was never entered, or is kept open by what it waits for."""

    def traceparent(self) -> str | None:
        """What is sent along to whoever goes on with the trace."""
        return None


class Tracer(Protocol):
    def begin(
        self,
        name: str,
        kind: Kind,
        attributes: Attributes,
        *,
        parent: str | None,
        span_id: int | None,
        links: Sequence[int],
    ) -> Span:
        """Without a parent, below what is current; `links` are spans of the parent's own trace."""

    def current(self) -> str | None: ...

    def stop(self, seconds: float) -> None: ...


class _Process:
    tracer: Tracer | None = None


NO_SPAN = Span()


def check(settings: Settings) -> None:
    """Refuses to begin where it is asked for and cannot be."""
    if settings.otlp_endpoint is not None and not all(map(_is_installed, NEEDED)):
        exit_over_settings(
            "WINDLASS_OTLP_ENDPOINT is set, and the packages that send traces are not installed; "
            "run pip install '.[server,tracing]' in a clone of Windlass"
        )


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def start(settings: Settings, service: str) -> None:
    """Begins to trace in this process, if the settings say where the spans should go."""
    check(settings)
    if settings.otlp_endpoint is not None:
        from windlass.shared.tracing.sdk import open_tracer  # noqa: PLC0415 - an optional extra

        _Process.tracer = open_tracer(settings, service)


def stop() -> None:
    """Sends what is left, within a short time; nothing is traced after it."""
    tracer, _Process.tracer = _Process.tracer, None
    if tracer is not None:
        tracer.stop(STOP_SECONDS)


def is_on() -> bool:
    return _Process.tracer is not None


def traceparent() -> str | None:
    """The context of what is being done here, as W3C writes it; none while tracing is off."""
    tracer = _Process.tracer
    return None if tracer is None else tracer.current()


def ids() -> tuple[str, str] | None:
    """The trace and the span of what is being done here."""
    return ids_of(traceparent())


def ids_of(traceparent: str | None) -> tuple[str, str] | None:
    found = _TRACEPARENT.fullmatch(traceparent or "")
    return (found[1], found[2]) if found else None


def answering(method: str, route: str, traceparent: str | None) -> Span:
    """A request of a client, whose own trace is continued if it has one."""
    if _Process.tracer is None:
        return NO_SPAN
    attributes = {"http.request.method": method, "http.route": route}
    return _begin(f"{method} {route}", "server", attributes, parent=traceparent)


def submitting() -> Span:
    """New tasks on their way into Postgres; its context is the one that their rows keep."""
    if _Process.tracer is None:
        return NO_SPAN
    return _begin("submit", "producer", {"messaging.system": "rabbitmq", "messaging.operation.type": "create"})


def attempting(task_id: UUID, attempt: int, queue: str, worker_id: str, traceparent: str | None) -> Span:
    """One attempt of a claimed task, from its claim to its end. Its number is made from the task's and the attempt's,
    so that later attempts can name the earlier ones without anybody having kept them."""
    if _Process.tracer is None or traceparent is None:
        return NO_SPAN
    attributes = _of_message("process", task_id, queue)
    attributes |= {"windlass.attempt": attempt, "windlass.worker_id": worker_id}
    before = range(max(1, attempt - MOST_LINKS), attempt)
    return _begin(
        f"process {queue}",
        "consumer",
        attributes,
        parent=traceparent,
        span_id=span_id_of(task_id, attempt),
        links=[span_id_of(task_id, each) for each in before],
    )


def calling(method: str, scheme: str, host: str, port: int | None) -> Span:
    """A request to a provider, made for what is being done here. Of its address only the host is told: what follows it
    may be a signature."""
    if _Process.tracer is None or traceparent() is None:
        return NO_SPAN
    attributes: Attributes = {
        "http.request.method": method,
        "server.address": host,
        "server.port": port or (443 if scheme == "https" else 80),
    }
    return _begin(method, "client", attributes)


def span_id_of(task_id: UUID, attempt: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{task_id}/{attempt}".encode()).digest()[:8]) or 1


def _of_message(operation: str, task_id: UUID, queue: str) -> dict[str, str | int]:
    return {
        "messaging.system": "rabbitmq",
        "messaging.operation.type": operation,
        "messaging.operation.name": operation,
        "messaging.destination.name": queue,
        "messaging.message.id": str(task_id),
        "windlass.task_id": str(task_id),
    }


def _begin(
    name: str,
    kind: Kind,
    attributes: Attributes,
    *,
    parent: str | None = None,
    span_id: int | None = None,
    links: Sequence[int] = (),
) -> Span:
    tracer = _Process.tracer
    if tracer is None:  # stopped meanwhile, by another thread
        return NO_SPAN
    try:
        return tracer.begin(name, kind, attributes, parent=parent, span_id=span_id, links=links)
    except Exception:
        log.exception("a span could not be begun; the work goes on without it")
        return NO_SPAN
