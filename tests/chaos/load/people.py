"""People as a load on a storm: on an event loop of their own, until they are done or are sent home."""

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable

from tests.chaos.record import Record


class PeopleLoad(ABC):
    """`start()`, and when the storm is over `finish()`; what they do is the subclass' own."""

    def __init__(self, name: str, record: Record) -> None:
        self._name, self._record = name, record
        self._stop = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._failure: BaseException | None = None

    @abstractmethod
    async def work(self) -> None: ...

    @abstractmethod
    async def close(self) -> None:
        """Called when they are done, or were sent home."""

    @abstractmethod
    def before(self) -> None:
        """Called before they begin, by whoever starts them."""

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def start(self) -> None:
        self.before()
        self._thread.start()

    def finish(self, within: float) -> bool:
        self._thread.join(within)
        came_to_its_end = self.is_over
        if not came_to_its_end:
            self._record.oddities.append(f"some people were sent home before their {self._name} had come to an end")
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(20)
        if self._failure is not None:
            raise self._failure
        return came_to_its_end

    async def at(self, seconds: float, do: Callable[[], Awaitable[None]]) -> None:
        """So long after now."""
        await asyncio.sleep(max(0.0, seconds))
        await do()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._until_stopped())
        except BaseException as error:  # noqa: BLE001 - told to whoever waits in `finish`
            self._failure = error
        finally:
            self._loop.close()

    async def _until_stopped(self) -> None:
        work, stopped = asyncio.create_task(self.work()), asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (work, stopped):
                task.cancel()
            results = await asyncio.gather(work, stopped, return_exceptions=True)
            await self.close()
        if isinstance(results[0], Exception):
            raise results[0]
