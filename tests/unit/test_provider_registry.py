"""From a provider's name to its adapter, and what is said when something is missing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from windlass.shared.errors import NotFound, Unauthorized
from windlass.shared.providers.registry import media_provider
from windlass.shared.settings import Settings

FAKE = "http://127.0.0.1:8801"


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A package of the operator's own, `studio_adapters`, on Python's path."""
    package = tmp_path_factory.mktemp("path") / "studio_adapters"
    package.mkdir()
    (package / "__init__.py").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(package.parent)
        yield package


def made(settings: Settings, name: str) -> Any:
    return media_provider(settings, name, httpx.AsyncClient())


@pytest.fixture(autouse=True)
def a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDIO_KEY", "a-key-of-the-studio")


def with_provider(**fields: Any) -> Settings:
    own = {"actor": "media", "base_url": "https://studio.example", "api_key_env": "STUDIO_KEY"}
    return Settings(fake_providers_url=FAKE, providers={"studio": {**own, **fields}})


def test_a_module_of_the_operator_s_own_is_made_with_name_endpoint_and_client(modules: Path) -> None:
    (modules / "drawing.py").write_text(
        "class Adapter:\n    def __init__(self, name, endpoint, http):\n        self.made_with = name, endpoint, http\n"
    )
    adapter = made(with_provider(adapter="studio_adapters.drawing"), "studio")
    name, endpoint, http = adapter.made_with
    assert (name, endpoint.is_fake, type(http)) == ("studio", False, httpx.AsyncClient)


def test_a_module_without_an_adapter_says_so(modules: Path) -> None:
    (modules / "empty.py").write_text("class Adaptor: ...\n")
    with pytest.raises(NotFound, match=r"studio_adapters\.empty.*studio.*no class named Adapter"):
        made(with_provider(adapter="studio_adapters.empty"), "studio")


def test_a_provider_without_a_module_says_what_to_write_and_where_it_is_told() -> None:
    with pytest.raises(NotFound, match=r"no module windlass\.shared\.providers\.studio.*adapter.*adding_a_provider"):
        made(with_provider(), "studio")
    with pytest.raises(NotFound, match=r"no module not_there\.drawing"):
        made(with_provider(adapter="not_there.drawing"), "studio")


def test_a_package_that_the_adapter_needs_is_named(modules: Path) -> None:
    (modules / "needy.py").write_text("import a_package_that_is_not_there\n")
    with pytest.raises(NotFound, match="needs the package a_package_that_is_not_there"):
        made(with_provider(adapter="studio_adapters.needy"), "studio")


def test_an_unknown_provider_says_where_to_add_it() -> None:
    with pytest.raises(NotFound, match=r"\[providers\.nobody\]"):
        made(Settings(), "nobody")


def test_without_a_key_the_variable_is_named() -> None:
    with pytest.raises(Unauthorized, match="set LEONARDO_API_KEY"):
        made(Settings(), "leonardo")


@pytest.mark.parametrize("adapter", ["studio_adapters.drawing", "leonardo", "openrouter"])
def test_an_own_provider_without_its_key_names_it_and_is_not_sent_to_the_fake(adapter: str) -> None:
    with pytest.raises(Unauthorized, match=r"studio cannot be spoken to: set KEY_OF_THE_STUDIO$"):
        made(with_provider(adapter=adapter, api_key_env="KEY_OF_THE_STUDIO"), "studio")
    with pytest.raises(Unauthorized, match=r"studio cannot be spoken to: name api_key_env in \[providers.studio\]$"):
        made(with_provider(adapter=adapter, api_key_env=None), "studio")
    with pytest.raises(Unauthorized, match=r"studio cannot be spoken to: give base_url in \[providers.studio\]$"):
        made(with_provider(adapter=adapter, base_url=None), "studio")


def test_an_own_address_of_one_that_is_built_in_is_not_the_fake_s() -> None:
    settings = Settings(fake_providers_url=FAKE, providers={"leonardo": {"base_url": "https://studio.example"}})
    with pytest.raises(Unauthorized, match=r"set LEONARDO_API_KEY$"):
        made(settings, "leonardo")


def test_a_second_name_for_one_that_is_built_in_is_played_by_the_fake() -> None:
    settings = Settings(fake_providers_url=FAKE, providers={"studio": {"actor": "media", "adapter": "leonardo"}})
    endpoint = settings.endpoint_of("studio")
    assert endpoint is not None
    assert (endpoint.base_url, endpoint.is_fake) == (f"{FAKE}/leonardo", True)


def test_a_provider_that_names_no_variable_and_no_address_says_both() -> None:
    settings = Settings(providers={"studio": {"actor": "media"}})
    with pytest.raises(Unauthorized, match=r"api_key_env in \[providers\.studio\] and give base_url"):
        made(settings, "studio")
