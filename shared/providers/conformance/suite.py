"""The whole suite for one configured provider, by the kinds of work that it does."""

from collections.abc import Iterator
from functools import partial

from windlass.shared.errors import NotFound
from windlass.shared.providers.conformance.chat import Writer, chat_promises
from windlass.shared.providers.conformance.media import Studio, media_promises
from windlass.shared.providers.conformance.promise import Promise
from windlass.shared.providers.http.addresses import Allowances
from windlass.shared.providers.http.network import open_client
from windlass.shared.providers.registry import adapter_of
from windlass.shared.settings import Settings
from windlass.shared.toml_tables import Endpoint

CHECKED = ("media", "summarize")
"""Actors whose providers have adapters."""

TIMEOUT_SECONDS = 30.0
LONGEST_JOB_SECONDS = 600.0


def promises(settings: Settings, name: str, endpoint: Endpoint | None) -> Iterator[Promise]:
    """Each to be tried by itself; without an endpoint, what needs somebody who answers is skipped. Raises `NotFound`
    with a sentence where there is no adapter to try."""
    if name not in settings.providers:
        raise NotFound(f"no provider is called {name}; there are {', '.join(sorted(settings.providers))}")
    configured = settings.providers[name]
    if not set(configured.actors) & set(CHECKED):
        raise NotFound(f"{name} does {', '.join(configured.actors)}, and has no adapter: there is nothing to check")
    adapter = adapter_of(settings, name)
    client = partial(open_client, Allowances.of(settings), timeout_seconds=TIMEOUT_SECONDS)
    if "media" in configured.actors:
        seconds = 0.1 if endpoint is not None and endpoint.is_fake else configured.poll_seconds
        yield from media_promises(Studio(name, adapter, endpoint, client, seconds, LONGEST_JOB_SECONDS))
    if "summarize" in configured.actors:
        yield from chat_promises(Writer(name, adapter, endpoint, client, configured.model))
