"""An event loop on a thread of its own: for `async def` actors, and for the requests of the others, who can be told to
stop while they wait."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from windlass.services.actors.worker.coroutines.loop import ActorsLoop

Answer = TypeVar("Answer")

THREADS = 4
"""For what cannot be awaited; each is started when it is first needed."""


class Call(Generic[Answer]):
    """One request. It is over when all that it had open is closed, however it ended."""

    def __init__(self, on_end: Callable[[], None]) -> None:
        self._on_end = on_end
        self._over = threading.Event()
        self._task: asyncio.Task[Answer]

    def begin(self, work: Coroutine[Any, Any, Answer]) -> None:
        self._task = asyncio.ensure_future(work)
        self._task.add_done_callback(self._end)

    def cancel(self) -> None:
        self._task.cancel()

    def done(self) -> bool:
        return self._over.is_set()

    def wait(self, seconds: float) -> None:
        self._over.wait(seconds)

    def result(self) -> Answer:
        return self._task.result()

    def _end(self, task: asyncio.Task[Answer]) -> None:
        if not task.cancelled():
            task.exception()  # looked at, also when nobody asks any more
        self._over.set()
        self._on_end()


class Calls:
    """One per worker process. `patience_seconds` is what a call that must not be cut in the middle may still take."""

    def __init__(self, *, patience_seconds: float) -> None:
        self.patience_seconds = patience_seconds
        self.threads = ThreadPoolExecutor(THREADS, thread_name_prefix="asking")
        """Of our own: the actors' loop has some, too, which an actor may keep busy for as long as it likes."""
        self.loop = ActorsLoop()
        self._thread = threading.Thread(target=self._run, name="calls", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def thread_id(self) -> int:
        assert self._thread.ident is not None, "it has been started"
        return self._thread.ident

    def lives(self) -> bool:
        """One that has not been started is not late."""
        return self._thread.ident is None or self._thread.is_alive()

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(self.patience_seconds)
        self.loop.close()
        self.threads.shutdown(wait=False)

    def begin(self, work: Coroutine[Any, Any, Answer], *, on_end: Callable[[], None]) -> Call[Answer]:
        call: Call[Answer] = Call(on_end)
        self.loop.call_soon_threadsafe(call.begin, work)
        return call

    def cancel(self, call: Call[Any]) -> None:
        """Returns when what it had open is closed: an attempt that has ended leaves no request behind."""
        self.loop.call_soon_threadsafe(call.cancel)
        call.wait(self.patience_seconds / 2)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
