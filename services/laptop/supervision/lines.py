"""Turns what arrives on a pipe into whole lines."""

import asyncio
import os
from collections.abc import Callable
from typing import Final

CHUNK_BYTES: Final = 65_536
LONGEST_LINE_BYTES: Final = 65_536


class LineReader:
    """Reads a descriptor, which it then owns, to its end and hands over line by line."""

    def __init__(self, descriptor: int, on_line: Callable[[str], None]) -> None:
        self._descriptor = descriptor
        self._on_line = on_line
        self._begun = b""
        self._loop = asyncio.get_running_loop()
        self._finished = self._loop.create_future()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._read)

    async def finish(self, seconds: float) -> None:
        """Waits for the end; not for long, since an orphan may keep the pipe open."""
        await asyncio.wait([self._finished], timeout=seconds)

    def _read(self) -> None:
        try:
            chunk = os.read(self._descriptor, CHUNK_BYTES)
        except BlockingIOError:
            return
        *lines, self._begun = (self._begun + chunk).split(b"\n")
        if not chunk or len(self._begun) > LONGEST_LINE_BYTES:
            lines, self._begun = ([*lines, self._begun] if self._begun else lines), b""
        for line in lines:
            self._on_line(line.decode(errors="replace").rstrip("\r"))
        if not chunk:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._finished.set_result(None)
