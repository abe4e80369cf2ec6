"""Webhooks: how long deliveries take while one endpoint of ten is dead or slow, and what an end costs that nobody has
subscribed to."""

import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.deployment import a_windlass, new_database, start_all
from bench.figures import Figure
from bench.idleness import idle, of_idleness
from tests.chaos.site.configuration import TELLER
from tests.chaos.webhooks.books import Books
from tests.support.installation import Windlass
from tests.support.servers.databases import ask, execute
from tests.support.servers.private_servers import new_directory, running_servers
from tests.support.waiting import wait_until
from windlass.services.laptop.ports import free_port

DELIVERIES = int(os.environ.get("DELIVERIES", "1000"))
ENDPOINTS = 10
TASKS_PER_SECOND = float(os.environ.get("TASKS_PER_SECOND", "5"))
IDLE_ENDPOINTS = int(os.environ.get("IDLE_ENDPOINTS", "1000"))
OF_WELL_ONES = 1.5
MOST_BLOCKS = 2
DRAIN_SECONDS = 300
CONFIG = '[network]\nallow_private = ["127.0.0.1"]\n'

UNSETTLED = """
SELECT count(*) FROM deliveries d JOIN webhooks w USING (webhook_id)
WHERE w.deleted_at IS NULL AND d.state = 'waiting' AND w.url NOT LIKE $1
"""
TOOK = """
SELECT extract(epoch FROM d.delivered_at - d.created_at)::float AS seconds
FROM deliveries d JOIN webhooks w USING (webhook_id)
WHERE w.deleted_at IS NULL AND w.url NOT LIKE $1 AND d.state = 'delivered'
"""
LOOK = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT EXISTS (SELECT 1 FROM webhooks WHERE listens)"
IDLE = """
INSERT INTO webhooks (webhook_id, user_id, url, events, secret)
SELECT gen_random_uuid(), 'idle', 'https://example.org/' || n, '{%s}', 'sealed' FROM generate_series(1, %d) AS n
"""


class Ten:
    """A running Windlass, and ten endpoints at a time."""

    def __init__(self, windlass: Windlass, books: Books, receiver_url: str) -> None:
        self._client = windlass.client
        self._url = windlass.environment["WINDLASS_DATABASE_URL"]
        self._books, self._receiver_url = books, receiver_url
        self._round = 0

    def seconds(self, odd: str | None) -> list[float]:
        """What each delivery took from its commit to its answer, but for those to the odd one."""
        made = [self._make(odd if odd and number == 0 else "steady", number) for number in range(ENDPOINTS)]
        for _ in range(DELIVERIES // ENDPOINTS):
            self._client.submit(actor="tell", payload={"mark": "told"})
            time.sleep(1 / TASKS_PER_SECOND)
        left_out = f"%/{odd}-%" if odd else ""
        wait_until("all have ended", lambda: not self._client.tasks(actor="tell", status=["queued", "running"]))
        wait_until("all taken", lambda: ask(self._url, UNSETTLED, left_out)[0][0] == 0, seconds=DRAIN_SECONDS)
        took = [row["seconds"] for row in ask(self._url, TOOK, left_out)]
        for webhook_id in made:
            self._client.http.delete(f"/api/v1/webhooks/{webhook_id}").raise_for_status()
        self._round += 1
        return took

    def _make(self, kind: str, number: int) -> str:
        path = f"/{kind}-{self._round}{number}"
        body = {"url": f"{self._receiver_url}{path}", "events": []}
        made = self._client.http.post("/api/v1/webhooks", json=body).raise_for_status().json()
        self._books.share(path, made["secret"])
        change = {"events": ["task.completed"]}
        self._client.http.patch(f"/api/v1/webhooks/{made['webhook_id']}", json=change).raise_for_status()
        return str(made["webhook_id"])


def p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[98]


def of_ten(well: list[float], others: dict[str, list[float]]) -> list[Figure]:
    found = [
        Figure(
            f"{len(well):,} deliveries to ten endpoints that are well, from commit to answer",
            f"p50 {statistics.median(well) * 1000:.0f} ms, p99 {p99(well) * 1000:.0f} ms",
            "the measure",
            {"p50_ms": statistics.median(well) * 1000, "p99_ms": p99(well) * 1000},
        )
    ]
    for odd, took in others.items():
        times = p99(took) / p99(well)
        found.append(
            Figure(
                f"the same to the other nine while one is {odd}",
                f"p50 {statistics.median(took) * 1000:.0f} ms, p99 {p99(took) * 1000:.0f} ms = {times:.2f} x",
                f"<= {OF_WELL_ONES:g} x",
                {"p99_ms": p99(took) * 1000, "times": times},
                reached=times <= OF_WELL_ONES,
            )
        )
    return found


def of_an_end(url: str) -> Figure:
    """What an end without a subscription does more than before: one look, in the statement that it makes anyway. There
    are endpoints, for tasks that name them, and none has subscribed to anything."""
    execute(url, IDLE % ("", IDLE_ENDPOINTS))
    execute(url, "VACUUM ANALYZE webhooks")
    ask(url, LOOK)
    plan = json.loads(ask(url, LOOK)[0][0])[0]["Plan"]
    blocks = _blocks(plan)
    execute(url, "DELETE FROM webhooks")
    return Figure(
        f"an end with no subscription and {IDLE_ENDPOINTS:,} endpoints: blocks read for it, and further statements",
        f"{blocks} and none",
        f"<= {MOST_BLOCKS} and none",
        {"blocks": blocks},
        reached=blocks <= MOST_BLOCKS,
    )


def _blocks(plan: dict[str, Any]) -> int:
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


@contextmanager
def a_receiver(windlass: Windlass, directory: Path) -> Iterator[tuple[Books, str]]:
    port = free_port()
    directory.mkdir()
    settings = {"STORM_RECEIVER_PORT": str(port), "STORM_RECEIVER_DIRECTORY": str(directory)}
    windlass.start("tests.chaos.webhooks.receiver", **settings)
    yield Books(directory), f"http://127.0.0.1:{port}"


def figures() -> list[Figure]:
    directory = new_directory()
    try:
        with running_servers(directory) as servers, tempfile.TemporaryDirectory() as place:
            config = Path(place) / "windlass.toml"
            config.write_text(CONFIG)
            url = new_database(servers, "webhooks")
            settings = {"WINDLASS_CONFIG": str(config), "WINDLASS_ACTORS": str(TELLER)}
            with a_windlass(url, servers, Path(place), **settings) as windlass:
                start_all(windlass)
                wait_until("a worker", windlass.client.workers)
                none = of_an_end(url)
                with a_receiver(windlass, Path(place) / "receiver") as (books, receiver_url):
                    ten = Ten(windlass, books, receiver_url)
                    ten.seconds(None)  # the first round is prepared for, and measured by nobody
                    told = of_ten(ten.seconds(None), {odd: ten.seconds(odd) for odd in ("dead", "slow")})
                log = directory / "servers.log"
                asked = idle(url, log, lambda: execute(url, IDLE % ("provider.paused", IDLE_ENDPOINTS)))
                return [*told, none, of_idleness(f"{IDLE_ENDPOINTS:,} idle endpoints", "webhook", *asked)]
    finally:
        shutil.rmtree(directory, ignore_errors=True)
