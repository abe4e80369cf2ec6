"""Whether a worker is to stop, and why: said by a signal, whichever thread it meets, or by any thread of its own."""

import asyncio
import contextlib
import os
import select
import signal

from windlass.services.actors.quarantine import AT_ONCE


class StopWish:
    """Heard over a pipe that the signal's own handler in C writes to. A thread that waits for a lock is woken by those
    signals only that the kernel gives to itself, and those that come two at once it may give to another; and an event
    must not be set in a handler, whose thread may just hold the event's lock."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self.is_hurried = False
        self._hearing, self._saying = os.pipe()
        os.set_blocking(self._saying, False)

    def listen(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.say("told to stop"))
        signal.signal(AT_ONCE, lambda *_: self.say("told to stop at once", at_once=True))
        signal.set_wakeup_fd(self._saying, warn_on_full_buffer=False)

    def say(self, reason: str, *, at_once: bool = False) -> None:
        """The first reason counts."""
        self.is_hurried = self.is_hurried or at_once
        self.reason = self.reason or reason
        with contextlib.suppress(BlockingIOError):  # it is full: who waits is awake
            os.write(self._saying, b".")

    async def heard(self) -> None:
        """As `wait`, in a loop of the main thread."""
        loop, said = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._hearing, said.set)
        try:
            while self.reason is None:
                await said.wait()
                os.read(self._hearing, 512)
                said.clear()
        finally:
            loop.remove_reader(self._hearing)

    def wait(self) -> None:
        while self.reason is None:
            select.select([self._hearing], [], [])
            os.read(self._hearing, 512)
