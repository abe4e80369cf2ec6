"""Webhooks follow the outbox: deliveries are written by a subscriber, and tries by the worker that made them."""

from alembic import op

revision = "0032"
down_revision = "0031"

GLOBAL_SUBSCRIPTIONS = """
CREATE TABLE global_subscriptions (
    is_only boolean DEFAULT true NOT NULL CONSTRAINT global_subscriptions_pkey PRIMARY KEY,
    bits integer DEFAULT 0 NOT NULL,
    CONSTRAINT global_subscriptions_only_check CHECK (is_only)
)
"""

SUBSCRIBED = "INSERT INTO global_subscriptions (bits) SELECT 4 WHERE EXISTS (SELECT 1 FROM webhooks WHERE listens)"

PENDING_MOVES = """
WITH left_over AS (DELETE FROM untold WHERE subject = 'webhook' AND NOT move ? 'type' RETURNING *)
INSERT INTO outbox (feature, subject, task_id, life, seq, move, status, at)
SELECT 'webhook', task_id, task_id, (move ->> 'life')::int, seq, move ->> 'move', move ->> 'status',
       (move ->> 'at')::timestamptz
FROM left_over
"""

PENDING_EVENTS = """
WITH left_over AS (DELETE FROM untold WHERE subject = 'webhook' RETURNING *)
INSERT INTO outbox (feature, subject, move, at, data)
SELECT 'webhook', md5(move ->> 'subject')::uuid, move ->> 'type', (move ->> 'at')::timestamptz,
       move - '{type,at}'::text[]
FROM left_over
"""

TRIES = """
INSERT INTO delivery_tries (
    delivery_id, webhook_id, task_id, attempt, at, delivered, gone, status_code, elapsed_ms, error, excerpt)
SELECT d.delivery_id, d.webhook_id, t.task_id, (made.try ->> 'attempt')::int, (u.move ->> 'at')::timestamptz,
       (made.try ->> 'delivered')::boolean, coalesce((made.try ->> 'gone')::boolean, false),
       (made.try ->> 'status_code')::int, (made.try ->> 'elapsed_ms')::int, made.try ->> 'error', made.try ->> 'excerpt'
FROM untold u JOIN tasks t ON t.task_id = u.task_id JOIN deliveries d ON d.task_id = t.task_id
CROSS JOIN LATERAL (SELECT t.checkpoint -> 'try' AS try) AS made
WHERE u.subject = 'delivery' AND made.try IS NOT NULL
ON CONFLICT (task_id, attempt) DO NOTHING
"""

PENDING_OUTCOMES = """
WITH left_over AS (DELETE FROM untold WHERE subject = 'delivery' RETURNING *)
INSERT INTO outbox (feature, subject, task_id, life, seq, move, status, at)
SELECT 'delivery', t.concurrency_key::uuid, u.task_id, (u.move ->> 'life')::int, u.seq, u.move ->> 'move',
       u.move ->> 'status', (u.move ->> 'at')::timestamptz
FROM left_over u JOIN tasks t ON t.task_id = u.task_id
"""

STATEMENTS = (
    GLOBAL_SUBSCRIPTIONS,
    SUBSCRIBED,
    "ALTER TABLE delivery_tries ADD COLUMN gone boolean DEFAULT false NOT NULL",
    PENDING_MOVES,
    PENDING_EVENTS,
    TRIES,
    PENDING_OUTCOMES,
    "INSERT INTO outbox (feature, subject, move) SELECT 'delivery', webhook_id, 'look' FROM webhooks WHERE unsettled",
    "ALTER TABLE webhooks DROP COLUMN unsettled",
)
"""What the SQL functions of the edition before could not handle becomes outbox rows."""


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
