"""One of Windlass' own processes: `python -m services.…`."""

import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from windlass.services.laptop.supervision.children import Child, Children
from windlass.services.laptop.supervision.unit import StartFailure, ending


@dataclass(frozen=True)
class Liveness:
    """A probe, how often it runs, and after how many failures in a row the service is killed; as Kubernetes does it by
    `deploy/k8s/base/api.yaml`."""

    is_live: Callable[[], Awaitable[bool]]
    period_seconds: float = 10
    timeout_seconds: float = 5
    failures: int = 6


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
        liveness: Liveness | None = None,
    ) -> None:
        """With `answers` it is ready once that says so, else as soon as it was started. With `liveness` it is killed
        when it hangs."""
        self.name = name
        self._module = module
        self._children = children
        self._on_line = on_line
        self._environment = environment
        self._stop_seconds = stop_seconds
        self._answers = answers
        self._liveness = liveness
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
        """Returns how it ended. One that hangs is killed here, so that it ends, too."""
        if self._child is None:
            return "not started"
        if self._liveness is None:
            return ending(await self._child.wait())
        watching = asyncio.create_task(self._kill_if_hung(self._child, self._liveness))
        try:
            return ending(await self._child.wait())
        finally:
            watching.cancel()

    async def _kill_if_hung(self, child: Child, liveness: Liveness) -> None:
        failures = 0
        while failures < liveness.failures:
            due = time.monotonic() + liveness.period_seconds
            await asyncio.sleep(liveness.period_seconds)
            # This process was held up itself, so that the machine is busy: the child may be alive and just as slow.
            is_late = time.monotonic() > due + liveness.timeout_seconds
            failures = 0 if is_late or await self._is_live(liveness) else failures + 1
        self._on_line(f"hangs: {failures} liveness probes in a row failed, killing it")
        child.send(signal.SIGKILL)

    @staticmethod
    async def _is_live(liveness: Liveness) -> bool:
        try:
            async with asyncio.timeout(liveness.timeout_seconds):
                return await liveness.is_live()
        except TimeoutError:
            return False

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
