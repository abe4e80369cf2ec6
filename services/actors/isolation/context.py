"""The context of an isolated attempt, in its own process: what it says and keeps goes through the worker."""

import logging
import math
import os
import tempfile
import threading
import time
from asyncio import get_running_loop
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

from windlass.services.actors.isolation.line import Line
from windlass.services.actors.worker.context.steps import Steps
from windlass.shared.actors.awaiting import refuse_awaitables
from windlass.shared.actors.step_rules import step_under_way
from windlass.shared.actors.stopped import Stopped
from windlass.shared.errors import InvalidInput, TimedOut

TIMED_OUT = "timed out"
UNKNOWN = "application/octet-stream"
THREADS = 4


class IsolatedContext:
    """One attempt, seen from inside its own process."""

    is_given_to_actors = True

    def __init__(self, about: Mapping[str, Any], line: Line) -> None:
        self._line = line
        self.actor: str = about["actor"]
        self.task_id = UUID(about["task_id"])
        self.attempt: int = about["attempt"]
        self.user_id: str = about["user_id"]
        self.checkpoint: Any = about["checkpoint"]
        self.deadline: float = about["deadline"]
        self._timeout_seconds: float = about["timeout_seconds"]
        self.stop_reason: str | None = None
        self._news = threading.Condition()
        self._cancel: Callable[[], None] = lambda: None
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="asking")
        self.steps = Steps(self, ToldSteps(self, line))
        self.children = ToldChildren(self, line)
        self.files = ToldFiles(self, line)
        line.on_stop = self.stop
        line.on_deadline = self._move_deadline

    @property
    def log(self) -> logging.Logger:
        return logging.getLogger(f"actors.{self.actor}")

    def progress(self, message: str, *, percent: float | None = None) -> None:
        self._line.tell("progress", message=message, percent=percent)

    def output(self, text: str, *, stream: str | None = None) -> None:
        self._line.tell("output", text=text, stream=stream)

    def save(self, checkpoint: Any) -> None:
        refuse_awaitables(checkpoint, "the checkpoint")
        self._line.tell("save", checkpoint=checkpoint)

    def usage(self, **figures: float | None) -> None:
        self._line.tell("usage", figures=figures)

    def step(self, name: str, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
        return self.steps.run(name, function, *arguments, **options)

    def submit(self, actor: Any, payload: Mapping[str, Any] | None = None, /, **options: Any) -> str:
        return self.children.submit(actor, payload, options)

    def store_file(self, data: bytes | str | os.PathLike[str], /, *, media_type: str | None = None) -> str:
        return self.files.store(data, media_type)

    def rate(self) -> None:
        """Its time stands still meanwhile, here as with the worker, who says how much of it is left then."""
        self.check()
        self.deadline = math.inf
        self._line.ask("rate")

    async def rate_async(self) -> None:
        await self.in_a_thread(self.rate)

    def sleep(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        with self._news:
            while self.stop_reason is None and (left := min(until, self.deadline) - time.monotonic()) > 0:
                self._news.wait(min(left, threading.TIMEOUT_MAX))
        self.check()

    def check(self) -> None:
        if self.stop_reason == TIMED_OUT or (self.stop_reason is None and time.monotonic() >= self.deadline):
            raise TimedOut(f"the attempt took longer than its {self._timeout_seconds:g} s")
        if self.stop_reason is not None:
            raise Stopped

    def stop(self, reason: str) -> None:
        """Called from outside; the first reason stays."""
        with self._news:
            if self.stop_reason is not None:
                return
            self.stop_reason = reason
            self._news.notify_all()
        self._cancel()

    def cancel_by(self, cancel: Callable[[], None]) -> None:
        """How an asynchronous actor is told."""
        self._cancel = cancel
        if self.stop_reason is not None:
            cancel()

    async def in_a_thread(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await get_running_loop().run_in_executor(self._threads, function, *arguments)

    def _move_deadline(self, deadline: float) -> None:
        self.deadline = deadline


class ToldSteps:
    """Kept by the worker, before the step returns."""

    def __init__(self, context: IsolatedContext, line: Line) -> None:
        self._context = context
        self._line = line

    def earlier(self) -> dict[str, Any]:
        found: dict[str, Any] = self._line.ask("steps")
        return found

    async def earlier_async(self) -> dict[str, Any]:
        found: dict[str, Any] = await self._context.in_a_thread(self.earlier)
        return found

    def keep(self, name: str, written: bytes, elapsed_ms: int) -> bool:
        kept: bool = self._line.ask("keep_step", name=name, written=written.decode(), elapsed_ms=elapsed_ms)
        return kept

    async def keep_async(self, name: str, written: bytes, elapsed_ms: int) -> bool:
        kept: bool = await self._context.in_a_thread(self.keep, name, written, elapsed_ms)
        return kept

    def given_back(self) -> None:
        self._line.tell("step_given_back")


class ToldChildren:
    """Checked and made by the worker; which step they belong to is known here."""

    def __init__(self, context: IsolatedContext, line: Line) -> None:
        self._context = context
        self._line = line

    def submit(self, actor: Any, payload: Mapping[str, Any] | None, options: dict[str, Any]) -> str:
        return self._submit(actor, payload, options, step_under_way())

    async def submit_async(self, actor: Any, payload: Mapping[str, Any] | None, options: dict[str, Any]) -> str:
        child: str = await self._context.in_a_thread(self._submit, actor, payload, options, step_under_way())
        return child

    def _submit(self, actor: Any, payload: Mapping[str, Any] | None, options: dict[str, Any], step: str) -> str:
        name = actor if isinstance(actor, str) else getattr(actor, "name", None)
        if not isinstance(name, str):
            raise InvalidInput(f"`submit` takes an actor or its name, and not {actor!r}")
        self._context.check()
        given = None if payload is None else dict(payload)
        try:
            child: str = self._line.ask("submit", actor=name, payload=given, options=options, step=step)
        except (TypeError, OverflowError, RecursionError) as error:
            raise InvalidInput(f"what a child is given must be JSON: {error}") from error
        return child


class ToldFiles:
    """Read by the worker from where they are; bytes are put into a file for it."""

    def __init__(self, context: IsolatedContext, line: Line) -> None:
        self._context = context
        self._line = line

    def store(self, data: bytes | str | os.PathLike[str], media_type: str | None) -> str:
        self._context.check()
        if not isinstance(data, bytes):
            return self._store(Path(data), media_type)
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            return self._store(Path(file.name), media_type or UNKNOWN)

    async def store_async(self, data: bytes | str | os.PathLike[str], media_type: str | None) -> str:
        content_id: str = await self._context.in_a_thread(self.store, data, media_type)
        return content_id

    def _store(self, path: Path, media_type: str | None) -> str:
        content_id: str = self._line.ask("store_file", path=str(path.absolute()), media_type=media_type)
        return content_id
