"""Waiting for a condition that nobody announces."""

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], bool], seconds: float, *, every: float = 0.02) -> bool:
    """Whether the condition came true within the time."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not condition():
        if asyncio.get_running_loop().time() >= deadline:
            return False
        await asyncio.sleep(every)
    return True
