"""The context of an isolated attempt, in its own process: its worker, at the other end of the line, is its backend."""

import logging
import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from windlass.services.actors.isolation.line import Line
from windlass.shared.actors.attempt.child_requests import ChildRequest
from windlass.shared.actors.attempt.faces import Data, PlainContext
from windlass.shared.actors.attempt.waits import Waits

TIMED_OUT = "timed out"
UNKNOWN = "application/octet-stream"


class IsolatedContext(PlainContext):
    """One attempt, seen from inside its own process."""

    def __init__(self, about: Mapping[str, Any], line: Line) -> None:
        super().__init__(UUID(about["task_id"]), about["attempt"], about["timeout_seconds"])
        self.actor: str = about["actor"]
        self.user_id: str = about["user_id"]
        self.checkpoint: Any = about["checkpoint"]
        self.deadline = about["deadline"]
        self._line = line
        line.on_stop = self.stop
        line.on_deadline = self._move_deadline

    @property
    def log(self) -> logging.Logger:
        return logging.getLogger(f"actors.{self.actor}")

    def report(self, kind: str, **words: Any) -> None:
        self._line.tell(kind, **words)

    def backend(self, waits: Waits) -> "WorkerOverTheLine":
        return WorkerOverTheLine(self, waits, self._line)

    def check(self) -> None:
        if self.stop_reason == TIMED_OUT:
            raise self._timed_out()
        super().check()

    def _move_deadline(self, deadline: float) -> None:
        self.deadline = deadline


class WorkerOverTheLine:
    """Each call is one of the worker's own backend, made there: see `Conversation`."""

    def __init__(self, context: IsolatedContext, waits: Waits, line: Line) -> None:
        self._context = context
        self._waits = waits
        self._line = line

    async def earlier_steps(self) -> dict[str, Any]:
        found: dict[str, Any] = await self._ask("earlier_steps")
        return found

    async def keep_step(self, name: str, written: str, elapsed_ms: int) -> None:
        await self._ask("keep_step", name=name, written=written, elapsed_ms=elapsed_ms)

    def step_given_back(self) -> None:
        self._line.tell("step_given_back")

    async def submit(self, place: str, child: ChildRequest) -> str:
        child_id: str = await self._ask("submit", place=place, child=child)
        return child_id

    async def store_file(self, data: Data, media_type: str | None) -> str:
        return await self._waits.call(self._store_file, data, media_type)

    async def take_rate(self) -> None:
        """Its time stands still meanwhile, here as in the worker. The worker's answer has the new deadline."""
        self._context.check()
        self._context.deadline = math.inf
        await self._ask("take_rate")

    def _store_file(self, data: Data, media_type: str | None) -> str:
        """The worker reads the file from where it is; bytes are put into one."""
        if isinstance(data, bytes):
            with tempfile.NamedTemporaryFile() as file:
                file.write(data)
                file.flush()
                return self._store_file(file.name, media_type or UNKNOWN)
        path = str(Path(data).absolute())
        content_id: str = self._line.ask("store_file", data=path, media_type=media_type).result()
        return content_id

    async def _ask(self, what: str, **about: Any) -> Any:
        return await self._waits.answer(self._line.ask(what, **about))
