"""What an attempt has put out since its last report: joined as it comes, and cut into events that a reader can take."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from windlass.shared.scrubbing import withhold
from windlass.shared.storable import storable_text

MOST_STRETCHES: Final = 20
"""Two streams that alternate quickly make no more pieces of one report than this: each piece is a row."""

LONGEST_CHARACTER_BYTES: Final = 4
CONTINUES: Final = range(0b1000_0000, 0b1100_0000)
"""The bytes of UTF-8 that no character begins with."""


@dataclass
class Stretch:
    """What was said on one stream before another one spoke up; `None` is the usual one."""

    stream: str | None
    pieces: list[str] = field(default_factory=list)

    def as_events(self, most_bytes: int) -> Iterator[dict[str, Any]]:
        """Secrets are taken out before it is cut: half of one would not be known."""
        named = {} if self.stream is None else {"stream": self.stream}
        for text in cut(withhold(storable_text("".join(self.pieces))), most_bytes):
            yield {"type": "output", "data": {"text": text, **named}}


class UnreportedOutput:
    """Of one attempt, whose cap it keeps: past it one event says so, and the rest is dropped. Not safe for threads."""

    def __init__(self, *, most_bytes: int, most_event_bytes: int) -> None:
        self._most_bytes = self._left = most_bytes
        self._most_event_bytes = most_event_bytes
        self._stretches: list[Stretch] = []
        self._cut_off = False

    def __bool__(self) -> bool:
        return self._cut_off or bool(self._stretches)

    def add(self, text: str, stream: str | None) -> bool:
        """Whether there is something to report by it."""
        if self._left < 0:
            return False
        self._left -= len(text.encode(errors="replace"))
        if self._left < 0:
            self._cut_off = True
        else:
            self._stretch(stream).pieces.append(text)
        return True

    def take(self) -> "UnreportedOutput":
        """All of it, to be written while more is added here."""
        taken = UnreportedOutput(most_bytes=self._most_bytes, most_event_bytes=self._most_event_bytes)
        taken._stretches, taken._cut_off = self._stretches, self._cut_off
        self._stretches, self._cut_off = [], False
        return taken

    def as_events(self) -> list[dict[str, Any]]:
        events = [event for stretch in self._stretches for event in stretch.as_events(self._most_event_bytes)]
        if self._cut_off:
            marker = {"output_cut_off": True, "limit_bytes": self._most_bytes}
            events.append({"type": "output", "data": {"data": marker}})
        return events

    def _stretch(self, stream: str | None) -> Stretch:
        """In the order in which it is said, while the streams do not take turns too quickly."""
        found = next((each for each in reversed(self._stretches) if each.stream == stream), None)
        if found is None or (found is not self._stretches[-1] and len(self._stretches) < MOST_STRETCHES):
            found = Stretch(stream)
            self._stretches.append(found)
        return found


def cut(text: str, most_bytes: int) -> Iterator[str]:
    """Pieces of at most so many bytes, the text when they are joined: cut after a line where one ends in reach, and
    never inside a character."""
    assert most_bytes >= LONGEST_CHARACTER_BYTES
    if len(text) * LONGEST_CHARACTER_BYTES <= most_bytes:
        yield text
        return
    written = text.encode()
    start = 0
    while start < len(written):
        end = _end_of_piece(written, start, most_bytes)
        yield written[start:end].decode()
        start = end


def _end_of_piece(written: bytes, start: int, most_bytes: int) -> int:
    end = start + most_bytes
    if end >= len(written):
        return len(written)
    if newline := written.rfind(b"\n", start, end) + 1:
        return newline
    while written[end] in CONTINUES:
        end -= 1
    return end
