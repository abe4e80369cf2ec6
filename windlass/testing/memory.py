"""A task and its attempts in memory, by the rules that hold in a worker: fenced, in JSON, each name once, so much."""

import asyncio
import hashlib
import logging
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID, uuid4, uuid5

import msgspec

from windlass.shared.actors.attempt.child_requests import ChildRequest
from windlass.shared.actors.attempt.faces import PlainContext
from windlass.shared.actors.attempt.waits import OnLoop, Waits
from windlass.shared.actors.stopped import Stopped
from windlass.shared.errors import PermanentError, RateLimited
from windlass.testing.calling import Called, as_json_has_it


class Step(NamedTuple):
    """One that has finished, and what it came to."""

    name: str
    attempt: int
    elapsed_ms: int
    result: Any


@dataclass
class Kept:
    """What a database would keep of the task."""

    task_id: UUID = field(default_factory=uuid4)
    attempt: int = 0
    life: int = 1
    status: str = "queued"
    retry_count: int = 0
    error: BaseException | None = None
    result: Any = None
    checkpoint: Any = None
    steps: dict[str, Step] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    children: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    owner: "MemoryContext | None" = None

    def tell(self, kind: str, **data: Any) -> None:
        self.events.append({"type": kind, "attempt": self.attempt, "data": data})


class MemoryContext(PlainContext):
    """One attempt. Its time goes on when it sleeps, and then at once."""

    def __init__(self, kept: Kept, timeout_seconds: float) -> None:
        super().__init__(kept.task_id, kept.attempt, timeout_seconds)
        self._kept = kept
        self.user_id = "tester"
        self.checkpoint = kept.checkpoint
        self.deadline = time.monotonic() + timeout_seconds
        self.log = logging.getLogger("windlass.testing")

    @property
    def kept(self) -> Kept:
        """For writing: an attempt that lost its claim writes nothing."""
        if self._kept.owner is not self:
            self.stop("lost")
            raise Stopped
        return self._kept

    def backend(self, waits: Waits) -> "MemoryBackend":  # noqa: ARG002 - it waits for nothing
        return MemoryBackend(self)

    def on_loop(self) -> Waits:
        return AtOnce(self)

    def pause(self, seconds: float) -> None:
        self.deadline -= seconds
        self.check()

    def report(self, kind: str, **words: Any) -> None:
        """Reports are dropped, and the attempt is not stopped by one, where the claim is lost."""
        if self._kept.owner is not self:
            return
        if kind == "save":
            self._kept.checkpoint = as_json_has_it(words["checkpoint"])
        elif kind == "output" and words["stream"] is None:
            self._kept.tell(kind, text=words["text"])
        elif kind != "usage":
            self._kept.tell(kind, **words)


class AtOnce(OnLoop):
    """A loop whose sleeps take no time: only the deadline comes nearer."""

    def __init__(self, context: MemoryContext) -> None:
        super().__init__()
        self._context = context

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)
        self._context.pause(seconds)


class MemoryBackend:
    """Memory as the backend of an attempt. What a child may be is not checked here: that takes the actors that are
    registered."""

    def __init__(self, context: MemoryContext) -> None:
        self._context = context

    async def earlier_steps(self) -> dict[str, Any]:
        return {name: as_json_has_it(step.result) for name, step in self._context.kept.steps.items()}

    async def keep_step(self, name: str, written: str, elapsed_ms: int) -> None:
        kept = self._context.kept
        kept.steps[name] = Step(name, kept.attempt, elapsed_ms, msgspec.json.decode(written))
        kept.tell("step", name=name, attempt=kept.attempt, elapsed_ms=elapsed_ms)

    def step_given_back(self) -> None: ...

    async def submit(self, place: str, child: ChildRequest) -> str:
        about = {"actor": child.actor, "payload": child.payload, "options": child.options}
        made = {"task_id": str(uuid5(self._context.task_id, place)), **about}
        task_id: str = self._context.kept.children.setdefault(place, made)["task_id"]
        return task_id

    async def store_file(self, data: Any, media_type: str | None) -> str:
        contents = data if isinstance(data, bytes) else Path(data).read_bytes()  # noqa: ASYNC240 - a test may block
        name = f"{hashlib.sha256(contents).hexdigest()} {media_type}"
        content_id = str(uuid5(self._context.task_id, name))
        self._context.kept.files[content_id] = contents
        return content_id

    async def take_rate(self) -> None:
        self._context.check()


class MemoryMachine:
    """Claims and ends attempts as the engine would, without retries' delays."""

    def __init__(self, called: Called, timeout_seconds: float) -> None:
        self._called = called
        self._timeout_seconds = timeout_seconds
        self.kept = Kept()

    def claim(self) -> MemoryContext:
        kept = self.kept
        if kept.status in {"dead", "cancelled"}:
            kept.life += 1
            kept.retry_count = 0
            kept.tell("revive")
        kept.attempt += 1
        kept.status, kept.error = "running", None
        kept.tell("claim")
        kept.owner = MemoryContext(kept, self._timeout_seconds)
        return kept.owner

    def end(self, context: MemoryContext, result: Any, error: BaseException | None) -> None:
        kept = self.kept
        if kept.owner is not context:
            kept.error = error
            return
        kept.owner = None
        kept.error = error
        if error is None:
            kept.status, kept.result = "completed", result
            kept.tell("complete")
        elif context.stop_reason == "cancelled":
            kept.status = "cancelled"
            kept.tell("cancel")
        elif isinstance(error, Stopped):
            kept.status = "queued"
            kept.tell("interrupt")
        else:
            is_permanent = isinstance(error, (PermanentError, *self._called.throws))
            told = {"type": type(error).__name__, "message": str(error)}
            if is_permanent or not (isinstance(error, RateLimited) or self._take_a_retry()):
                kept.status = "dead"
                kept.tell("bury", error=told)
            else:
                kept.status = "retrying"
                kept.tell("retry", error=told)

    def take_back(self) -> None:
        """As after the death of its worker, or when its lease has run out."""
        self.kept.owner, self.kept.status = None, "retrying" if self._take_a_retry() else "dead"
        self.kept.tell("stall")

    def _take_a_retry(self) -> bool:
        """Whether one was left."""
        if self.kept.retry_count >= self._called.max_retries:
            return False
        self.kept.retry_count += 1
        return True

    def cancel(self, context: MemoryContext) -> None:
        self.kept.tell("cancel-requested")
        context.stop("cancelled")

    def lose_lease(self, context: MemoryContext) -> None:
        self.take_back()
        context.stop("lost")

    def look(self) -> Kept:
        return self.kept

    def close(self) -> None: ...
