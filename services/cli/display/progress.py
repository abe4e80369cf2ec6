"""How a task's stream looks while it arrives: a bar on a terminal, a line per change in a pipe, JSON lines."""

import time
from datetime import UTC, datetime
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, TextColumn
from rich.progress import Progress as Bars
from rich.progress import Task as Bar
from rich.text import Text

from windlass import (
    ApiError,
    CancelledEvent,
    CompleteEvent,
    ErrorEvent,
    OutputEvent,
    ProgressEvent,
    StepEvent,
    StreamEvent,
    StreamMessage,
    Unreachable,
)
from windlass.client.stream_events import typed
from windlass.services.cli.display.screen import Screen
from windlass.services.cli.display.tables import STYLES
from windlass.services.cli.display.texts import clean, compact, describe, duration, told

RECONNECTING = "the API is away; reconnecting…"

Trouble = Unreachable | ApiError | None


class Display(Protocol):
    """Shows the messages of one stream."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    def tell(self, message: StreamMessage) -> None: ...

    def interrupted(self, trouble: Trouble) -> None: ...

    def resumed(self) -> None: ...


class JsonLines:
    """For programs: each event as one line."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None: ...

    def tell(self, message: StreamMessage) -> None:
        self._screen.json_line(message)

    def interrupted(self, trouble: Trouble) -> None:
        self._screen.remark(f"{RECONNECTING} ({trouble or 'it closed the stream'})")

    def resumed(self) -> None:
        self._screen.remark("connected again")


class Lines(JsonLines):
    """For logs: each change as one line, with the time at which it was told."""

    def tell(self, message: StreamMessage) -> None:
        if (event := typed(message)) is not None:
            at = event.progress.updated_at if isinstance(event, ProgressEvent) else None
            clock = (at or datetime.now(UTC)).astimezone().strftime("%H:%M:%S")
            for line in lines_of(event):
                self._screen.line(f"{clock}  {word(event):<9}  attempt {event.attempt}  {line}".rstrip())


class Elapsed(ProgressColumn):
    """The time since the attempt began; it goes on between two events, and stands still when nothing runs."""

    def render(self, task: Bar) -> Text:
        since = task.fields["since"]
        return Text("" if since is None else duration(time.monotonic() - since))


class LiveBar:
    """For people: one bar that moves, with the actor's output above it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = Bars(
            TextColumn("{task.fields[status]}", style="bold", markup=False),
            BarColumn(),
            TextColumn("{task.fields[percent]:>5}", markup=False),
            Elapsed(),
            TextColumn("{task.fields[attempt]}", markup=False),
            TextColumn("{task.description}", markup=False),
            console=console,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._bar = self._bars.add_task("connecting…", total=None, status="", percent="", since=None, attempt="")

        self._said = ""
        self._kept: set[str] = set()

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._bars.stop()

    def tell(self, message: StreamMessage) -> None:
        event = typed(message)
        if isinstance(event, ProgressEvent):
            self._move(event)
        elif isinstance(event, OutputEvent | StepEvent):
            for line in lines_of(event):
                self._bars.console.print(Text(line), soft_wrap=True)
        elif event is not None:
            self._end(event)

    def interrupted(self, trouble: Trouble) -> None:  # noqa: ARG002 - the reason would push the bar aside
        self._bars.update(self._bar, description=RECONNECTING)

    def resumed(self) -> None:
        self._bars.update(self._bar, description=self._said)

    def _keep_why_it_failed(self, event: ProgressEvent) -> None:
        """Above the bar, where it stays when the next attempt begins; once, however often it is told."""
        if event.error is None:
            return
        line = f"attempt {event.error.attempt or event.attempt} failed: {describe(event.error)}"
        if line not in self._kept:
            self._kept.add(line)
            self._bars.console.print(Text(line, style=STYLES["retrying"]), soft_wrap=True)

    def _move(self, event: ProgressEvent) -> None:
        self._keep_why_it_failed(event)
        progress = event.progress
        self._said = describe(event.error) if event.error is not None else clean(progress.message)
        self._bars.update(
            self._bar,
            description=self._said,
            status=event.status,
            total=None if progress.percent is None else 100,
            completed=progress.percent or 0,
            percent="" if progress.percent is None else f"{progress.percent:.0f} %",
            since=time.monotonic() - elapsed_seconds(event) if event.status == "running" else None,
            attempt=f"attempt {event.attempt}" if event.attempt else "",
        )

    def _end(self, event: CompleteEvent | ErrorEvent | CancelledEvent) -> None:
        how = word(event)
        if isinstance(event, CompleteEvent):
            self._bars.update(self._bar, total=100, completed=100, percent="100 %")
        self._bars.update(self._bar, description="", status=how)
        self._bars.stop()
        for line in lines_of(event):
            self._console.print(Text(line, style=STYLES[how] if how == "dead" else ""), soft_wrap=True)


def word(event: StreamEvent) -> str:
    """The state that the event tells of, in the words that are used everywhere."""
    if isinstance(event, ProgressEvent):
        return event.status
    if isinstance(event, OutputEvent):
        return "output"
    if isinstance(event, StepEvent):
        return "step"
    return {CompleteEvent: "completed", ErrorEvent: "dead", CancelledEvent: "cancelled"}[type(event)]


def lines_of(event: StreamEvent) -> list[str]:
    if isinstance(event, OutputEvent):
        text = event.text if event.text is not None else compact(event.data)
        return [clean(line) for line in text.splitlines()]
    if isinstance(event, StepEvent):
        return [f"{clean(event.name)} finished in {duration(event.elapsed_ms / 1000)}"]
    if isinstance(event, CompleteEvent):
        return [compact(event.result)]
    if isinstance(event, CancelledEvent):
        return ["cancelled"]
    error = event.error
    if isinstance(event, ErrorEvent) or error is not None:
        return [describe(error) if error is not None else "no error is known"]
    assert isinstance(event, ProgressEvent)
    return [told(event.progress)]


def elapsed_seconds(event: ProgressEvent) -> float:
    """Of the latest attempt, now: what was told has grown older since."""
    at = event.progress.updated_at
    since_told = max(0.0, (datetime.now(UTC) - at).total_seconds()) if at else 0.0
    return event.progress.elapsed_ms / 1000 + since_told
