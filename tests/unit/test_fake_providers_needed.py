"""When `windlass up` starts the fake providers."""

from pathlib import Path

import pytest

from windlass.services.laptop.fake_providers import are_needed, choose_url
from windlass.services.laptop.installation import names_of_everyone
from windlass.shared.settings import Settings

KEYS = ("MIDAPI_API_KEY", "LEONARDO_API_KEY", "OPENROUTER_API_KEY")


@pytest.fixture(autouse=True)
def all_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.setenv(name, "a-key-of-somebody")


def test_not_when_every_provider_has_its_key(tmp_path: Path) -> None:
    assert not are_needed(Settings())
    assert choose_url(Settings(), tmp_path) is None
    assert "providers" not in names_of_everyone(Settings())


@pytest.mark.parametrize("missing", KEYS)
def test_when_one_key_is_missing(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(missing)
    assert are_needed(Settings())
    names = names_of_everyone(Settings())
    assert names.index("providers") < names.index("api")


def test_not_for_an_own_provider_that_they_cannot_play() -> None:
    own = {"actor": "media", "adapter": "ours.atelier", "base_url": "https://a.example", "api_key_env": "NO_SUCH_KEY"}
    assert not are_needed(Settings(providers={"atelier": own}))


def test_not_when_another_server_stands_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LEONARDO_API_KEY")
    settings = Settings(fake_providers_url="http://127.0.0.1:8900")
    assert not are_needed(settings)
    assert choose_url(settings, tmp_path) is None


def test_their_address_lasts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LEONARDO_API_KEY")
    url = choose_url(Settings(), tmp_path)
    assert url is not None
    assert url.startswith("http://127.0.0.1:")
    assert choose_url(Settings(), tmp_path) == url
