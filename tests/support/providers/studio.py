"""A provider of media as a test has it: an adapter, and a client that reaches the provider and little else."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.providers.fake_providers import FakeProviders
from tests.support.providers.real_providers import NAMES
from windlass.shared.providers.base import Done, Failed, MediaProvider, Order, Pending
from windlass.shared.providers.http.addresses import Allowances
from windlass.shared.providers.http.download import Downloaded, download
from windlass.shared.providers.http.network import open_client
from windlass.shared.providers.placing import prepared
from windlass.shared.providers.registry import media_provider
from windlass.shared.settings import Settings

SMALL: dict[str, dict[str, Any]] = {
    "leonardo": {"width": 512, "height": 512, "num_images": 1},
    "midjourney": {"speed": "fast"},
}
"""What a real order need not cost more than."""


@dataclass
class Studio:
    name: str
    settings: Settings
    timeout_seconds: float = 60
    poll_seconds: float = 0.02
    params: dict[str, Any] = field(default_factory=dict)

    def order(self, prompt: str, action: str = "txt2img", **fields: Any) -> Order:
        return Order(action, prompt, reference="ours", **{"params": self.params, **fields})

    @asynccontextmanager
    async def adapter(self) -> AsyncIterator[MediaProvider]:
        async with open_client(Allowances.of(self.settings), timeout_seconds=self.timeout_seconds) as http:
            yield media_provider(self.settings, self.name, http)

    async def place(self, prompt: str, action: str = "txt2img", **fields: Any) -> str:
        async with self.adapter() as adapter:
            order = await prepared(adapter, self.order(prompt, action, **fields))
            return (await adapter.order(order)).job_id

    async def end_of(self, job_id: str) -> Done | Failed:
        async with self.adapter() as adapter:
            async with asyncio.timeout(600):
                while True:
                    state = await adapter.poll(job_id)
                    if not isinstance(state, Pending):
                        return state
                    await asyncio.sleep(self.poll_seconds)

    async def made(self, prompt: str, action: str = "txt2img", **fields: Any) -> tuple[str, ...]:
        end = await self.end_of(await self.place(prompt, action, **fields))
        assert isinstance(end, Done), end
        return end.urls

    async def fetch(self, url: str, to: Path, *, largest: int = 50_000_000) -> Downloaded:
        async with open_client(Allowances.of(self.settings), timeout_seconds=self.timeout_seconds) as http:
            return await download(http, url, to, largest_bytes=largest, seconds=60)


def at_the_fake(fake: FakeProviders, name: str) -> Studio:
    return Studio(name, Settings(fake_providers_url=fake.url), params=SMALL[name])


def orders_at(fake: FakeProviders, studio: Studio) -> int:
    return len(fake.books(studio.name)["orders"])


def with_key(studio: Studio, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """A key of one's own goes to the configured address: the fake's, if it is a fake."""
    monkeypatch.setenv(NAMES[studio.name], key)
    if (url := studio.settings.fake_providers_url) is not None:
        provider = {studio.name: {"base_url": f"{url}/{studio.name}"}}
        studio.settings = Settings(fake_providers_url=url, providers=provider)
