"""Keys under which tasks were submitted: they are taken with the submit, and put away here when their time is over."""

from windlass.shared.db import Database

KEPT_SECONDS_AFTER_EXPIRY = 60
"""A submit that has just seen a key unexpired may still be about to read it."""


async def forget_expired(db: Database, *, at_most: int = 1000) -> int:
    """Removes keys that mean nothing any more; returns how many. Those that a submit is just taking over are left."""
    removed: int = await db.fetchval(
        """
        WITH expired AS (
            SELECT user_id, kind, key FROM submission_keys
            WHERE expires_at < clock_timestamp() - make_interval(secs => $2)
            ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
        ), removed AS (
            DELETE FROM submission_keys k USING expired e
            WHERE k.user_id = e.user_id AND k.kind = e.kind AND k.key = e.key
            RETURNING 1
        )
        SELECT count(*) FROM removed
        """,
        at_most,
        KEPT_SECONDS_AFTER_EXPIRY,
    )
    return removed
