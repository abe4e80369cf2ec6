"""The core of an attempt's context: steps, children, files, rate and sleep, by rules that are the same everywhere."""

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, Protocol

from windlass.shared.actors import step_rules
from windlass.shared.actors.attempt.child_requests import ChildRequest
from windlass.shared.actors.attempt.signals import Signals
from windlass.shared.actors.attempt.waits import Waits
from windlass.shared.actors.step_rules import Call, StepBook, inside, step_under_way


class Backend(Protocol):
    """What the place where an attempt runs does for it. What is written is durable when a call returns. A call raises
    `Stopped` when the attempt has lost its claim."""

    async def earlier_steps(self) -> dict[str, Any]:
        """The results of earlier attempts, by name. Not called in the first attempt."""

    async def keep_step(self, name: str, written: str, elapsed_ms: int) -> None:
        """Stores a result, as JSON."""

    def step_given_back(self) -> None:
        """Counts a step that an earlier attempt has finished."""

    async def submit(self, place: str, child: ChildRequest) -> str:
        """Stores the child of this place, once over all attempts, and returns its `task_id`."""

    async def store_file(self, data: Any, media_type: str | None) -> str:
        """Stores bytes, or the file at a path, and returns the `content_id`."""

    async def take_rate(self) -> None: ...


class Core:
    """One attempt's. A `def` actor runs these coroutines on its own thread, an `async def` actor on the loop.

    A task's first attempt has no earlier steps, and does not look: steps are written by attempts alone, and their
    numbers only grow, over revivals, too.
    """

    def __init__(self, attempt: int, signals: Signals, waits: Waits, backend: Backend) -> None:
        self._signals = signals
        self._waits = waits
        self._backend = backend
        self._book = StepBook()
        self._earlier: dict[str, Any] | None = {} if attempt == 1 else None
        self._loading = asyncio.Lock() if waits.is_on_loop else nullcontext()
        self._counting = threading.Lock()
        self._children: defaultdict[str, int] = defaultdict(int)

    async def step(self, name: str, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
        name = self._book.begin(name)
        refuse = step_rules.refuse_plain if self._waits.is_on_loop else step_rules.refuse_async
        refuse(name, function)
        self._signals.check()
        earlier = await self._earlier_steps()
        call = Call(name, function, arguments)
        if name in earlier:
            self._backend.step_given_back()
            return call.stored(earlier[name])
        began = time.monotonic()
        with inside(name):
            result = function(*arguments, **options)
            result = await result if self._waits.is_on_loop else step_rules.refuse_awaitable(name, result)
        written = self._book.fit(name, result)
        answer = call.result(written, result)
        # Stored before the attempt looks whether to stop: the work is done, and may have been paid for.
        await self._backend.keep_step(name, written.decode(), round((time.monotonic() - began) * 1000))
        self._signals.check()
        return answer

    async def submit(self, actor: Any, payload: Mapping[str, Any] | None, options: dict[str, Any]) -> str:
        place = self._next_place()
        self._signals.check()
        return await self._backend.submit(place, ChildRequest.of(actor, payload, options))

    async def store_file(self, data: Any, media_type: str | None) -> str:
        self._signals.check()
        return await self._backend.store_file(data, media_type)

    async def rate(self) -> None:
        await self._backend.take_rate()

    async def sleep(self, seconds: float) -> None:
        await self._waits.sleep(seconds)
        self._signals.check()

    async def _earlier_steps(self) -> dict[str, Any]:
        """Loaded once on a loop. Threads that begin their first steps together may each load them, without harm."""
        if self._earlier is None:
            async with self._loading:
                if self._earlier is None:
                    earlier = await self._backend.earlier_steps()
                    self._book.remember(earlier)
                    self._earlier = earlier
        return self._earlier

    def _next_place(self) -> str:
        """The current step, or none, and the child's number in it."""
        step = step_under_way()
        with self._counting:
            self._children[step] += 1
            return f"{self._children[step]} {step}".rstrip()
