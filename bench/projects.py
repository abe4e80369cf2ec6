"""Projects: from the end of a run to the start of the next, what a thousand idle ones cost, a reorder among many."""

import itertools
import os
import shutil
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from bench.deployment import a_windlass, new_database, start_all
from bench.figures import Figure
from bench.idleness import by_statement
from bench.statement_log import asked_within
from tests.support.installation import Windlass
from tests.support.servers.databases import ask
from tests.support.servers.private_servers import new_directory, running_servers
from tests.support.waiting import wait_until

RUNS = int(os.environ.get("RUNS", "200"))
TURNS = 5
RUN_SECONDS = 0.05
PROJECTS = int(os.environ.get("PROJECTS", "1000"))
ITEMS = int(os.environ.get("ITEMS", "10000"))
IDLE_SECONDS = int(os.environ.get("IDLE_SECONDS", "60"))
MOVES = 50
ITEMS_AT_ONCE = 1000
DRAIN_SECONDS = 300
SETTLE_SECONDS = 5
OF_A_HAND_OFF = 2.5
SINGLE = '[providers.single]\nactor = "probe"\nlimit = 1\n'

SPANS = "SELECT started_at, completed_at FROM tasks WHERE tags @> $1::text[] ORDER BY started_at"
VERSIONS = "SELECT item_id::text, xmin::text FROM project_items WHERE project_id::text = $1"
"""Of each row the transaction that wrote it last."""


