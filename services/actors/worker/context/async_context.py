"""The context of an `async def` actor: whatever waits is awaited, and holds up nobody else on the loop."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from windlass.shared.actors.awaiting import Expected, awaited

if TYPE_CHECKING:
    from windlass.services.actors.worker.context.context import Context
    from windlass.services.actors.worker.writing.gathered_calls import CallOfMany

Answer = TypeVar("Answer")


class AsyncAttempt:
    """What does not wait is the attempt's own. Told to stop, the actor is cancelled where it awaits something."""

    is_given_to_actors = True
    """To those that come with Windlass, which name it."""

    def __init__(self, context: "Context") -> None:
        self._context = context
        self.expected = Expected()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    async def ask(self, intent: Callable[..., Coroutine[Any, Any, Answer]], *arguments: Any, **options: Any) -> Answer:
        """A call of the store, made again until it is answered or the attempt should end; it is not left half done."""
        return await self.finish(self._context.ask_async(intent, *arguments, **options))

    async def ask_together(self, call: "CallOfMany[Any, Answer]", item: Any) -> Answer:
        """The same of a call that takes many: one commit for what many attempts ask at once."""
        return await self.finish(self._context.ask_together(call, item))

    async def finish(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Waits for what must not be left half done: it is given some time to come to its end although the attempt
        should end, and the actor is cancelled where it awaits something next."""
        context, doing = self._context, asyncio.ensure_future(work)
        patience, is_cancelled = context.patience_seconds, False
        try:
            await asyncio.wait({doing}, timeout=patience if context.should_end() else None)
        except asyncio.CancelledError:
            is_cancelled = True
            await asyncio.wait({doing}, timeout=patience)
        if not doing.done():
            doing.cancel()
            await asyncio.wait({doing}, timeout=patience / 2)
            context.check()
            raise asyncio.CancelledError
        if is_cancelled and (this := asyncio.current_task()) is not None:
            this.uncancel()
            this.cancel()
        return doing.result()

    @awaited
    def sleep(self, seconds: float) -> Coroutine[Any, Any, None]:
        return self.expected.expect(f"context.sleep({seconds!r})", lambda: self._sleep(seconds))

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._context.check()

    async def sleep_until_nudged(self, seconds: float) -> bool:
        """As `sleep`, but returns early, and true, when somebody has news for this attempt."""
        loop, context, heard = asyncio.get_running_loop(), self._context, asyncio.Event()

        def tell() -> None:
            loop.call_soon_threadsafe(heard.set)

        context.listen(tell)
        try:
            async with asyncio.timeout(seconds):
                while not (nudged := context.take_nudge()):
                    heard.clear()
                    await heard.wait()
        except TimeoutError:
            nudged = context.take_nudge()
        finally:
            context.listen_no_more(tell)
        context.check()
        return nudged

    @awaited
    def rate(self) -> Coroutine[Any, Any, None]:
        return self.expected.expect("context.rate()", self._context.rate_async)

    @awaited
    def step(self, name: str, fn: Callable[..., Any], /, *arguments: Any, **options: Any) -> Coroutine[Any, Any, Any]:
        return self.expected.expect(
            f"context.step({name!r}, …)", lambda: self._context.steps.run_async(name, fn, *arguments, **options)
        )

    @awaited
    def submit(
        self, actor: Any, payload: Mapping[str, Any] | None = None, /, **options: Any
    ) -> Coroutine[Any, Any, str]:
        return self.expected.expect(
            "context.submit(…)", lambda: self._context.children.submit_async(actor, payload, options)
        )

    @awaited
    def store_file(self, data: Any, /, *, media_type: str | None = None) -> Coroutine[Any, Any, str]:
        return self.expected.expect("context.store_file(…)", lambda: self._context.files.store_async(data, media_type))
