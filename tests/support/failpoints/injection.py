"""Wraps the functions of the catalogue in the process that is to have failpoints."""

import asyncio
import functools
import importlib
import inspect
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from tests.support.failpoints.catalogue import Failpoint, Moment

HOLD: Final = "hold"
"""In the file that arms a failpoint: the call stays there while the file, which is called `….held` then, exists. A file
without it kills the process."""
HELD: Final = ".held"
LOOK_SECONDS: Final = 0.01


class NotThere(LookupError):
    """The product has no such function any more: the drill at this failpoint would prove nothing."""


def inject(failpoints: Iterable[Failpoint], directory: Path) -> None:
    for each in failpoints:
        owner, name, function = located(each)
        setattr(owner, name, wrapped(function, each, Place(directory, each.name)))


def located(failpoint: Failpoint) -> tuple[Any, str, Callable[..., Any]]:
    """The module or the class, the name in it, and the function of that name."""
    owner: Any = importlib.import_module(failpoint.module)
    *classes, name = failpoint.function.split(".")
    for each in classes:
        owner = getattr(owner, each, None)
    function = vars(owner).get(name) if owner is not None else None
    if not inspect.isfunction(function):
        raise NotThere(f"{failpoint.name}: {failpoint.module} has no function {failpoint.function}")
    if not inspect.iscoroutinefunction(function) and failpoint.moment is not Moment.BEFORE:
        raise NotThere(f"{failpoint.name}: {failpoint.function} is no coroutine function any more")
    if inspect.iscoroutinefunction(function) and not failpoint.may_wait:
        raise NotThere(f"{failpoint.name}: {failpoint.function} has become a coroutine function, and may wait")
    return owner, name, function


class Place:
    """A failpoint as its process sees it: a file of its name arms it, and the first call that comes there spends it."""

    def __init__(self, directory: Path, name: str) -> None:
        self.name = name
        self._armed = directory / name
        self._held = directory / f"{name}{HELD}"

    def holds(self) -> bool:
        """Whether this call is the one that is held. Where the place is armed to kill, the process ends here."""
        try:
            is_to_hold = self._armed.read_text() == HOLD
            if is_to_hold:
                self._armed.rename(self._held)
            else:
                self._armed.unlink()
        except FileNotFoundError:
            return False  # not armed, or another call was the first
        if not is_to_hold:
            os.kill(os.getpid(), signal.SIGKILL)
        return is_to_hold

    def wait(self) -> None:
        while self._held.exists():
            time.sleep(LOOK_SECONDS)

    async def reach(self) -> None:
        """On a loop, where other tasks go on meanwhile."""
        if self.holds():
            while self._held.exists():  # noqa: ASYNC110 - another process lets it go
                await asyncio.sleep(LOOK_SECONDS)


def wrapped(function: Callable[..., Any], failpoint: Failpoint, place: Place) -> Callable[..., Any]:
    if not inspect.iscoroutinefunction(function):
        return _wrapped_call(function, failpoint, place)

    @functools.wraps(function)
    async def reaching(*arguments: Any, **named: Any) -> Any:
        if failpoint.moment is Moment.BEFORE and failpoint.only(*arguments, **named):
            await place.reach()
        try:
            result = await function(*arguments, **named)
        except BaseException:
            if failpoint.moment is Moment.OVER:
                await place.reach()
            raise
        if failpoint.moment is not Moment.BEFORE and failpoint.only(result):
            await place.reach()
        return result

    return reaching


def _wrapped_call(function: Callable[..., Any], failpoint: Failpoint, place: Place) -> Callable[..., Any]:
    @functools.wraps(function)
    def reaching(*arguments: Any, **named: Any) -> Any:
        if not failpoint.only(*arguments, **named) or not place.holds():
            return function(*arguments, **named)
        if failpoint.may_wait:
            place.wait()
            return function(*arguments, **named)

        def later() -> None:
            place.wait()
            function(*arguments, **named)

        threading.Thread(target=later, name=place.name, daemon=True).start()
        return None

    return reaching
