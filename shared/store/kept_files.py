"""Files that attempts make themselves: kept once for each task and contents, however often they are made."""

import hashlib
from dataclasses import asdict, dataclass
from uuid import UUID

from windlass.shared.db import Database, as_json
from windlass.shared.store.functions import named
from windlass.shared.store.record import fetch
from windlass.shared.store.rows import ContentRow
from windlass.shared.store.tasks import Claimed
from windlass.shared.store.tasks.fencing import fence


@dataclass(frozen=True)
class OwnFile:
    """A file that is safe under its place, or is about to be."""

    generation_id: UUID
    content_id: UUID
    media_type: str
    extension: str
    place: str
    size_bytes: int
    sha256: str

    @classmethod
    def of(cls, task_id: UUID, sha256: str, size_bytes: int, media_type: str, extension: str) -> "OwnFile":
        """Under the same names for the same file of the same task: what a lost attempt has put there is not left over,
        for the next one puts it there again."""
        generation_id = _id_from(task_id, sha256, media_type, "generation")
        place = f"{generation_id}/0.{extension}"
        content_id = _id_from(task_id, sha256, media_type, "content")
        return cls(generation_id, content_id, media_type, extension, place, size_bytes, sha256)


async def keep_file(db: Database, task: Claimed, file: OwnFile) -> bool:
    """False when the task is no longer this attempt's."""
    query = f"SELECT {named('keep_file')}($1::text::jsonb, $2::text::jsonb)"
    kept: bool = await db.fetchval(query, fence(task), as_json(asdict(file)))
    return kept


async def files_of(db: Database, task_id: UUID) -> list[ContentRow]:
    """All that its attempts have kept, the oldest first."""
    query = """
        SELECT c.* FROM contents AS c JOIN generations AS g USING (generation_id)
        WHERE g.task_id = $1 AND g.operation = 'store' ORDER BY c.created_at, c.content_id
    """
    return await fetch(db, ContentRow, query, task_id)


def _id_from(task_id: UUID, *parts: str) -> UUID:
    """As random as a UUIDv7, of its task's moment: lists are ordered by id."""
    digest = int.from_bytes(hashlib.sha256(" ".join([str(task_id), *parts]).encode()).digest()[:16])
    return UUID(int=task_id.int >> 80 << 80 | 7 << 76 | (digest >> 64 & 0xFFF) << 64 | 2 << 62 | digest & (1 << 62) - 1)
