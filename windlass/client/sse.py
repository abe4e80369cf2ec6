"""Server-sent events: from bytes, however they are cut into pieces, to messages."""

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Message:
    id: str | None
    event: str
    data: str


@dataclass
class Parser:
    """Reads as the HTML standard says.

    Lines end with LF, CR or CR LF and with nothing else: a JSON text may hold U+2028 or U+0085 as they are, which
    Python's `splitlines` (and so httpx' `iter_lines`) would take for the end of a line.
    """

    retry_ms: int | None = None
    place: str | None = None
    """The id up to which everything has been given out: that of a message under way does not count yet."""
    _rest: bytes = b""
    _id: str | None = None
    _event: str = ""
    _data: list[str] = field(default_factory=list)

    def feed(self, chunk: bytes) -> Iterator[Message]:
        """The messages that this piece completes."""
        for line in self._lines(chunk):
            if line:
                self._take(line.decode(errors="replace"))
                continue
            if self._data:
                yield Message(self._id, self._event or "message", "\n".join(self._data))
            self.place = self._id
            self._event, self._data = "", []

    def _lines(self, chunk: bytes) -> list[bytes]:
        text = self._rest + chunk
        # A CR at the end may be half of a CR LF: it is judged when more has come.
        held = b"\r" if text.endswith(b"\r") else b""
        text = text.removesuffix(held) if held else text
        *lines, rest = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = rest + held
        return lines

    def _take(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry_ms = int(value)
