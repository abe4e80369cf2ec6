"""Where a stream over many tasks stands, as an id that a client can come back with."""

import binascii
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from uuid import UUID

from windlass.services.api.http.errors import Problem
from windlass.shared.store.reading.commit_order import Position

PLACE = struct.Struct(">Q16sI")
AHEAD = struct.Struct(">16sI")
LARGEST_XID = 2**63 - 1
LARGEST_SEQ = 2**31 - 1


@dataclass(frozen=True)
class Cursor:
    """A position in the order of commit, and the few events beyond it that were told before their turn."""

    position: Position
    ahead: frozenset[tuple[UUID, int]] = frozenset()

    def __str__(self) -> str:
        place = PLACE.pack(self.position.xid, self.position.task_id.bytes, self.position.seq)
        ahead = [AHEAD.pack(task_id.bytes, seq) for task_id, seq in sorted(self.ahead)]
        return urlsafe_b64encode(b"".join([place, *ahead])).decode().rstrip("=")


def read_cursor(text: str) -> Cursor:
    try:
        packed = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
        xid, task_id, seq = PLACE.unpack(packed[: PLACE.size])
        ahead = frozenset((UUID(bytes=each), number) for each, number in AHEAD.iter_unpack(packed[PLACE.size :]))
    except (UnicodeEncodeError, binascii.Error, struct.error):
        raise invalid_cursor() from None
    cursor = Cursor(Position(xid, UUID(bytes=task_id), seq), ahead)
    if str(cursor) != text or xid > LARGEST_XID or seq > LARGEST_SEQ:
        raise invalid_cursor()
    return cursor


def invalid_cursor() -> Problem:
    detail = "the last event id is not one that this stream has given out; without any, the stream starts now"
    return Problem(400, "invalid-event-id", detail)
