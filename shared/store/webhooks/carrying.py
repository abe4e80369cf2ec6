"""What a worker that carries a delivery asks for."""

from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetchrow


class Turn(Record):
    """Whether it may be sent now (`word`), where to, what, and with which secrets, as they are sealed."""

    word: str
    delivery_id: UUID
    webhook_id: UUID
    url: str
    body: str
    secret: bytes
    previous_secret: bytes | None


async def begin(db: Database, task_id: UUID, delivery_id: UUID) -> Turn | None:
    """None where the task does not carry this delivery, or does so no more."""
    query = f"SELECT * FROM {named('begin_delivery')}($1, $2)"  # noqa: S608 - a name of our own
    return await fetchrow(db, Turn, query, task_id, delivery_id)
