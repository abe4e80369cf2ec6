"""What a worker that carries a delivery needs: whether to send it now, where to and with which secrets; and a row for
the answer."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.features.webhooks.rules import TEST, Rights, is_held, is_subscribed, may_read
from windlass.shared.store.access.keys import LIVING
from windlass.shared.store.record import Record, fetchrow


class Turn(Record):
    """A delivery and its endpoint as they are now, with the endpoint's secrets as they are sealed."""

    delivery_id: UUID
    webhook_id: UUID
    user_id: str
    url: str
    events: list[str]
    state: str
    probing: bool
    deleted_at: datetime | None
    type: str
    named: bool
    owner: str | None
    """The user whose object the event is about."""
    everything: bool | None
    its_own: bool | None
    is_oldest: bool
    body: str
    secret: bytes
    previous_secret: bytes | None

    @property
    def word(self) -> str:
        """`send`, or why not. The endpoint's state, its subscription and its owner's rights are those of this try."""
        if self.deleted_at is not None:
            return "deleted"
        if not may_read(Rights(bool(self.everything), bool(self.its_own)), self.user_id, self.owner):
            return "forbidden"
        if self.type != TEST and not self.named and not is_subscribed(self.events, self.type):
            return "unsubscribed"
        waits = is_held(self.state, self.type, is_oldest=self.is_oldest, is_probing=self.probing)
        return "held" if waits else "send"


@dataclass(frozen=True, kw_only=True)
class Try:
    """One request to an endpoint, and its answer."""

    task_id: UUID
    attempt: int
    claim_token: UUID
    delivered: bool
    gone: bool
    status_code: int | None
    elapsed_ms: int
    error: str | None
    excerpt: str | None


async def begin(db: Database, task_id: UUID, delivery_id: UUID) -> Turn | None:
    """None if the task does not carry this delivery, or not any more."""
    return await fetchrow(
        db,
        Turn,
        f"""
        SELECT d.delivery_id, w.webhook_id, w.user_id, w.url::text, w.events, w.state, w.probing, w.deleted_at, d.type,
               d.named, k.everything, k.its_own, b.body, w.secret, NOT EXISTS (
                   SELECT 1 FROM deliveries o
                   CROSS JOIN LATERAL (SELECT status FROM tasks WHERE tasks.task_id = o.task_id OFFSET 0) AS t
                   WHERE o.webhook_id = w.webhook_id AND o.state = 'waiting' AND o.delivery_id < d.delivery_id
                     AND t.status NOT IN ('completed', 'dead', 'cancelled')
               ) AS is_oldest,
               CASE d.type WHEN '{TEST}' THEN w.user_id ELSE b.body::jsonb #>> '{{data,user_id}}' END AS owner,
               CASE WHEN w.previous_until > clock_timestamp() THEN w.previous_secret END AS previous_secret
        FROM deliveries d JOIN webhooks w USING (webhook_id) JOIN webhook_bodies b USING (body_id)
        CROSS JOIN LATERAL (
            SELECT bool_or(role = 'admin') AS everything, bool_or(role = 'user') AS its_own
            FROM api_keys WHERE api_keys.user_id = w.user_id AND {LIVING}
        ) AS k
        WHERE d.task_id = $1 AND d.delivery_id = $2
        """,  # noqa: S608 - constants
        task_id,
        delivery_id,
    )


async def record(db: Database, made: Try) -> bool:
    """Written once for each attempt, before the attempt ends, as long as the attempt owns its task. The moves of the
    task follow, and the endpoint is judged by this row."""
    query = """
        WITH tried AS (
            INSERT INTO delivery_tries (
                delivery_id, webhook_id, task_id, attempt, delivered, gone, status_code, elapsed_ms, error, excerpt)
            SELECT d.delivery_id, d.webhook_id, t.task_id, t.attempt, $4, $5, $6, $7, $8, $9
            FROM tasks t JOIN deliveries d ON d.task_id = t.task_id
            WHERE t.task_id = $1 AND t.attempt = $2 AND t.claim_token = $3 AND t.status = 'running'
            ON CONFLICT (task_id, attempt) DO NOTHING
            RETURNING delivery_id, status_code
        )
        UPDATE deliveries d SET attempts = d.attempts + 1, last_status = tried.status_code
        FROM tried WHERE d.delivery_id = tried.delivery_id RETURNING d.delivery_id
    """
    values: tuple[Any, ...] = (
        made.task_id, made.attempt, made.claim_token, made.delivered, made.gone, made.status_code, made.elapsed_ms,
        made.error, made.excerpt,
    )  # fmt: skip
    return await db.fetchval(query, *values) is not None
