"""From a provider's name in the settings to the adapter that speaks to it."""

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import httpx

from windlass.shared.errors import NotFound, Unauthorized
from windlass.shared.providers.base import ChatProvider, EmbeddingProvider, MediaProvider
from windlass.shared.settings import Settings
from windlass.shared.toml_tables import Endpoint

HERE = "windlass.shared.providers"
CHAT = "openai"


Maker = Callable[[str, Endpoint, httpx.AsyncClient], Any]
"""An `Adapter`, not yet made."""


def media_provider(settings: Settings, name: str, http: httpx.AsyncClient) -> MediaProvider:
    """Its `Adapter`, made with where it is and which key it wants. What is missing is told to the operator."""
    provider: MediaProvider = _made(settings, name, http)
    return provider


def chat_provider(settings: Settings, name: str, http: httpx.AsyncClient) -> ChatProvider:
    """The same for texts."""
    provider: ChatProvider = _made(settings, name, http)
    if not hasattr(provider, "stream_chat"):
        raise NotFound(
            f"The adapter of {name} writes no texts; name one that does as `adapter` in [providers.{name}], "
            f'such as "{CHAT}"'
        )
    return provider


def embedding_provider(settings: Settings, name: str, http: httpx.AsyncClient) -> EmbeddingProvider:
    """The same for vectors."""
    provider = _made(settings, name, http)
    if not isinstance(provider, EmbeddingProvider):
        raise NotFound(
            f"The adapter of {name} makes no vectors; name one that does as `adapter` in [providers.{name}], "
            f'such as "{CHAT}"'
        )
    return provider


def _made(settings: Settings, name: str, http: httpx.AsyncClient) -> Any:
    if name not in settings.providers:
        raise NotFound(f"No provider is called {name!r}; add a table [providers.{name}] to the file of WINDLASS_CONFIG")
    endpoint = settings.endpoint_of(name)
    if endpoint is None:
        raise Unauthorized(f"{name} cannot be spoken to: {settings.lack_of(name)}")
    return adapter_of(settings, name)(name, endpoint, http)


def adapter_of(settings: Settings, name: str) -> Maker:
    """Its `Adapter`, not yet made: who only reads what the provider writes needs neither its address nor its key."""
    module = _module_of(name, settings.providers[name].adapter or name)
    if not hasattr(module, "Adapter"):
        raise NotFound(f"The module {module.__name__}, which is to speak to {name}, has no class named Adapter")
    adapter: Maker = module.Adapter
    return adapter


def _module_of(name: str, adapter: str) -> ModuleType:
    module = adapter if "." in adapter else f"{HERE}.{adapter}"
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise NotFound(f"The adapter of {name} needs the package {error.name}, which is not installed") from error
        raise NotFound(
            f"{name} has no adapter: there is no module {module}. "
            f'Name one as `adapter` in [providers.{name}] ("{CHAT}" for chat completions in that shape); '
            "docs/adding_a_provider.md shows how to write it"
        ) from error
