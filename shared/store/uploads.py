"""Pictures that users bring: each is kept as a generation that nobody has ordered and no task has made."""

from dataclasses import dataclass
from uuid import UUID

from uuid_utils.compat import uuid7

from windlass.shared.db import Database


@dataclass(frozen=True)
class Upload:
    """A file that is about to be safe under its place."""

    generation_id: UUID
    content_id: UUID
    media_type: str
    extension: str
    size_bytes: int
    sha256: str

    @classmethod
    def of(cls, *, media_type: str, extension: str, size_bytes: int, sha256: str) -> "Upload":
        return cls(uuid7(), uuid7(), media_type, extension, size_bytes, sha256)

    @property
    def place(self) -> str:
        return f"{self.generation_id}/0.{self.extension}"


async def keep(db: Database, upload: Upload, *, user_id: str) -> None:
    await db.execute(
        """
        WITH kept AS (
            INSERT INTO generations (
                generation_id, attempt, user_id, provider, operation, status, request, provider_job_id, callback_hash,
                ended_at)
            VALUES ($1, 0, $2, 'upload', 'upload', 'completed', '{}', $1::uuid::text,
                    sha256(gen_random_uuid()::text::bytea), clock_timestamp())
            RETURNING generation_id
        )
        INSERT INTO contents (
            content_id, generation_id, index, provider_url, media_type, extension, place, size_bytes, sha256)
        SELECT $3, generation_id, 0, '', $4, $5, $6, $7, $8 FROM kept
        """,
        upload.generation_id,
        user_id,
        upload.content_id,
        upload.media_type,
        upload.extension,
        upload.place,
        upload.size_bytes,
        upload.sha256,
    )
