"""Urls that show media: good for their file and their time, and for nothing else."""

import asyncio
import binascii
import string
from base64 import urlsafe_b64decode
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pytest

from windlass.services.api.access.stream_tokens import StreamTokens
from windlass.shared.db import Database
from windlass.shared.settings import Settings
from windlass.shared.signing import media_expiry, media_url

SECRET = b"s" * 32
CONTENT = UUID("01890000-0000-7000-8000-00000000000a")
OTHER = UUID("01890000-0000-7000-8000-00000000000b")
NOW = datetime(2026, 11, 16, 12, 0, 1, 123, tzinfo=UTC)
SETTINGS = Settings(public_url="https://windlass.example/base/", media_url_seconds=3600)


def parts(url: str) -> tuple[str, str]:
    query = parse_qs(urlsplit(url).query)
    return query["expires"][0], query["signature"][0]


def test_a_url_is_absolute_from_the_public_address() -> None:
    url = media_url(SETTINGS, SECRET, CONTENT, NOW)
    assert url.startswith(f"https://windlass.example/base/api/v1/media/{CONTENT}?expires=")
    assert media_url(Settings(port=8123), SECRET, CONTENT, NOW).startswith("http://127.0.0.1:8123/api/v1/media/")


def test_it_is_good_for_the_configured_time_and_hardly_longer() -> None:
    expires, signature = parts(media_url(SETTINGS, SECRET, CONTENT, NOW))
    assert media_expiry(SECRET, CONTENT, expires, signature) == int(expires)
    assert 3600 <= int(expires) - NOW.timestamp() <= 3600 * 1.05


def test_within_a_while_the_same_file_has_the_same_url_so_that_browsers_can_keep_it() -> None:
    urls = {media_url(SETTINGS, SECRET, CONTENT, NOW + timedelta(seconds=each)) for each in (0, 60, 120, 178)}
    assert len(urls) == 1
    assert media_url(SETTINGS, SECRET, CONTENT, NOW + timedelta(seconds=180)) not in urls


@pytest.mark.parametrize("forged", ["", "A", "\u00e9", "====", "\t", "A" * 500])
def test_a_signature_of_somebody_else_s_is_none(forged: str) -> None:
    expires, _ = parts(media_url(SETTINGS, SECRET, CONTENT, NOW))
    assert media_expiry(SECRET, CONTENT, expires, forged) is None


@pytest.mark.parametrize("expires", ["", "-1", "1e9", "\u0663", "9" * 12, " 1", "0x1"])
def test_an_expiry_that_is_no_plain_number_is_none(expires: str) -> None:
    _, signature = parts(media_url(SETTINGS, SECRET, CONTENT, NOW))
    assert media_expiry(SECRET, CONTENT, expires, signature) is None


def test_neither_the_file_nor_the_time_nor_the_secret_can_be_another() -> None:
    expires, signature = parts(media_url(SETTINGS, SECRET, CONTENT, NOW))
    assert media_expiry(SECRET, OTHER, expires, signature) is None
    assert media_expiry(SECRET, CONTENT, str(int(expires) + 1), signature) is None
    assert media_expiry(b"t" * 32, CONTENT, expires, signature) is None


def test_a_signature_and_a_time_have_one_spelling() -> None:
    expires, signature = parts(media_url(SETTINGS, SECRET, CONTENT, NOW))
    for spelled in other_spellings(signature):
        assert media_expiry(SECRET, CONTENT, expires, spelled) is None, spelled
    assert media_expiry(SECRET, CONTENT, f"0{expires}", signature) is None


def test_a_token_has_one_spelling() -> None:
    async def scenario() -> None:
        tokens = StreamTokens(cast(Database, OneSecret()))
        token, _ = await tokens.issue(CONTENT, "annann")
        assert await tokens.key_behind(token, CONTENT) == "annann"
        said, _, signature = token.partition(".")
        spelled = [f"{said}.{each}" for each in other_spellings(signature)]
        spelled += [f"{each}.{signature}" for each in other_spellings(said)]
        assert [each for each in spelled if await tokens.key_behind(each, CONTENT) is not None] == []

    asyncio.run(scenario())


class OneSecret:
    async def fetchval(self, *_: Any) -> bytes:
        return SECRET


def other_spellings(text: str) -> list[str]:
    """All that a lenient decoder takes for the same bytes."""
    value = lenient(text)
    last = [text[:-1] + each for each in string.ascii_letters + string.digits + "-_"]
    found = [*last, f"{text}=", f"{text}==", f"{text}====", f"{text}\n", f" {text}", f"{text[:5]}!{text[5:]}"]
    found += [text.replace("-", "+").replace("_", "/")]
    same = [each for each in found if each != text and lenient(each) == value]
    assert same
    return same


def lenient(text: str) -> bytes | None:
    try:
        return urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4))
    except binascii.Error:
        return None
