"""Secrets that have to be read again, such as those that webhooks are signed with: stored encrypted, never in clear."""

import secrets
from uuid import UUID

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

WEBHOOK_SECRETS = "webhook-secrets"
"""The name of the server's secret that those of endpoints are sealed with."""

NONCE_BYTES = 12


def seal(key: bytes, secret: str, owner: UUID) -> bytes:
    """What can be opened for the same owner alone: moved to another row, it is worth nothing."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, secret.encode(), owner.bytes)


def unseal(key: bytes, sealed: bytes, owner: UUID) -> str:
    return AESGCM(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], owner.bytes).decode()
