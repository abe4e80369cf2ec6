"""What an actor is given: the core as plain calls for a `def` actor, or as coroutines for an `async def` one."""

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar
from uuid import UUID

from windlass.shared.actors.attempt.core import Backend, Core
from windlass.shared.actors.attempt.signals import Signals
from windlass.shared.actors.attempt.waits import OnLoop, OnThread, Waits, at_once
from windlass.shared.actors.awaiting import Expected, awaited, refuse_awaitables

Answer = TypeVar("Answer")
Data = bytes | str | os.PathLike[str]


class PlainContext(Signals, ABC):
    """One attempt, seen from inside: used by the actor's threads, stopped from outside. Whatever waits blocks the
    calling thread."""

    is_given_to_actors = True
    """As `windlass.Context`, which users' actors name."""

    def __init__(self, task_id: UUID, attempt: int, timeout_seconds: float) -> None:
        super().__init__(timeout_seconds)
        self.task_id = task_id
        self.attempt = attempt
        self._core: Core | None = None
        self._making_the_core = threading.Lock()

    @abstractmethod
    def report(self, kind: str, **words: Any) -> None:
        """Passes on what the attempt reports: `progress`, `output`, `save` or `usage`. Waits for nothing."""

    @abstractmethod
    def backend(self, waits: Waits) -> Backend: ...

    def on_loop(self) -> Waits:
        """How the attempt of an `async def` actor waits."""
        return OnLoop()

    @property
    def core(self) -> Core:
        """Made when it is first needed: most attempts need none."""
        if self._core is None:
            with self._making_the_core:
                if self._core is None:
                    waits = OnThread(self.pause)
                    self._core = Core(self.attempt, self, waits, self.backend(waits))
        return self._core

    def progress(self, message: str, *, percent: float | None = None) -> None:
        """Reports how far the attempt is; only the latest message of every fraction of a second is kept."""
        self.report("progress", message=message, percent=percent)

    def output(self, text: str, *, stream: str | None = None) -> None:
        """Streams text to the task's event stream. Quick pieces are joined, and long text becomes several events. Past
        the attempt's cap one event marks the cut, and the rest is dropped. `stream` names another stream than the
        usual one, such as `stderr`."""
        self.report("output", text=text, stream=stream)

    def save(self, checkpoint: Any) -> None:
        """Stores a checkpoint for a later attempt."""
        refuse_awaitables(checkpoint, "the checkpoint")
        self.report("save", checkpoint=checkpoint)

    def usage(
        self,
        *,
        cost_usd: float | None = None,
        prompt_tokens: int | None = None,
        completion_tokens: int | None = None,
    ) -> None:
        """Reports a cost. Costs add up over the task's attempts, also when a worker dies."""
        figures = {"cost_usd": cost_usd, "prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
        self.report("usage", figures=figures)

    def step(self, name: str, function: Callable[..., Answer], /, *arguments: Any, **options: Any) -> Answer:
        """Calls the function, and stores its result before it returns it: a later attempt gets the stored result
        instead of a call."""
        answer: Answer = at_once(self.core.step(name, function, *arguments, **options))
        return answer

    def submit(self, actor: Any, payload: Mapping[str, Any] | None = None, /, **options: Any) -> str:
        """Makes a child of this task, and returns its `task_id`. The payload's fields may stand among the options, as
        in `POST /tasks/{actor}`. Whatever number of attempts comes to the same place, there is one child."""
        return at_once(self.core.submit(actor, payload, options))

    def store_file(self, data: Data, /, *, media_type: str | None = None) -> str:
        """Stores bytes, or the file at a path, and returns its `content_id`; the same bytes of the same task are stored
        once."""
        return at_once(self.core.store_file(data, media_type))

    def rate(self) -> None:
        """Takes a place in the provider's rate; an actor that may make several calls in one attempt, each of which
        orders work, calls it before each."""
        at_once(self.core.rate())

    def sleep(self, seconds: float) -> None:
        """Waits. Raises early if the attempt should end."""
        self.pause(seconds)


class AwaitedContext:
    """The context of an `async def` actor: whatever waits is awaited, and blocks nothing else on the loop. All else is
    the plain context's. When the attempt should end, the actor is cancelled where it awaits something."""

    is_given_to_actors = True

    def __init__(self, context: PlainContext) -> None:
        self._context = context
        self._core: Core | None = None
        self.expected = Expected()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    @property
    def core(self) -> Core:
        if self._core is None:
            context, waits = self._context, self._context.on_loop()
            self._core = Core(context.attempt, context, waits, context.backend(waits))
        return self._core

    @awaited
    def step(self, name: str, fn: Callable[..., Any], /, *arguments: Any, **options: Any) -> Coroutine[Any, Any, Any]:
        return self.expected.expect(
            f"context.step({name!r}, …)", lambda: self.core.step(name, fn, *arguments, **options)
        )

    @awaited
    def submit(
        self, actor: Any, payload: Mapping[str, Any] | None = None, /, **options: Any
    ) -> Coroutine[Any, Any, str]:
        return self.expected.expect("context.submit(…)", lambda: self.core.submit(actor, payload, options))

    @awaited
    def store_file(self, data: Data, /, *, media_type: str | None = None) -> Coroutine[Any, Any, str]:
        return self.expected.expect("context.store_file(…)", lambda: self.core.store_file(data, media_type))

    @awaited
    def rate(self) -> Coroutine[Any, Any, None]:
        return self.expected.expect("context.rate()", self.core.rate)

    @awaited
    def sleep(self, seconds: float) -> Coroutine[Any, Any, None]:
        return self.expected.expect(f"context.sleep({seconds!r})", lambda: self.core.sleep(seconds))
