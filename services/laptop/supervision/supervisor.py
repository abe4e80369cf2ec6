"""Starts units stage by stage, starts again what ends by itself, and stops everything in reverse order."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final

from windlass.services.laptop.supervision.unit import StartFailure, Unit
from windlass.shared.backoff import Backoff

REMINDER_SECONDS: Final = 5


class Supervisor:
    """Until everything is ready, a unit that ends makes the start fail; from then on it is started again."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._stages: list[tuple[Unit, ...]] = []
        self._keepers: list[asyncio.Task[None]] = []
        self._on_restart: Callable[[Unit], None] | None = None
        self._wanted_again: dict[str, asyncio.Future[None]] = {}
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def until_ready(self, start_everything: Coroutine[Any, Any, None]) -> None:
        """Runs the start to its end, or to the end of a unit that it had already started."""
        starting = asyncio.create_task(start_everything)
        try:
            either: set[asyncio.Future[Any]] = {starting, self._failed}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            self._raise_what_failed()
            await starting
        finally:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)

    async def keep(self, on_restart: Callable[[Unit], None]) -> None:
        """From now on a unit that ends is started again, for as long as this runs."""
        self._raise_what_failed()
        self._on_restart = on_restart
        await asyncio.gather(*self._keepers)

    async def start(self, *stage: Unit) -> None:
        """Starts the units of one stage side by side and returns when all of them are ready."""
        self._stages.append(stage)
        self._say(f"starting {_names(stage)}")
        try:
            async with asyncio.TaskGroup() as group:
                for unit in stage:
                    group.create_task(self._start(unit))
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        self._keepers += [asyncio.create_task(self._keep(unit)) for unit in stage]

    async def start_again(self, unit: Unit, end: Coroutine[Any, Any, None]) -> None:
        """Ends a unit that is kept, on purpose, and returns when it was started again."""
        again = self._wanted_again[unit.name] = asyncio.get_running_loop().create_future()
        await end
        await again

    async def stop(self) -> None:
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        for stage in reversed(self._stages):
            self._say(f"stopping {_names(stage)}")
            await asyncio.gather(*(unit.stop() for unit in stage))

    def _raise_what_failed(self) -> None:
        if self._failed.done():
            self._failed.result()

    async def _start(self, unit: Unit) -> None:
        reminder = asyncio.create_task(self._remind(unit))
        try:
            await unit.start()
        finally:
            reminder.cancel()

    async def _remind(self, unit: Unit) -> None:
        waited = 0
        while True:
            await asyncio.sleep(REMINDER_SECONDS)
            waited += REMINDER_SECONDS
            self._say(f"still waiting for {unit.name} ({waited} s)")

    async def _keep(self, unit: Unit) -> None:
        backoff = Backoff(first_seconds=0.2, longest_seconds=10, good_run_seconds=30)
        while True:
            began = asyncio.get_running_loop().time()
            how = await unit.wait()
            if not self._on_restart:
                if not self._failed.done():
                    self._failed.set_exception(StartFailure(f"{unit.name} ended during the start ({how})"))
                return
            again = self._wanted_again.pop(unit.name, None)
            if again is None:
                delay = backoff.after(asyncio.get_running_loop().time() - began)
                self._say(f"{unit.name} ended ({how}): starting it again in {delay:g} s")
            await unit.stop()  # whatever its end left over
            await asyncio.sleep(delay if again is None else 0)
            try:
                await self._start(unit)
            except (StartFailure, OSError) as failure:
                self._say(str(failure))
                await unit.stop()
            else:
                self._say(f"{unit.name} runs again (process {unit.pid})")
                self._on_restart(unit)
            if again is not None:
                again.set_result(None)


def _names(units: Iterable[Unit]) -> str:
    return " and ".join(unit.name for unit in units)
