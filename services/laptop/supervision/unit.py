"""What the supervisor keeps running: a server or a service, whatever processes it is made of."""

import signal
from typing import Protocol


class StartFailure(Exception):
    """Something that everything else needs did not start; the message says what and why."""


class Unit(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def pid(self) -> int | None:
        """The process that does the work; None for what somebody else runs."""

    async def start(self) -> None:
        """Returns when it is ready to serve, raises StartFailure when it never will be."""

    async def wait(self) -> str:
        """Returns how it ended."""

    async def stop(self) -> None:
        """Returns when nothing of it runs any more."""


def ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
