"""Actors of somebody's own that go through the pipeline, on a thread and on the loop, and those that do not stop.

Every start of an attempt is a line in books that outlive whoever writes them (PIPELINE_DIRECTORY).
"""

import json
import os
import time
from pathlib import Path

from windlass import AsyncContext, Context, actor

LOOK_SECONDS = 0.02
FOR_EVER = 3600


def directory() -> Path:
    return Path(os.environ["PIPELINE_DIRECTORY"])


def note(context: Context | AsyncContext) -> None:
    entry = {"at": time.time(), "task_id": str(context.task_id), "attempt": context.attempt}
    with (directory() / "books").open("ab", buffering=0) as books:
        books.write(f"\n{json.dumps(entry)}".encode())


def goes_on(context: Context | AsyncContext, until: str | None) -> bool:
    """The first attempt waits for a file of that name, if there is to be one; the next are in a hurry."""
    return until is not None and context.attempt == 1 and not (directory() / until).exists()


@actor
def march(until: str | None = None, *, context: Context) -> None:
    note(context)
    while goes_on(context, until):
        context.sleep(LOOK_SECONDS)


@actor
async def walk(until: str | None = None, *, context: AsyncContext) -> None:
    note(context)
    while goes_on(context, until):
        await context.sleep(LOOK_SECONDS)


@actor
def errand(*, context: Context) -> None:
    """Of a queue of its own, so that there is a doorbell for it."""
    note(context)


@actor
def bystander(*, context: Context) -> None:
    """Whom nobody pauses."""
    note(context)


@actor
def deaf(*, context: Context) -> None:
    note(context)
    time.sleep(FOR_EVER)


@actor
async def sticks(until: str, *, context: AsyncContext) -> None:
    """Holds up the loop, once it is time, until it is told to come back: then nobody else on it may go on."""
    note(context)
    while goes_on(context, until):
        await context.sleep(LOOK_SECONDS)
    while not (directory() / f"{until}-no-more").exists():
        time.sleep(LOOK_SECONDS)  # noqa: ASYNC251 - that is what it is for
