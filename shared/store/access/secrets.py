"""What the processes of one database share: made up by the first that asks, the same for all."""

import secrets

from windlass.shared.db import Database

SECRET_BYTES = 32


async def get(db: Database, name: str) -> bytes | None:
    secret: bytes | None = await db.fetchval("SELECT secret FROM server_secrets WHERE name = $1", name)
    return secret


async def ensure(db: Database, name: str, new: bytes | None = None) -> bytes:
    """The secret of that name, `new` or made up where there is none yet. Of two that make it up at the same moment,
    both get the first one's."""
    secret: bytes = await db.fetchval(
        """
        INSERT INTO server_secrets (name, secret) VALUES ($1, $2)
        ON CONFLICT (name) DO UPDATE SET name = excluded.name
        RETURNING secret
        """,
        name,
        new or secrets.token_bytes(SECRET_BYTES),
    )
    return secret
