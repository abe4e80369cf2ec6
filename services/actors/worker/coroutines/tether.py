"""What ends an attempt on the loop in time: told to stop, or out of time, its actor is cancelled, once."""

import asyncio
import math
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from windlass.services.actors.worker.context.context import Context
from windlass.services.actors.worker.coroutines.belongings import OWNER

Answer = TypeVar("Answer")


async def to_its_end(context: Context, work: Coroutine[Any, Any, Answer]) -> Answer:
    """Waits for an actor, and for all that was begun in its context: then the attempt is over. Who does not end when it
    is cancelled is found deaf, as a thread is."""
    working = asyncio.create_task(work)
    tether = Tether(context, working)
    try:
        await asyncio.wait({working})
        if (belongings := OWNER.get()) is not None:
            await belongings.end()
    finally:
        tether.let_go()
    try:
        return working.result()
    except BaseException:
        context.check()
        raise


class Tether:
    """For as long as anything of the attempt lives. News of it come from any thread."""

    def __init__(self, context: Context, working: "asyncio.Task[Any]") -> None:
        self._context = context
        self._working = working
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        context.is_told_by_the_loop = True
        context.listen(self._heard)
        self._look()

    def let_go(self) -> None:
        self._context.is_told_by_the_loop = False
        self._context.listen_no_more(self._heard)
        self._disarm()

    def _heard(self) -> None:
        self._loop.call_soon_threadsafe(self._look)

    def _look(self) -> None:
        """Its time may stand still meanwhile, and is looked at anew when it goes on."""
        context = self._context
        self._disarm()
        if context.cancelled_at is not None:
            return
        left = context.deadline - time.monotonic()
        if context.stop_reason is not None or left <= 0:
            context.cancelled_at = time.monotonic()
            self._working.cancel()
        elif not math.isinf(left):
            self._timer = self._loop.call_later(left, self._look)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
