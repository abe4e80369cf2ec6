"""A Windlass whose providers are the fake server's, and short ways to say what the tests of media mean."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from tests.acceptance.conftest import a_windlass_apart
from tests.support.installation import Client, Windlass
from tests.support.providers.fake_providers import FakeProviders, fake_providers
from tests.support.servers.private_servers import Servers

CONFIG = """
[providers.leonardo]
poll_seconds = 0.1

[providers.midjourney]
poll_seconds = 0.1
callback_wait_seconds = 1

[providers.patient]
actor = "media"
adapter = "midjourney"
limit = 1
poll_seconds = 60
price_per_call = 0.25

[providers.stubborn]
actor = "media"
adapter = "midjourney"
when_unknown = "resubmit"
callback_wait_seconds = 0
poll_seconds = 0.1
"""


@dataclass
class Studio:
    """A Windlass that makes pictures, and the other side of it."""

    windlass: Windlass
    fake: FakeProviders

    @property
    def client(self) -> Client:
        return self.windlass.client

    @property
    def data(self) -> Path:
        return self.windlass.directory / "data"

    def order(self, prompt: str = "a boat at dawn", *, provider: str = "leonardo", **fields: Any) -> str:
        payload = {"action": "txt2img", "prompt": f"{prompt} {uuid4().hex}", **fields.pop("payload", {})}
        return str(self.client.submit(actor="media", provider=provider, payload=payload, **fields)["task_id"])

    def orders_of(self, task_id: str) -> list[dict[str, Any]]:
        """What the other side has in its books of this task: known by its prompt."""
        task = self.client.get(task_id)
        prompt = task["payload"]["prompt"]
        adapter = "leonardo" if task["provider"] == "leonardo" else "midjourney"
        return [order for order in self.fake.books(adapter)["orders"] if order["prompt"] == prompt]

    def files(self) -> set[str]:
        """Every file that is kept or half kept."""
        return {
            str(path)
            for folder in (self.windlass.directory / "media", self.data / "downloads")
            for path in folder.rglob("*")
            if path.is_file() and not path.name.startswith(".")
        }

    def open_jobs(self) -> int:
        return sum(len(self.slots(name)) for name in ("leonardo", "midjourney", "patient", "stubborn"))

    def slots(self, provider: str) -> list[dict[str, Any]]:
        found = self.client.http.get(f"/api/v1/providers/{provider}").raise_for_status().json()["slots"]["holders"]
        return list(found)


@contextmanager
def a_studio(
    servers: Servers,
    template: str,
    management: httpx.Client,
    directory: Path,
    *,
    actors: tuple[str, ...] = ("media",),
    config: str = CONFIG,
    **settings: str,
) -> Iterator[Studio]:
    with (
        fake_providers(directory) as fake,
        a_windlass_apart(
            servers,
            template,
            management,
            directory,
            config=config,
            actors=actors,
            WINDLASS_FAKE_PROVIDERS_URL=fake.url,
            WINDLASS_ABANDONED_JOB_SECONDS="6",
            **settings,
        ) as windlass,
    ):
        windlass.start_all()
        yield Studio(windlass, fake)
