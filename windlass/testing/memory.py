"""A task and its attempts in memory, by the rules that hold in a worker: fenced, in JSON, each name once, so much."""

import hashlib
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID, uuid4, uuid5

import msgspec

from windlass.shared.actors import step_rules
from windlass.shared.actors.step_rules import Call, StepBook, inside, step_under_way
from windlass.shared.actors.stopped import Stopped
from windlass.shared.actors.task_options import OPTIONS
from windlass.shared.errors import InvalidStep, PermanentError, RateLimited, TimedOut
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


class MemoryContext:
    """One attempt. Its time goes on when it sleeps, and then at once."""

    def __init__(self, kept: Kept, timeout_seconds: float) -> None:
        self._kept = kept
        self.attempt = kept.attempt
        self.task_id = kept.task_id
        self.user_id = "tester"
        self.checkpoint = kept.checkpoint
        self.stop_reason: str | None = None
        self.deadline = time.monotonic() + timeout_seconds
        self.log = logging.getLogger("windlass.testing")
        self.spent: dict[str, float] = {}
        self.steps = MemorySteps(self, kept.steps)
        self.children = MemoryChildren(self)
        self.files = MemoryFiles(self)
        self._timeout_seconds = timeout_seconds

    @property
    def kept(self) -> Kept:
        """For writing: an attempt that lost its claim writes nothing."""
        if self._kept.owner is not self:
            self.stop("lost")
            raise Stopped
        return self._kept

    def stop(self, reason: str = "stopping") -> None:
        self.stop_reason = self.stop_reason or reason

    def check(self) -> None:
        if self.stop_reason is not None:
            raise Stopped
        if time.monotonic() >= self.deadline:
            raise TimedOut(f"the attempt took longer than its {self._timeout_seconds:g} s")

    def sleep(self, seconds: float) -> None:
        self.deadline -= seconds
        self.check()

    def rate(self) -> None:
        self.check()

    def progress(self, message: str, *, percent: float | None = None) -> None:
        self._tell("progress", message=message, percent=percent)

    def output(self, text: str, *, stream: str | None = None) -> None:
        self._tell("output", text=text, **({} if stream is None else {"stream": stream}))

    def save(self, checkpoint: Any) -> None:
        if self._kept.owner is self:
            self._kept.checkpoint = as_json_has_it(checkpoint)

    def usage(self, **figures: float | None) -> None:
        for name, figure in figures.items():
            self.spent[name] = self.spent.get(name, 0) + (figure or 0)

    def submit(self, actor: Any, payload: Mapping[str, Any] | None = None, /, **options: Any) -> str:
        return self.children.submit(actor, payload, options)

    def store_file(self, data: Any, /, *, media_type: str | None = None) -> str:
        return self.files.store(data, media_type)

    def _tell(self, kind: str, **data: Any) -> None:
        """Reports are dropped, and nobody is stopped by one, where the claim is lost."""
        if self._kept.owner is self:
            self._kept.tell(kind, **data)


class MemorySteps:
    def __init__(self, context: MemoryContext, earlier: Mapping[str, Step]) -> None:
        self._context = context
        self._book = StepBook()
        self._earlier = {name: step.result for name, step in earlier.items()}
        self._book.remember(self._earlier)

    def run(self, name: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        name = self._book.begin(name)
        step_rules.refuse_async(name, function)
        self._context.check()
        call = Call(name, function, arguments)
        if name in self._earlier:
            return call.stored(as_json_has_it(self._earlier[name]))
        began = time.monotonic()
        with inside(name):
            result = step_rules.refuse_awaitable(name, function(*arguments, **options))
        return self._keep(call, name, result, began)

    async def run_async(self, name: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        name = self._book.begin(name)
        step_rules.refuse_plain(name, function)
        self._context.check()
        call = Call(name, function, arguments)
        if name in self._earlier:
            return call.stored(as_json_has_it(self._earlier[name]))
        began = time.monotonic()
        with inside(name):
            result = await function(*arguments, **options)
        return self._keep(call, name, result, began)

    def _keep(self, call: Call, name: str, result: Any, began: float) -> Any:
        written = self._book.fit(name, result)
        answer = call.result(written, result)
        kept = self._context.kept
        elapsed_ms = round((time.monotonic() - began) * 1000)
        kept.steps[name] = Step(name, kept.attempt, elapsed_ms, msgspec.json.decode(written))
        kept.tell("step", name=name, attempt=kept.attempt, elapsed_ms=elapsed_ms)
        self._context.check()
        return answer


class MemoryChildren:
    """What a child may be is not checked here: that takes the actors that are registered."""

    def __init__(self, context: MemoryContext) -> None:
        self._context = context
        self._numbers: defaultdict[str, int] = defaultdict(int)

    def submit(self, actor: Any, payload: Mapping[str, Any] | None, options: dict[str, Any]) -> str:
        step = step_under_way()
        self._numbers[step] += 1
        self._context.check()
        place = f"{self._numbers[step]} {step}".rstrip()
        name = actor if isinstance(actor, str) else getattr(actor, "name", None)
        if not isinstance(name, str):
            raise InvalidStep(f"`submit` takes an actor or its name, and not {actor!r}")
        fields = {field: value for field, value in options.items() if field not in OPTIONS}
        own = {option: value for option, value in options.items() if option in OPTIONS}
        said = as_json_has_it({"actor": name, "payload": {**(payload or {}), **fields}, "options": own})
        child = {"task_id": str(uuid5(self._context.task_id, place)), **said}
        task_id: str = self._context.kept.children.setdefault(place, child)["task_id"]
        return task_id

    async def submit_async(self, actor: Any, payload: Mapping[str, Any] | None, options: dict[str, Any]) -> str:
        return self.submit(actor, payload, options)


class MemoryFiles:
    def __init__(self, context: MemoryContext) -> None:
        self._context = context

    def store(self, data: Any, media_type: str | None) -> str:
        self._context.check()
        contents = data if isinstance(data, bytes) else Path(data).read_bytes()
        name = f"{hashlib.sha256(contents).hexdigest()} {media_type}"
        content_id = str(uuid5(self._context.task_id, name))
        self._context.kept.files[content_id] = contents
        return content_id

    async def store_async(self, data: Any, media_type: str | None) -> str:
        return self.store(data, media_type)


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
