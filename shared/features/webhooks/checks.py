"""The periodic checks of the janitor. They find endpoints that need a look and write an outbox row for each. The
subscriber looks, under the endpoint's lock."""

from windlass.shared.db import Database, as_json
from windlass.shared.features.webhooks import listening
from windlass.shared.features.webhooks.turn import FEATURE, LOOK
from windlass.shared.store.outbox import CHANNEL

WRITE = f"""
WITH written AS (
    INSERT INTO outbox (feature, subject, move, data)
    SELECT '{FEATURE}', found.webhook_id, '{LOOK}', $1::text::jsonb FROM ({{found}}) AS found
    WHERE NOT EXISTS (
        SELECT 1 FROM outbox o WHERE o.feature = '{FEATURE}' AND o.subject = found.webhook_id AND o.move = '{LOOK}')
    RETURNING 1
)
SELECT count(*)::int, CASE WHEN count(*) > 0 THEN pg_notify('{CHANNEL}', '') END FROM written
"""  # noqa: S608 - constants

DUE = "SELECT w.webhook_id FROM webhooks w WHERE w.probe_at <= clock_timestamp() ORDER BY w.probe_at LIMIT 200"

WRONG = """
    SELECT w.webhook_id FROM webhooks w
    WHERE w.deleted_at IS NULL AND (w.state <> 'disabled' OR w.probe_at IS NOT NULL) AND NOT EXISTS (
        SELECT 1 FROM api_keys k
        WHERE k.user_id = w.user_id AND (k.role = 'admin' OR (k.role = 'user' AND w.scope = 'own'))
          AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp()))
    UNION
    SELECT w.webhook_id FROM webhooks w
    WHERE EXISTS (SELECT 1 FROM deliveries d WHERE d.webhook_id = w.webhook_id AND d.state = 'waiting') AND CASE
        WHEN w.state = 'enabled' OR w.deleted_at IS NOT NULL THEN EXISTS (
            SELECT 1 FROM deliveries d JOIN tasks t ON t.task_id = d.task_id
            WHERE d.webhook_id = w.webhook_id AND d.state = 'waiting' AND 'endpoint' = ANY (t.held))
        WHEN w.state = 'failing' THEN NOT EXISTS (
            SELECT 1 FROM deliveries d JOIN tasks t ON t.task_id = d.task_id
            WHERE d.webhook_id = w.webhook_id AND d.state = 'waiting' AND 'endpoint' <> ALL (t.held))
        ELSE EXISTS (
            SELECT 1 FROM deliveries d WHERE d.webhook_id = w.webhook_id AND d.state = 'waiting'
              AND d.created_at < clock_timestamp() - make_interval(days => $2))
          OR EXISTS (
            SELECT 1 FROM deliveries d WHERE d.webhook_id = w.webhook_id AND d.state = 'waiting'
            ORDER BY d.delivery_id OFFSET $3 LIMIT 1)
        END
    LIMIT 200
"""
"""Endpoints without a right, those whose deliveries stand still, and disabled ones that hold too much or for too
long."""


async def probe(db: Database) -> int:
    """Disabled endpoints whose daily probe is due. Returns how many endpoints will be looked at."""
    found: int = await db.fetchval(WRITE.format(found=DUE), "{}")
    return found


async def check(db: Database, *, held_most: int, held_days: int) -> int:
    """Endpoints whose owner has lost the right to them, or whose deliveries do not stand as they should."""
    await listening.unset_if_unused(db)
    limits = as_json({"held_most": held_most, "held_days": held_days})
    found: int = await db.fetchval(WRITE.format(found=WRONG), limits, held_days, held_most)
    return found
