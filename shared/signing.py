"""What is signed with a secret that only the server knows: tokens for streams, and urls that show media for a while."""

import binascii
import hashlib
import hmac
import math
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime
from uuid import UUID

from windlass.shared.settings import Settings

MEDIA_URLS = "media-urls"
"""The name of the secret that urls of media are signed with."""
LONGEST_EXPIRY = 11


def signature(secret: bytes, said: bytes) -> str:
    return as_text(hmac.digest(secret, said, hashlib.sha256))


def is_signed(secret: bytes, said: bytes, claimed: str) -> bool:
    """Takes as long for a signature that is nearly right as for any other; compared as it is spelled."""
    return claimed.isascii() and hmac.compare_digest(claimed, signature(secret, said))


def as_text(value: bytes) -> str:
    return urlsafe_b64encode(value).decode().rstrip("=")


def as_bytes(text: str) -> bytes:
    """Refuses every spelling but the one of `as_text`: the decoder overlooks foreign characters and spare bits, and
    what is signed must not have a second name."""
    value = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    if as_text(value) != text:
        raise binascii.Error("another spelling of the same bytes")
    return value


def media_url(settings: Settings, secret: bytes, content_id: UUID, now: datetime) -> str:
    """An address that shows one file to whoever has it, for `media_url_seconds` and up to a twentieth longer: within
    that time the same file has the same address, so that a browser that asks again finds it in its cache."""
    step = max(1, settings.media_url_seconds // 20)
    expires = math.ceil((now.timestamp() + settings.media_url_seconds) / step) * step
    proof = signature(secret, _media(content_id, expires))
    return f"{settings.address}/api/v1/media/{content_id}?expires={expires}&signature={proof}"


def media_expiry(secret: bytes, content_id: UUID, expires: str, claimed: str) -> int | None:
    """Until when such an address is good, in seconds since 1970; none when it is not one of ours."""
    if not (expires.isascii() and expires.isdigit() and len(expires) <= LONGEST_EXPIRY) or expires.startswith("0"):
        return None
    return int(expires) if is_signed(secret, _media(content_id, int(expires)), claimed) else None


def _media(content_id: UUID, expires: int) -> bytes:
    return f"media {content_id} {expires}".encode()
