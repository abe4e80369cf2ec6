"""Flow control's figures: how long a slot stays empty, what a storm of retries costs a new task, how lanes share."""

import itertools
import os
import statistics
import tempfile
from pathlib import Path

from bench.deployment import a_windlass, new_database, start_all
from bench.figures import Figure
from bench.peers import starts
from tests.support.installation import Windlass
from tests.support.servers.databases import ask
from tests.support.servers.private_servers import throw_away_servers
from tests.support.waiting import wait_until

HAND_OFFS = int(os.environ.get("HAND_OFFS", "75"))
TASK_SECONDS = 0.2
HELD_AIM = 0.98
STORM = int(os.environ.get("STORM", "5000"))
STORM_LIMIT = 8
STORM_TASK_SECONDS = 0.05
SAMPLES = 40
PICKS = 100

PROVIDERS = """
[providers.single]
actor = "probe"
limit = 1

[providers.stormy]
actor = "probe"

[providers.lanes]
actor = "probe"
"""


class Flow:
    """A running Windlass, and the measurements made on it."""

    def __init__(self, windlass: Windlass) -> None:
        self.windlass = windlass
        self.url = windlass.environment["WINDLASS_DATABASE_URL"]
        self.client = windlass.client

    def never_idle(self) -> tuple[float, float]:
        """With a backlog at limit 1: the share of the time that the slot is held, and the median gap in seconds."""
        self._submit("single", HAND_OFFS, seconds=TASK_SECONDS)
        self._wait_until_ended("single", HAND_OFFS)
        rows = ask(
            self.url,
            "SELECT started_at, completed_at FROM tasks WHERE provider = 'single' ORDER BY started_at",
        )
        held = sum((row["completed_at"] - row["started_at"]).total_seconds() for row in rows)
        gaps = [
            (after["started_at"] - before["completed_at"]).total_seconds() for before, after in itertools.pairwise(rows)
        ]
        return held / (rows[-1]["completed_at"] - rows[0]["started_at"]).total_seconds(), statistics.median(gaps)

    def start_of_a_fresh_task(self) -> float:
        """Median seconds from before the request to the first line of the actor, of tasks that come one by one."""
        return starts.one_by_one(
            self.windlass, SAMPLES, provider="stormy", seconds=STORM_TASK_SECONDS, tags=["fresh"]
        ).p50

    def raise_the_storm(self) -> None:
        """So many tasks that fail at every attempt have failed once, and come again and again.

        Their error is none of the provider's own: a breaker would rightly end the storm.
        """
        self.set_limit("stormy", None)
        fields = {"outcome": "transient", "error_type": "SubprocessFailed"}
        self._submit("stormy", STORM, seconds=STORM_TASK_SECONDS, max_retries=100, **fields)
        count = "SELECT count(*) FROM tasks WHERE provider = 'stormy' AND lane = 'retry'"
        wait_until("the storm", lambda: ask(self.url, count)[0][0] == STORM, seconds=180, every=0.5)
        self.set_limit("stormy", STORM_LIMIT)

    def due_retries(self, provider: str) -> int:
        """Retries that could start at this moment: they compete with what is new."""
        due = "provider = $1 AND lane = 'retry' AND status = 'retrying' AND available_at <= clock_timestamp()"
        return int(ask(self.url, f"SELECT count(*) FROM tasks WHERE {due}", provider)[0][0])

    def lanes(self) -> int:
        """How many of the first hundred starts, one at a time, went to the retry lane while both lanes had work."""
        self._submit("lanes", PICKS, seconds=0.01, fail_times=1, error_type="SubprocessFailed")
        failed = "SELECT count(*) FROM tasks WHERE provider = 'lanes' AND lane = 'retry'"
        wait_until("they have failed once", lambda: ask(self.url, failed)[0][0] == PICKS, seconds=60)
        self.set_limit("lanes", 0)
        self._submit("lanes", PICKS, seconds=0.01)
        wait_until("both lanes are due", lambda: self.due_retries("lanes") == PICKS)
        began = ask(self.url, "SELECT clock_timestamp()")[0][0]
        self.set_limit("lanes", 1)
        self._wait_until_ended("lanes", 2 * PICKS)
        rows = ask(
            self.url,
            "SELECT lane FROM tasks WHERE provider = 'lanes' AND started_at > $1 ORDER BY started_at LIMIT $2",
            began,
            PICKS,
        )
        return sum(row["lane"] == "retry" for row in rows)

    def _submit(self, provider: str, number: int, *, max_retries: int = 3, **payload: object) -> None:
        task = {"provider": provider, "payload": payload, "max_retries": max_retries}
        for begin in range(0, number, 1000):
            self.client.submit_many([task] * min(1000, number - begin))

    def _wait_until_ended(self, provider: str, number: int) -> None:
        query = "SELECT count(*) FROM tasks WHERE provider = $1 AND completed_at IS NOT NULL"
        wait_until("all ended", lambda: ask(self.url, query, provider)[0][0] == number, seconds=180, every=0.2)

    def set_limit(self, provider: str, limit: int | None) -> None:
        self.client.change_provider(provider, limit=limit)


def measure(flow: Flow) -> list[Figure]:
    share, gap = flow.never_idle()
    retries = flow.lanes()
    flow.set_limit("stormy", STORM_LIMIT)
    calm = flow.start_of_a_fresh_task()
    flow.raise_the_storm()
    before = flow.due_retries("stormy")
    storm = flow.start_of_a_fresh_task()
    after = flow.due_retries("stormy")
    return [
        Figure(
            f"limit 1, {TASK_SECONDS * 1000:.0f} ms tasks, slot held",
            f"{share:.1%} of the time",
            f">= {HELD_AIM:.0%}",
            {"share": share},
            reached=share >= HELD_AIM,
        ),
        Figure(
            "from a freed slot to its next holder",
            f"{gap * 1000:.1f} ms median",
            "< 20 ms",
            {"p50_ms": gap * 1000},
            reached=gap < 0.020,
        ),
        Figure(
            "request to first line of a fresh task, calm",
            f"{calm * 1000:.1f} ms median",
            "the measure",
            {"p50_ms": calm * 1000},
            label="calm",
        ),
        Figure(
            f"the same with {STORM} failing tasks in retry, {before} to {after} of them due",
            f"{storm * 1000:.1f} ms median = {storm / calm:.1f} x calm",
            "<= 3 x",
            {"p50_ms": storm * 1000, "ratio": storm / calm},
            reached=storm <= 3 * calm,
            label="in a storm of retries",
        ),
        Figure(
            f"lanes, retries among {PICKS} single picks",
            f"{retries}",
            "30",
            {"retries": retries},
            reached=retries == 30,
        ),
    ]


def figures() -> list[Figure]:
    with throw_away_servers() as servers, tempfile.TemporaryDirectory() as directory:
        config = Path(directory) / "windlass.toml"
        config.write_text(PROVIDERS)
        url = new_database(servers, "flow")
        with a_windlass(url, servers, Path(directory), WINDLASS_CONFIG=str(config)) as windlass:
            start_all(windlass, actors=starts.NOTING)
            return measure(Flow(windlass))
