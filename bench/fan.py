"""One parent with very many dependents: until all have run or been buried, and what others notice of it meanwhile."""

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from asyncpg import Record as Row

from bench.deployment import a_windlass, new_database, start_all
from bench.figures import Figure
from tests.support.installation import Client, Windlass
from tests.support.servers.databases import ask
from tests.support.servers.private_servers import throw_away_servers
from tests.support.waiting import wait_until

DEPENDENTS = int(os.environ.get("DEPENDENTS", "10000"))
PATIENCE_SECONDS = 120
"""For each step: what takes longer has failed."""
THREADS = "64"
OF_PLAIN = 0.8
BURIED_SECONDS = 5.0
BYSTANDER_SECONDS = 1.0
ENDED_SECONDS = 1.0

PROVIDERS = """
[providers.parents]
actor = "probe"
limit = 0

[providers.children]
actor = "probe"

[providers.bystander]
actor = "probe"
"""

FAMILY = """
SELECT count(*) FILTER (WHERE t.status = $2) AS number, min(t.started_at) AS first, max(t.completed_at) AS last
FROM tasks t WHERE t.tags @> ARRAY[$1]
"""


@dataclass(frozen=True)
class Family:
    """Seconds of one parent and its dependents, and the longest that somebody else's no-op took meanwhile."""

    submitted: float
    parent_ended: float
    """From when it might start until the api says that it has ended."""
    first: float | None
    """From the parent's end to the first that starts; none where none does."""
    last: float
    """From the parent's end to the last one's."""
    bystander: float


class Fan:
    """A running Windlass, and families on it."""

    def __init__(self, windlass: Windlass) -> None:
        self.windlass = windlass
        self.client = windlass.client
        self.url = windlass.environment["WINDLASS_DATABASE_URL"]

    def plain(self) -> float:
        """As many no-ops that depend on nobody, in a second: they become due together, as dependents do."""
        self.client.change_provider("children", limit=0)
        self._submit("plain", [])
        self.client.change_provider("children", limit=None)
        row = self._all("plain", "completed")
        return float(DEPENDENTS / (row["last"] - row["first"]).total_seconds())

    def family(self, tag: str, outcome: str, end: str) -> Family:
        self.client.change_provider("parents", limit=0)
        parent = self.client.submit(provider="parents", payload={"outcome": outcome})["task_id"]
        submitted = self._submit(tag, [parent])
        with self.bystander() as waited:
            began = time.monotonic()
            self.client.change_provider("parents", limit=1)
            self.client.wait_until(parent, end, seconds=PATIENCE_SECONDS)
            parent_ended = time.monotonic() - began
            row = self._all(tag, end)
        (ended,) = ask(self.url, "SELECT completed_at AS at FROM tasks WHERE task_id = $1::uuid", parent)
        first = None if row["first"] is None else (row["first"] - ended["at"]).total_seconds()
        return Family(submitted, parent_ended, first, (row["last"] - ended["at"]).total_seconds(), max(waited))

    @contextmanager
    def bystander(self) -> Iterator[list[float]]:
        """Somebody else's no-ops, one after the other: the seconds that each took."""
        over = threading.Event()
        waited: list[float] = []
        client = Client(self.windlass.url)

        def go_on() -> None:
            while not over.is_set():
                began = time.monotonic()
                client.finished(client.submit(provider="bystander")["task_id"])
                waited.append(time.monotonic() - began)
                over.wait(0.1)

        with ThreadPoolExecutor(1) as threads:
            going_on = threads.submit(go_on)
            try:
                yield waited
            finally:
                over.set()
            going_on.result()
        client.close()

    def _submit(self, tag: str, parents: list[str]) -> float:
        task = {"provider": "children", "tags": [tag], "depends_on": parents}
        began = time.monotonic()
        for begin in range(0, DEPENDENTS, 1000):
            self.client.submit_many([task] * min(1000, DEPENDENTS - begin))
        return time.monotonic() - began

    def _all(self, tag: str, status: str) -> Row:
        wait_until(
            f"{DEPENDENTS} {status}",
            lambda: ask(self.url, FAMILY, tag, status)[0]["number"] == DEPENDENTS,
            seconds=PATIENCE_SECONDS,
            every=0.2,
        )
        return ask(self.url, FAMILY, tag, status)[0]


def of_the_complete(family: Family, plain: float) -> list[Figure]:
    rate = DEPENDENTS / family.last
    assert family.first is not None
    return [
        _within(f"parent of {DEPENDENTS:,}, from its turn to its end", family.parent_ended, ENDED_SECONDS),
        Figure(
            "from its end to the end of the last dependent",
            f"{family.last:.1f} s, the first one started after {family.first:.2f} s"
            f" = {rate:.0f} tasks/s = {rate / plain:.2f} x as many that depend on nobody",
            f">= {OF_PLAIN} x",
            {"seconds": family.last, "first_seconds": family.first, "ratio": rate / plain},
            reached=rate >= OF_PLAIN * plain,
        ),
        _within("longest that a no-op of another provider took meanwhile", family.bystander, BYSTANDER_SECONDS),
    ]


def of_the_dead(family: Family) -> list[Figure]:
    return [
        _within(f"parent of {DEPENDENTS:,} that dies, from its turn to its end", family.parent_ended, ENDED_SECONDS),
        _within("from its death until the last dependent is buried", family.last, BURIED_SECONDS),
        _within("longest that a no-op of another provider took meanwhile, too", family.bystander, BYSTANDER_SECONDS),
    ]


def _within(name: str, seconds: float, aim: float) -> Figure:
    return Figure(name, f"{seconds:.2f} s", f"<= {aim:g} s", {"seconds": seconds}, reached=seconds <= aim)


def measure(windlass: Windlass) -> list[Figure]:
    fan = Fan(windlass)
    wait_until("a worker", windlass.client.workers)
    plain = fan.plain()
    complete = fan.family("complete", "ok", "completed")
    dead = fan.family("dead", "permanent", "dead")
    return [
        Figure(
            f"{DEPENDENTS:,} no-ops that depend on nobody",
            f"{plain:.0f} tasks/s",
            "the measure",
            {"tasks_per_second": plain},
        ),
        Figure(
            f"submit of {DEPENDENTS:,} dependents in batches of a thousand",
            f"{complete.submitted:.2f} s",
            "",
            {"seconds": complete.submitted},
        ),
        *of_the_complete(complete, plain),
        *of_the_dead(dead),
    ]


def figures() -> list[Figure]:
    with throw_away_servers() as servers, tempfile.TemporaryDirectory() as directory:
        config = Path(directory) / "windlass.toml"
        config.write_text(PROVIDERS)
        url = new_database(servers, "fan")
        settings = {"WINDLASS_CONFIG": str(config), "WINDLASS_ACTOR_THREADS": THREADS}
        with a_windlass(url, servers, Path(directory), **settings) as windlass:
            start_all(windlass)
            return measure(windlass)
