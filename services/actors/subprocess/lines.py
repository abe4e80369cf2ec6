"""A stream of bytes as text by whole lines, each passed on as soon as it has come to its end."""

import codecs
from collections.abc import Callable
from typing import Final

from windlass.shared.storable import storable_text

LONGEST_LINE: Final = 16_384
"""A line without end is passed on in pieces of this many characters."""


class Lines:
    """Takes bytes as they are read; `say` is told one or more whole lines, and at the end what is left."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._unfinished = ""

    def take(self, chunk: bytes) -> None:
        text = self._unfinished + storable_text(self._decoder.decode(chunk))
        lines, newline, self._unfinished = text.rpartition("\n")
        if newline:
            self._say(lines + newline)
        if len(self._unfinished) > LONGEST_LINE:
            self._say(self._unfinished)
            self._unfinished = ""

    def finish(self) -> None:
        """Nothing more will come."""
        rest = self._unfinished + storable_text(self._decoder.decode(b"", final=True))
        self._unfinished = ""
        if rest:
            self._say(rest)
