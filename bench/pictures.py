"""Pictures whose jobs end together at their provider: how long until the last of their tasks has ended, too."""

import os
import tempfile
import time
from pathlib import Path

from bench.deployment import a_windlass, new_database, start_all
from bench.figures import Figure
from tests.support.installation import Windlass
from tests.support.providers.fake_providers import FakeProviders, fake_providers
from tests.support.servers.databases import ask
from tests.support.servers.private_servers import throw_away_servers
from tests.support.waiting import wait_until

PICTURES = int(os.environ.get("PICTURES", "200"))
JOB_SECONDS = float(os.environ.get("JOB_SECONDS", "20"))
"""From the submit to the end of all jobs: enough for all to have been ordered by then."""
PATIENCE_SECONDS = 120
AIM_SECONDS = 3.0

PROVIDER = "midjourney"
CONFIG = f"""
[providers.{PROVIDER}]
limit = {PICTURES}
"""
STATES = """
SELECT status, count(*) AS number, extract(epoch FROM max(completed_at))::float AS last
FROM tasks WHERE actor = 'media' GROUP BY status
"""


class Studio:
    """A Windlass whose pictures are made by the fake provider, which calls back."""

    def __init__(self, windlass: Windlass, fake: FakeProviders) -> None:
        self._windlass = windlass
        self._fake = fake
        self._url = windlass.environment["WINDLASS_DATABASE_URL"]

    def warm_up(self) -> None:
        """One alone: what is loaded for the first picture, here and there, is not what is measured."""
        payload = {"action": "txt2img", "prompt": "a boat [[images=1]] [[seconds=0]]"}
        task_id = self._windlass.client.submit(actor="media", provider=PROVIDER, payload=payload)["task_id"]
        assert self._windlass.client.finished(task_id)["status"] == "completed"

    def order(self) -> tuple[float, float]:
        """When all jobs will have ended, and how long it took until the last was ordered."""
        submitted_at = time.time()
        ends_at = submitted_at + JOB_SECONDS
        # One prompt for all: what the provider draws once, it does not draw again.
        payload = {"action": "txt2img", "prompt": f"a boat [[images=1]] [[ends-at={ends_at:.3f}]]"}
        self._windlass.client.submit_many([{"actor": "media", "provider": PROVIDER, "payload": payload}] * PICTURES)
        wait_until("all ordered", lambda: self._ordered() == PICTURES, seconds=JOB_SECONDS, every=0.25)
        return ends_at, max(order["at"] for order in self._fake.books(PROVIDER)["orders"]) - submitted_at

    def last_end(self) -> float:
        """When the last of the tasks has completed."""
        found = wait_until("all completed", self._all_completed, seconds=JOB_SECONDS + PATIENCE_SECONDS, every=0.25)
        return float(found)

    def _ordered(self) -> int:
        return int(ask(self._url, "SELECT count(*) FROM generations WHERE status = 'open'")[0][0])

    def _all_completed(self) -> float | None:
        states = {row["status"]: row for row in ask(self._url, STATES)}
        completed = states.get("completed")
        return completed["last"] if completed is not None and completed["number"] == PICTURES + 1 else None


def of_the_pictures(ordering: float, lateness: float) -> list[Figure]:
    return [
        Figure(
            f"{PICTURES} pictures: from submit to the last one's order",
            f"{ordering:.2f} s",
            "",
            {"seconds": ordering},
        ),
        Figure(
            f"{PICTURES} pictures that end together: from the end of their jobs to the last one's end",
            f"{lateness:.2f} s",
            f"<= {AIM_SECONDS:g} s",
            {"seconds": lateness},
            reached=lateness <= AIM_SECONDS,
        ),
    ]


def figures() -> list[Figure]:
    with (
        throw_away_servers() as servers,
        tempfile.TemporaryDirectory() as directory,
        fake_providers(Path(directory)) as fake,
    ):
        (config := Path(directory) / "windlass.toml").write_text(CONFIG)
        settings = {
            "WINDLASS_CONFIG": str(config),
            "WINDLASS_FAKE_PROVIDERS_URL": fake.url,
            "WINDLASS_QUEUES": f"media.{PROVIDER}",
            "WINDLASS_ASYNC_PLACES": str(PICTURES),
        }
        url = new_database(servers, "pictures")
        with a_windlass(url, servers, Path(directory), **settings) as windlass:
            start_all(windlass)
            studio = Studio(windlass, fake)
            studio.warm_up()
            ends_at, ordering = studio.order()
            return of_the_pictures(ordering, studio.last_end() - ends_at)
