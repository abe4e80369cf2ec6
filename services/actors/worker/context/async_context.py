"""The context of an `async def` actor in a worker: whatever waits is awaited, and blocks nothing else on the loop."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from windlass.shared.actors.attempt.faces import AwaitedContext

if TYPE_CHECKING:
    from windlass.services.actors.worker.context.context import Context
    from windlass.services.actors.worker.writing.gathered_calls import CallOfMany

Answer = TypeVar("Answer")


class AsyncAttempt(AwaitedContext):
    """With additional calls for the actors that come with Windlass, which name this class."""

    _context: "Context"

    async def ask(self, intent: Callable[..., Coroutine[Any, Any, Answer]], *arguments: Any, **options: Any) -> Answer:
        """A call of the store, made again until it is answered or the attempt should end; it is not left half done."""
        return await self.finish(self._context.asking_on_loop.ask(intent, *arguments, **options))

    async def ask_together(self, call: "CallOfMany[Any, Answer]", item: Any) -> Answer:
        """The same of a call that takes many: one commit for what many attempts ask at once."""
        return await self.finish(self._context.asking_on_loop.ask_together(call, item))

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

    async def sleep_until_nudged(self, seconds: float) -> bool:
        """As `sleep`, but returns early, and true, when there is news for this attempt: a provider called back."""
        loop, context, heard = asyncio.get_running_loop(), self._context, asyncio.Event()

        def notice() -> None:
            loop.call_soon_threadsafe(heard.set)

        context.listen(notice)
        try:
            async with asyncio.timeout(seconds):
                while not (nudged := context.take_nudge()):
                    heard.clear()
                    await heard.wait()
        except TimeoutError:
            nudged = context.take_nudge()
        finally:
            context.listen_no_more(notice)
        context.check()
        return nudged
