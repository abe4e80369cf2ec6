"""API keys: only the hash of a secret is stored, it is compared in constant time, and every change is told."""

import hashlib
import hmac
import re
import secrets
import string

from windlass.shared.db import Database
from windlass.shared.store.functions import named
from windlass.shared.store.record import fetch, fetchrow
from windlass.shared.store.rows import ApiKeyRow

CHANNEL = "windlass_keys"
"""Told the id of every key that changes: an api that keeps verified keys in memory drops it."""

SHAPE = re.compile(r"wl_([0-9A-Za-z]{6,32})_([0-9A-Za-z]{24,64})", re.ASCII)
ALPHABET = string.ascii_letters + string.digits
SHOWN = "key_id, role, user_id, name, created_at, expires_at, revoked_at, created_by"
LIVING = "revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())"
SECONDS_LEFT = "extract(epoch FROM expires_at - clock_timestamp())::float AS seconds_left"

NOTED = """
    INSERT INTO audit_log (key_id, user_id, action, target, details)
    SELECT created_by, created_by, 'key.create', key_id, jsonb_build_object('role', role, 'user_id', user_id) FROM made
"""
"""In the statement that makes a key without any other key to answer for it: neither is there without the other."""


class LivingKey(ApiKeyRow):
    """A key that opens, and for how long; none is for ever."""

    seconds_left: float | None


def new_key() -> str:
    """40 random letters and digits are 238 bits: nobody guesses them."""
    return f"wl_{_random_word(12)}_{_random_word(40)}"


def _random_word(length: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def split(key: str) -> tuple[str, str] | None:
    """`wl_<id>_<secret>` into its id and secret."""
    match = SHAPE.fullmatch(key)
    return (match[1], match[2]) if match else None


def _required_parts(key: str) -> tuple[str, str]:
    parts = split(key)
    if parts is None:
        raise ValueError("a key is written wl_<id>_<secret>")
    return parts


def fingerprint(secret: str) -> bytes:
    """A plain SHA-256 is enough: the secret is random and long, so there is nothing to guess."""
    return hashlib.sha256(secret.encode()).digest()


async def ensure(db: Database, key: str, *, role: str, user_id: str, created_by: str) -> str | None:
    """Stores a key that the operator's settings name, unless one of its id is there: that one stays as it is, or every
    start would undo its revocation. Returns why the key does not open; none when it does.

    Of many processes that start at once, one stores it and its entry in the audit log.
    """
    key_id, secret = _required_parts(key)
    await db.execute(
        f"""
        WITH made AS (
            INSERT INTO api_keys (key_id, secret_hash, role, user_id, created_by) VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (key_id) DO NOTHING RETURNING {SHOWN})
        {NOTED}
        """,  # noqa: S608 - the names above
        key_id,
        fingerprint(secret),
        role,
        user_id,
        created_by,
    )
    if await authenticate(db, key) is not None:
        return None
    row = await get(db, key_id)
    assert row is not None, "keys are never deleted"
    if row.revoked_at is not None:
        return f"it was revoked at {row.revoked_at:%Y-%m-%d %H:%M:%S} UTC"
    return "there is another key of the same id" if row.expires_at is None else "it has expired"


async def create(
    db: Database,
    key: str,
    *,
    role: str,
    user_id: str,
    name: str | None = None,
    expires_in_seconds: float | None = None,
    created_by: str | None = None,
) -> ApiKeyRow:
    """Stores a new key; returns what may be shown of it."""
    key_id, secret = _required_parts(key)
    row = await fetchrow(
        db,
        ApiKeyRow,
        f"""
        INSERT INTO api_keys (key_id, secret_hash, role, user_id, name, created_by, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp() + make_interval(secs => $7)) RETURNING {SHOWN}
        """,  # noqa: S608 - the names above
        key_id,
        fingerprint(secret),
        role,
        user_id,
        name,
        created_by,
        expires_in_seconds,
    )
    assert row is not None
    return row


async def create_first(db: Database, key: str, *, role: str, user_id: str, created_by: str) -> ApiKeyRow | None:
    """Stores a key, and an entry in the audit log, only where no admin's key is alive: none when one is."""
    key_id, secret = _required_parts(key)
    return await fetchrow(
        db,
        ApiKeyRow,
        f"""
        WITH made AS (
            INSERT INTO api_keys (key_id, secret_hash, role, user_id, created_by)
            SELECT $1, $2, $3, $4, $5 WHERE NOT EXISTS (SELECT FROM api_keys WHERE role = 'admin' AND {LIVING})
            RETURNING {SHOWN}
        ), noted AS ({NOTED})
        SELECT * FROM made
        """,  # noqa: S608
        key_id,
        fingerprint(secret),
        role,
        user_id,
        created_by,
    )


async def get(db: Database, key_id: str) -> ApiKeyRow | None:
    return await fetchrow(db, ApiKeyRow, f"SELECT {SHOWN} FROM api_keys WHERE key_id = $1", key_id)  # noqa: S608


async def newest(db: Database, *, before: str | None, limit: int) -> list[ApiKeyRow]:
    """A page of keys, the latest first, after the one that the reader has seen last."""
    return await fetch(
        db,
        ApiKeyRow,
        f"""
        SELECT {SHOWN} FROM api_keys
        WHERE $1::text IS NULL
           OR (created_at, key_id) < (SELECT seen.created_at, seen.key_id FROM api_keys seen WHERE seen.key_id = $1)
        ORDER BY created_at DESC, key_id DESC LIMIT $2
        """,  # noqa: S608
        before,
        limit,
    )


async def revoke(db: Database, key_id: str) -> ApiKeyRow | None:
    """Ends a key at once in every api process, and with it its owner's schedules and webhooks, where no other key gives
    the right to them. None when there is no such key. Doing it again changes nothing."""
    await db.execute(f"SELECT {named('revoke_key')}($1)", key_id)
    return await get(db, key_id)


async def authenticate(db: Database, key: str) -> LivingKey | None:
    """The key's row (`key_id, role, user_id, seconds_left`) when it is known, unexpired and not revoked."""
    parts = split(key)
    if parts is None:
        return None
    row = await fetchrow(
        db,
        LivingKey,
        f"""
        SELECT key_id, secret_hash, role, user_id, {SECONDS_LEFT} FROM api_keys WHERE key_id = $1 AND {LIVING}
        """,  # noqa: S608
        parts[0],
    )
    expected = row.secret_hash if row else bytes(32)
    return row if hmac.compare_digest(expected, fingerprint(parts[1])) else None


async def valid(db: Database, key_id: str) -> LivingKey | None:
    """The same row for a key whose owner has proven it before, as long as it is neither expired nor revoked."""
    return await fetchrow(
        db,
        LivingKey,
        f"SELECT key_id, role, user_id, {SECONDS_LEFT} FROM api_keys WHERE key_id = $1 AND {LIVING}",  # noqa: S608
        key_id,
    )