class Projects:
    """A running Windlass, and what is measured on it."""

    def __init__(self, windlass: Windlass, log: Path) -> None:
        self.client = windlass.client
        self.url = windlass.environment["WINDLASS_DATABASE_URL"]
        self.log = log

    def hand_overs(self) -> tuple[float, float]:
        """Median seconds from an end to the next start: of a slot with a backlog, and of a loop, in turns.

        Both have one at a time, and the same work.
        """
        plain: list[float] = []
        looped: list[float] = []
        work = {"actor": "probe", "payload": {"seconds": RUN_SECONDS}}
        for turn in range(TURNS):
            slot = {**work, "provider": "single", "tags": [f"plain-{turn}"]}
            self.client.submit_many([slot] * (RUNS // TURNS + 1))
            plain += self._gaps(f"plain-{turn}")
            project = self.make([{**work, "tags": [f"looped-{turn}"]}] * (RUNS // TURNS + 1))
            self._post(f"/projects/{project}/run", {"mode": "loop"})
            looped += self._gaps(f"looped-{turn}")
        return statistics.median(plain), statistics.median(looped)

    def _gaps(self, tag: str) -> list[float]:
        ended = f"SELECT count(*) FROM ({SPANS}) AS spans WHERE completed_at IS NOT NULL"
        all_of_them = RUNS // TURNS + 1
        wait_until(
            f"all {tag}", lambda: ask(self.url, ended, [tag])[0][0] == all_of_them, seconds=DRAIN_SECONDS, every=0.5
        )
        rows = ask(self.url, SPANS, [tag])
        return [
            (after["started_at"] - before["completed_at"]).total_seconds() for before, after in itertools.pairwise(rows)
        ]

    def idle(self) -> tuple[Counter[str], Counter[str]]:
        """What is asked of Postgres in a minute, without projects and with so many that stand still."""
        before = self._asked()
        for _ in range(PROJECTS):
            self.make([{"actor": "probe"}])
        return before, self._asked()

    def _asked(self) -> Counter[str]:
        time.sleep(SETTLE_SECONDS)
        return by_statement(asked_within(IDLE_SECONDS, self.url, self.log))

    def reorder(self) -> tuple[float, float]:
        """Rows of the backlog that a move writes, the most of all, and the median of its seconds."""
        project = self.make([])
        for _ in range(0, ITEMS, ITEMS_AT_ONCE):
            self._post(f"/projects/{project}/items", {"items": [{"actor": "probe"}] * min(ITEMS, ITEMS_AT_ONCE)})
        before = self._versions(project)
        items, written, took = list(before), [], []
        for number in range(MOVES):
            moved, neighbour = items[number * 7 % len(items)], items[-1 - number * 11 % len(items)]
            began = time.monotonic()
            path = f"/api/v1/projects/{project}/items/{moved}"
            self.client.http.patch(path, json={"before": neighbour}).raise_for_status()
            took.append(time.monotonic() - began)
            after = self._versions(project)
            written.append(len(set(after.items()) - set(before.items())))
            before = after
        return max(written), statistics.median(took)

    def _versions(self, project: str) -> dict[str, str]:
        return {row["item_id"]: row["xmin"] for row in ask(self.url, VERSIONS, project)}

    def make(self, items: list[dict[str, Any]]) -> str:
        project = str(self._post("/projects", {"name": "bench"})["project_id"])
        if items:
            self._post(f"/projects/{project}/items", {"items": items})
        return project

    def _post(self, path: str, body: Any) -> dict[str, Any]:
        document: dict[str, Any] = self.client.http.post(f"/api/v1{path}", json=body).raise_for_status().json()
        return document


def measure(projects: Projects) -> list[Figure]:
    before, after = projects.idle()
    plain, looped = projects.hand_overs()
    rows, seconds = projects.reorder()
    return [*of_hand_overs(plain, looped), *of_idleness(before, after), *of_a_reorder(rows, seconds)]


def of_hand_overs(plain: float, looped: float) -> list[Figure]:
    times = looped / plain
    return [
        Figure(
            f"from a freed slot to its next holder, median of {RUNS}",
            f"{plain * 1000:.1f} ms",
            "the measure",
            {"p50_ms": plain * 1000},
            label="a slot",
        ),
        Figure(
            f"from the end of a run to the start of the next, median of {RUNS}",
            f"{looped * 1000:.1f} ms = {times:.2f} x a slot's hand-off",
            f"<= {OF_A_HAND_OFF:g} x",
            {"p50_ms": looped * 1000, "times": times},
            reached=times <= OF_A_HAND_OFF,
            label="a loop",
        ),
    ]


def of_idleness(before: Counter[str], after: Counter[str]) -> list[Figure]:
    """No kind of statement that was not there without them, and not more of them: one more may fall into a minute by
    where it begins."""
    new = [statement for statement in after if statement not in before]
    more = after.total() - before.total()
    kinds = f"{len(new)} new kinds" + (f": {'; '.join(each[:80] for each in new[:3])}" if new else "")
    allowed = max(3, before.total() // 20)
    return [
        Figure(
            f"statements in {IDLE_SECONDS} s with {PROJECTS:,} idle projects",
            f"{after.total()}, without them {before.total()}; {kinds}",
            "none that projects cause",
            {"with": after.total(), "without": before.total(), "new_kinds": len(new)},
            reached=more <= allowed and not [each for each in new if "project" in each],
        )
    ]


def of_a_reorder(rows: float, seconds: float) -> list[Figure]:
    return [
        Figure(
            f"a move in a backlog of {ITEMS:,}",
            f"at most {rows:.0f} row of the backlog written, {seconds * 1000:.1f} ms median of {MOVES}",
            "1 row",
            {"rows": rows, "p50_ms": seconds * 1000},
            reached=rows == 1,
        )
    ]


def figures() -> list[Figure]:
    directory = new_directory()
    try:
        with running_servers(directory) as servers, tempfile.TemporaryDirectory() as place:
            config = Path(place) / "windlass.toml"
            config.write_text(SINGLE)
            url = new_database(servers, "projects")
            with a_windlass(url, servers, Path(place), WINDLASS_CONFIG=str(config)) as windlass:
                start_all(windlass)
                wait_until("a worker", windlass.client.workers)
                return measure(Projects(windlass, directory / "servers.log"))
    finally:
        shutil.rmtree(directory, ignore_errors=True)
