"""Durable steps: what one came to is committed before the attempt goes on, and a later attempt is given it."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from windlass.services.actors.worker.metrics import step_ended
from windlass.shared.actors import step_rules
from windlass.shared.actors.step_rules import StepBook, as_kept, inside
from windlass.shared.store.tasks.steps import results_of_steps, save_step

if TYPE_CHECKING:
    from windlass.services.actors.worker.context import Context


class Steps:
    """One attempt's, made when it asks for its first.

    A task's first attempt finds nothing, and does not look: steps are written by attempts alone, and their numbers only
    grow, over revivals, too.
    """

    def __init__(self, context: "Context") -> None:
        self._context = context
        self._book = StepBook()
        self._earlier: dict[str, Any] | None = {} if context.task.attempt == 1 else None
        self._loading = threading.Lock()
        self._loading_on_the_loop = asyncio.Lock()

    def run(self, name: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """In a `def` actor, on its thread."""
        name = self._book.begin(name)
        step_rules.refuse_async(name, function)
        self._context.check()
        with self._loading:
            if self._earlier is None:
                self._learn(self._context.ask(results_of_steps, self._context.task_id))
        if self._is_finished(name):
            return self._given(name)
        began = time.monotonic()
        with inside(name):
            result = step_rules.refuse_awaitable(name, function(*arguments, **options))
        written = self._book.fit(name, result)
        # Kept before anybody asks whether to stop: the work is done, and may have been paid for.
        self._ended(is_kept=self._context.ask(save_step, *self._saving(name, written, began)))
        self._context.check()
        return as_kept(written)

    async def run_async(
        self, name: str, function: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any, **options: Any
    ) -> Any:
        """The same in an `async def` actor: it holds up nobody on its loop."""
        name = self._book.begin(name)
        step_rules.refuse_plain(name, function)
        self._context.check()
        async with self._loading_on_the_loop:
            if self._earlier is None:
                self._learn(await self._context.ask_async(results_of_steps, self._context.task_id))
        if self._is_finished(name):
            return self._given(name)
        began = time.monotonic()
        with inside(name):
            result = await function(*arguments, **options)
        written = self._book.fit(name, result)
        self._ended(is_kept=await self._context.ask_async(save_step, *self._saving(name, written, began)))
        self._context.check()
        return as_kept(written)

    def _learn(self, earlier: dict[str, Any]) -> None:
        self._earlier = earlier
        self._book.remember(earlier)

    def _is_finished(self, name: str) -> bool:
        return self._earlier is not None and name in self._earlier

    def _given(self, name: str) -> Any:
        assert self._earlier is not None
        step_ended(self._context.task.actor, "given_back")
        return self._earlier[name]

    def _ended(self, *, is_kept: bool) -> None:
        """What was not kept is no longer this attempt's to do."""
        if is_kept:
            step_ended(self._context.task.actor, "run")
        else:
            self._context.stop("lost")

    def _saving(self, name: str, written: bytes, began: float) -> tuple[Any, ...]:
        return self._context.task, name, written.decode(), round((time.monotonic() - began) * 1000)
