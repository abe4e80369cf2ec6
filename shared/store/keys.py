"""API keys: only the hash of a secret is stored, and it is compared in constant time."""

import hashlib
import hmac

from shared.db import Database, Row


def split(key: str) -> tuple[str, str] | None:
    """`wl_<id>_<secret>` into its id and secret."""
    prefix, _, rest = key.partition("_")
    key_id, _, secret = rest.partition("_")
    return (key_id, secret) if prefix == "wl" and key_id and secret else None


def fingerprint(secret: str) -> bytes:
    """A plain SHA-256 is enough: the secret is random and long, so there is nothing to guess."""
    return hashlib.sha256(secret.encode()).digest()


async def ensure(db: Database, key: str, *, role: str, user_id: str) -> None:
    """Makes sure that a key given by the operator works."""
    parts = split(key)
    if parts is None:
        raise ValueError("a key is written wl_<id>_<secret>")
    await db.execute(
        """
        INSERT INTO api_keys (key_id, secret_hash, role, user_id) VALUES ($1, $2, $3, $4)
        ON CONFLICT (key_id) DO UPDATE
        SET secret_hash = excluded.secret_hash, role = excluded.role, user_id = excluded.user_id,
            revoked_at = NULL, expires_at = NULL
        """,
        parts[0],
        fingerprint(parts[1]),
        role,
        user_id,
    )


async def authenticate(db: Database, key: str) -> Row | None:
    """The key's row (`key_id, role, user_id`) when it is known, unexpired and not revoked."""
    parts = split(key)
    if parts is None:
        return None
    row = await db.fetchrow(
        """
        SELECT key_id, secret_hash, role, user_id FROM api_keys
        WHERE key_id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())
        """,
        parts[0],
    )
    expected = row["secret_hash"] if row else bytes(32)
    return row if hmac.compare_digest(expected, fingerprint(parts[1])) else None
