"""One of Windlass' own processes: `python -m services.…`."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping

from windlass.services.laptop.supervision.children import Child, Children
from windlass.services.laptop.supervision.unit import StartFailure, ending


class Service:
    def __init__(
        self,
        name: str,
        module: str,
        children: Children,
        on_line: Callable[[str], None],
        *,
        environment: Mapping[str, str],
        stop_seconds: float,
        answers: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        """With `answers` it is ready once that says so, else as soon as it was started."""
        self.name = name
        self._module = module
        self._children = children
        self._on_line = on_line
        self._environment = environment
        self._stop_seconds = stop_seconds
        self._answers = answers
        self._child: Child | None = None

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    async def start(self) -> None:
        child = self._child = self._children.start(
            [sys.executable, "-m", self._module], environment=self._environment, on_line=self._on_line
        )
        while self._answers and not await self._answers():
            if child.has_ended:
                raise StartFailure(f"{self.name} ended before it was ready ({await self.wait()})")
            await asyncio.sleep(0.05)

    async def wait(self) -> str:
        return ending(await self._child.wait()) if self._child else "not started"

    def send(self, signum: signal.Signals) -> None:
        """Nothing when it does not run."""
        if self._child:
            self._child.send(signum)

    async def hand_back(self) -> None:
        """As `stop`, and a worker lets nothing that runs come to its end before."""
        self.send(signal.SIGUSR1)
        await self.stop()

    async def stop(self) -> None:
        if self._child and not await self._children.stop(self._child, signal.SIGTERM, self._stop_seconds):
            self._on_line(f"did not stop within {self._stop_seconds:g} s and was killed")
