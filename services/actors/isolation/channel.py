"""The worker's end of the line to an isolated attempt: it blocks nobody, and any thread may speak on it."""

import os
import select
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from windlass.services.actors.isolation.frames import Frames, framed

AT_ONCE = 2**18


class Channel:
    """Moved by the attempt's own thread, as its process' pipes are. `hear` is told each message there."""

    def __init__(self, ours: socket.socket, hear: Callable[[dict[str, Any]], None]) -> None:
        self._socket = ours
        os.set_blocking(ours.fileno(), False)
        self._hear = hear
        self._frames = Frames()
        self._lock = threading.Lock()
        self._unsent = bytearray()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.is_open = True

    def say(self, message: dict[str, Any]) -> None:
        """Whoever moves it is woken. Nothing where nobody listens any more."""
        written = framed(message)
        with self._lock:
            if self.is_open:
                self._unsent += written
                os.eventfd_write(self._wake, 1)

    def interests(self) -> dict[int, int]:
        if not self.is_open:
            return {}
        events = select.POLLIN | (select.POLLOUT if self._unsent else 0)
        return {self._socket.fileno(): events, self._wake: select.POLLIN}

    def move(self) -> None:
        if not self.is_open:
            return  # closed by what was moved a moment ago
        with suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        self._send()
        self._receive()

    def close(self) -> None:
        with self._lock:
            if self.is_open:
                self.is_open = False
                self._socket.close()
                os.close(self._wake)

    def _send(self) -> None:
        with self._lock, suppress(BlockingIOError, ConnectionError):
            while self._unsent:
                del self._unsent[: self._socket.send(self._unsent[:AT_ONCE])]

    def _receive(self) -> None:
        try:
            chunk = self._socket.recv(AT_ONCE)
        except BlockingIOError:
            return
        except ConnectionError:
            chunk = b""
        if not chunk:
            self.close()
            return
        try:
            for message in self._frames.take(chunk):
                self._hear(message)
        except BaseException:
            self.close()
            raise
