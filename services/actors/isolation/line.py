"""The isolated process' end of the line: what it tells, what it asks and waits for, and what it is told."""

import itertools
import math
import os
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from windlass.services.actors.isolation.errors_told import as_raised
from windlass.services.actors.isolation.frames import Frames, framed
from windlass.shared.actors.stopped import Stopped

AT_ONCE = 2**18


class Line:
    """Any thread may write; a thread of its own reads."""

    def __init__(self, theirs: socket.socket) -> None:
        self._socket = theirs
        self._socket.set_inheritable(False)
        self._pid = os.getpid()
        self._speaking = threading.Lock()
        self._frames = Frames()
        self._numbers = itertools.count(1)
        self._asked: dict[int, Future[Any]] = {}
        self.on_stop: Callable[[str], None] = lambda _reason: None
        self.on_deadline: Callable[[float], None] = lambda _deadline: None

    def first(self) -> dict[str, Any]:
        """What there is to do; nobody says more before this has been read."""
        while True:
            for message in self._frames.take(self._heard()):
                return message

    def listen(self) -> None:
        threading.Thread(target=self._listen, name="windlass", daemon=True).start()

    def tell(self, what: str, **about: Any) -> None:
        self._say({"do": what, **about})

    def end(self, end: dict[str, Any]) -> None:
        self._say({"end": end})

    def ask(self, what: str, **about: Any) -> "Future[Any]":
        number = next(self._numbers)
        answer: Future[Any] = Future()
        self._asked[number] = answer
        self._say({"ask": number, "do": what, **about})
        return answer

    def _say(self, message: dict[str, Any]) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError("the context is that of the process which was given it, and not of one forked from it")
        written = framed(message)
        try:
            with self._speaking:
                self._socket.sendall(written)
        except OSError:
            raise Stopped from None  # the worker is gone, and with it the claim

    def _heard(self) -> bytes:
        return self._socket.recv(AT_ONCE)

    def _listen(self) -> None:
        while chunk := self._heard():
            for message in self._frames.take(chunk):
                self._hear(message)
        self.on_stop("lost")

    def _hear(self, message: dict[str, Any]) -> None:
        if "stop" in message:
            self.on_stop(message["stop"])
            return
        self.on_deadline(math.inf if message["deadline"] is None else message["deadline"])
        answer = self._asked.pop(message["answer"])
        if "error" in message:
            answer.set_exception(as_raised(message["error"]))
        else:
            answer.set_result(message["value"])
