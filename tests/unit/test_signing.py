"""Urls that show media: good for their file and their time, and for nothing else."""

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pytest

from shared.settings import Settings
from shared.signing import media_expiry, media_url

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
