"""The life of a process: it works, and waits for work, until it is told to stop."""

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any


async def until_told_to_stop(work: Coroutine[Any, Any, None]) -> bool:
    """SIGTERM and Ctrl-C cancel the work; an error of its own ends the process, and whoever supervises it knows.

    Returns whether the work came to its own end. Containers need this: their first process ignores every signal that it
    does not ask for.
    """
    running = asyncio.ensure_future(work)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)
    try:
        await running
    except asyncio.CancelledError:
        return False
    return True


async def until_set(event: asyncio.Event, *, at_most_seconds: float) -> None:
    """Waits for an event, but no longer than that.

    Not by `asyncio.wait_for`: up to Python 3.11 it forgets a cancellation that comes together with the event, and a
    process that is told to stop at that moment would live on.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(at_most_seconds):
            await event.wait()
