"""What the api processes of one database sign with: made up by the first that asks, the same for all."""

import secrets

from shared.db import Database

SECRET_BYTES = 32


async def ensure(db: Database, name: str) -> bytes:
    """The secret of that name. Of two that make it up at the same moment, both get the first one's."""
    secret: bytes = await db.fetchval(
        """
        INSERT INTO server_secrets (name, secret) VALUES ($1, $2)
        ON CONFLICT (name) DO UPDATE SET name = excluded.name
        RETURNING secret
        """,
        name,
        secrets.token_bytes(SECRET_BYTES),
    )
    return secret
