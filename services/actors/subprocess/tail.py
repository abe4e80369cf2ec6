"""The end of what a process has printed, in bounded memory."""

from typing import Final

from windlass.shared.storable import storable_text

STDERR_BYTES: Final = 8_192


class Tail:
    """The last bytes of a stream, however long it is."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._kept = bytearray()
        self.cut_off = False

    def add(self, chunk: bytes) -> None:
        self._kept += chunk
        # Cut now and then rather than at every chunk: each cut copies what stays.
        if len(self._kept) > 2 * self._most_bytes:
            self._cut()

    def text(self) -> str:
        if len(self._kept) > self._most_bytes:
            self._cut()
        return storable_text(self._kept.decode(errors="replace"))

    def _cut(self) -> None:
        del self._kept[: len(self._kept) - self._most_bytes]
        self.cut_off = True
