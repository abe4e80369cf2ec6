"""The context of an `async def` actor: whatever waits is awaited, and holds up nobody else on the loop."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windlass.services.actors.worker.context import Context


class AsyncAttempt:
    """What does not wait is the attempt's own. Told to stop, the actor is cancelled where it awaits something."""

    def __init__(self, context: "Context") -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._context.check()

    async def rate(self) -> None:
        """By a thread, which ends when the attempt is told to stop."""
        await asyncio.to_thread(self._context.rate)

    async def step(self, name: str, fn: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
        return await self._context.steps.run_async(name, fn, *arguments, **options)

    async def submit(self, actor: Any, payload: Mapping[str, Any] | None = None, /, **options: Any) -> str:
        return await self._context.children.submit_async(actor, payload, options)

    async def store_file(self, data: Any, /, *, media_type: str | None = None) -> str:
        return await self._context.files.store_async(data, media_type)
