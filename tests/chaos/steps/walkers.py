"""Actors of somebody's own that work in steps: on the loop, on a thread, and each attempt in a process of its own.

Every run of a step is a line in books that outlive whoever writes them (STORM_STEPS_DIRECTORY).
"""

import asyncio
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from windlass import Context, actor


def note(context: Context, number: int) -> None:
    """Before its work: who is killed in a step has begun it."""
    entry = {"at": time.time(), "task_id": str(context.task_id), "attempt": context.attempt, "step": f"step {number}"}
    with (Path(os.environ["STORM_STEPS_DIRECTORY"]) / "books").open("ab", buffering=0) as books:
        books.write(f"\n{json.dumps(entry)}".encode())


def stumble(context: Context, stumbles: int, deaths: int) -> None:
    """Between two steps: what was finished by then is not done again."""
    if context.attempt <= deaths:
        raise ValueError(f"attempt {context.attempt} was to be the last of its life")
    if context.attempt <= deaths + stumbles:
        raise RuntimeError(f"attempt {context.attempt} was to stumble")


async def tread(context: Context, mark: str, number: int, seconds: float) -> str:
    note(context, number)
    await asyncio.sleep(seconds)
    return f"{mark} {number} by attempt {context.attempt}"


def tread_at_once(context: Context, mark: str, number: int, seconds: float) -> str:
    note(context, number)
    time.sleep(seconds)
    return f"{mark} {number} by attempt {context.attempt}"


@actor(throws=(ValueError,))
async def walk(
    mark: str, steps: int = 3, seconds: float = 0.2, stumbles: int = 0, deaths: int = 0, *, context: Context
) -> list[str]:
    """Gives what each of its steps came to."""
    said = []
    for number in range(steps):
        said.append(await context.step(f"step {number}", tread, context, mark, number, seconds))
        if number == steps // 2:
            stumble(context, stumbles, deaths)
    return said


@actor(throws=(ValueError,))
def march(
    mark: str, steps: int = 3, seconds: float = 0.2, stumbles: int = 0, deaths: int = 0, *, context: Context
) -> list[str]:
    """The same on a thread."""
    return one_by_one(context, mark, steps, seconds, lambda: stumble(context, stumbles, deaths))


@actor(throws=(ValueError,), isolate=True)
def hike(
    mark: str, steps: int = 3, seconds: float = 0.2, stumbles: int = 0, deaths: int = 0, *, context: Context
) -> list[str]:
    """The same in a process of its own."""
    return one_by_one(context, mark, steps, seconds, lambda: stumble(context, stumbles, deaths))


def one_by_one(context: Context, mark: str, steps: int, seconds: float, halfway: Callable[[], None]) -> list[str]:
    said = []
    for number in range(steps):
        said.append(context.step(f"step {number}", tread_at_once, context, mark, number, seconds))
        if number == steps // 2:
            halfway()
    return said
