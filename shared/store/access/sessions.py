"""Sessions of browsers: each stands for a key, ends with it, and is known by the hash of a secret. And links to one."""

import secrets
from datetime import datetime

from windlass.shared.db import Database
from windlass.shared.store.access.keys import CHANNEL, LIVING, fingerprint
from windlass.shared.store.record import Record, fetchrow

LIFETIME_SECONDS = 12 * 3600.0
"""From its last use."""
RENEWED_AFTER_SECONDS = 600.0
"""A session that is used all the time is not written all the time."""
LINK_SECONDS = 15 * 60.0


class LivingSession(Record):
    """A session that opens, with what its key may do; `expires_at` is the key's own end where that comes first."""

    key_id: str
    role: str
    user_id: str
    secure: bool
    expires_at: datetime
    seconds_left: float
    is_to_renew: bool


def new_secret() -> str:
    """256 random bits, in letters that a cookie and a url can hold."""
    return secrets.token_urlsafe(32)


async def begin(db: Database, secret: str, key_id: str, *, secure: bool) -> LivingSession | None:
    """A new session of a key; none when the key opens nothing (any more)."""
    await forget_expired(db)
    await db.execute(
        f"""
        INSERT INTO sessions (session_hash, key_id, secure, expires_at)
        SELECT $1, key_id, $3, clock_timestamp() + make_interval(secs => $4) FROM api_keys
        WHERE key_id = $2 AND {LIVING}
        """,  # noqa: S608 - the condition above
        fingerprint(secret),
        key_id,
        secure,
        LIFETIME_SECONDS,
    )
    return await living(db, fingerprint(secret))


async def begin_by_link(db: Database, secret: str, link: str, *, secure: bool) -> LivingSession | None:
    """The same with a link, which is spent in the same statement: of two who use it at once one signs in."""
    await forget_expired(db)
    await db.execute(
        f"""
        WITH used AS (
            DELETE FROM session_links WHERE link_hash = $2 AND expires_at > clock_timestamp() RETURNING key_id
        )
        INSERT INTO sessions (session_hash, key_id, secure, expires_at)
        SELECT $1, key_id, $3, clock_timestamp() + make_interval(secs => $4) FROM api_keys
        WHERE key_id = (SELECT used.key_id FROM used) AND {LIVING}
        """,  # noqa: S608
        fingerprint(secret),
        fingerprint(link),
        secure,
        LIFETIME_SECONDS,
    )
    return await living(db, fingerprint(secret))


async def living(db: Database, session_hash: bytes) -> LivingSession | None:
    """The session of this hash, while neither it nor its key has ended."""
    return await fetchrow(
        db,
        LivingSession,
        f"""
        SELECT s.key_id, k.role, k.user_id, s.secure, least(s.expires_at, k.expires_at) AS expires_at,
               extract(epoch FROM least(s.expires_at, k.expires_at) - clock_timestamp())::float AS seconds_left,
               s.expires_at < clock_timestamp() + make_interval(secs => $2) AS is_to_renew
        FROM sessions s JOIN (SELECT * FROM api_keys WHERE {LIVING}) AS k USING (key_id)
        WHERE s.session_hash = $1 AND s.expires_at > clock_timestamp()
        """,  # noqa: S608
        session_hash,
        LIFETIME_SECONDS - RENEWED_AFTER_SECONDS,
    )


async def renew(db: Database, session_hash: bytes) -> None:
    """It was used: its time begins anew."""
    await db.execute(
        """
        UPDATE sessions SET expires_at = clock_timestamp() + make_interval(secs => $2)
        WHERE session_hash = $1 AND expires_at > clock_timestamp()
        """,
        session_hash,
        LIFETIME_SECONDS,
    )


async def end(db: Database, session_hash: bytes) -> str | None:
    """Ends one session in every api process and returns the id of its key; None when there is no such session.

    Every process is notified and checks again what is open under that key."""
    key_id: str | None = await db.fetchval(
        """
        WITH ended AS (DELETE FROM sessions WHERE session_hash = $1 RETURNING key_id),
             told AS MATERIALIZED (SELECT pg_notify($2, key_id) FROM ended)
        SELECT ended.key_id FROM ended, told
        """,
        session_hash,
        CHANNEL,
    )
    return key_id


async def make_link(db: Database, secret: str, key_id: str) -> datetime:
    """A link that signs in with this key, once; returns until when."""
    await forget_expired(db)
    expires_at: datetime = await db.fetchval(
        """
        INSERT INTO session_links (link_hash, key_id, expires_at)
        VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3)) RETURNING expires_at
        """,
        fingerprint(secret),
        key_id,
        LINK_SECONDS,
    )
    return expires_at


async def forget_expired(db: Database) -> None:
    """Done by whoever adds one: so there are never many."""
    await db.execute(
        """
        WITH links AS (DELETE FROM session_links WHERE expires_at < clock_timestamp())
        DELETE FROM sessions WHERE expires_at < clock_timestamp()
        """
    )
