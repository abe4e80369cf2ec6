"""What a task, a page of a list and `/queues/status` cost with nothing, with much and with very much in history."""

import asyncio
import os
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.deployment import a_windlass, new_database, on_a_virtual_host, precise_cpu_seconds, start_all
from bench.figures import Figure, told
from bench.long_history import fill
from tests.support.installation import Windlass
from tests.support.servers.databases import ask, execute
from tests.support.servers.private_servers import Servers, throw_away_servers
from tests.support.waiting import wait_until
from windlass.shared.sql_fragments import words
from windlass.shared.states import LIVE

LENGTHS = tuple(map(int, os.environ.get("LENGTHS", "0 100000 2000000").split()))
TASKS = int(os.environ.get("TASKS", "1000"))
ROUNDS = int(os.environ.get("ROUNDS", "7"))
PAGE_ROUNDS = 15
PAGES_PER_ROUND = 10
DEAD = 60
"""More than a page of them."""
SETTLE_SECONDS = 11
"""An idle backend tells its statistics after ten seconds."""
AIM = 1.1

TASK = {"user_id": "bench", "project_id": "bench", "tags": ["bench"]}
PAGES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "the newest": ("/api/v1/tasks", {}),
    "completed": ("/api/v1/tasks", {"status": "completed"}),
    "dead": ("/api/v1/tasks", {"status": "dead"}),
    "of a provider": ("/api/v1/tasks", {"provider": "probe"}),
    "of a user": ("/api/v1/tasks", {"user_id": "bench"}),
    "with a tag": ("/api/v1/tasks", {"tag": "bench"}),
    "of a project": ("/api/v1/tasks", {"project_id": "bench"}),
}
STATUS = "/queues/status"
DRAWN = ("page, the newest", "page, of a user", "page, with a tag", "page, of a project", STATUS)
"""A plot with more lines than these would be a thicket."""


@dataclass(frozen=True)
class Cost:
    """Of one task or one request: as its client sees it, and as Postgres does."""

    milliseconds: float
    cpu_milliseconds: float
    wal_bytes: float = 0


class History:
    """A Windlass on a database with so many finished tasks."""

    def __init__(self, windlass: Windlass, tasks: int) -> None:
        self.windlass = windlass
        self.tasks = tasks
        self.url = windlass.environment["WINDLASS_DATABASE_URL"]

    def drain(self) -> Cost:
        """Of a no-op from submit to end, submitted beforehand; its time is the share of the drain's."""
        client = self.windlass.client
        client.change_provider("probe", limit=0)
        with self.spent() as spent:
            ids = client.submit_many([TASK] * TASKS)
            client.change_provider("probe", limit=None)
            self.wait_until_nothing_lives()
        row = ask(
            self.url,
            "SELECT extract(epoch FROM max(completed_at) - min(started_at))::float FROM tasks"
            " WHERE task_id = ANY ($1::uuid[])",
            ids,
        )[0]
        return Cost(row[0] * 1000 / TASKS, spent["cpu"] * 1000 / TASKS, spent["wal"] / TASKS)

    def bury_some(self) -> None:
        payload = {"outcome": "permanent", "error_type": "ContentRejected"}
        self.windlass.client.submit_many([{**TASK, "payload": payload}] * DEAD)
        self.wait_until_nothing_lives()

    def read(self, path: str, parameters: Mapping[str, str]) -> Cost:
        seconds = []
        with self.spent() as spent:
            for _ in range(PAGES_PER_ROUND):
                began = time.perf_counter()
                answer = self.windlass.client.http.get(
                    path, params={"limit": "50", **parameters} if parameters else None
                )
                seconds.append(time.perf_counter() - began)
                assert answer.status_code == 200, answer.text
        if path != f"/api/v1{STATUS}":
            assert len(answer.json()["items"]) == 50
        return Cost(statistics.median(seconds) * 1000, spent["cpu"] * 1000 / PAGES_PER_ROUND)

    def wait_until_nothing_lives(self) -> None:
        query = f"SELECT 1 FROM tasks WHERE status IN {words(LIVE)} LIMIT 1"
        wait_until("all have ended", lambda: not ask(self.url, query), seconds=180, every=0.1)

    @contextmanager
    def spent(self) -> Iterator[dict[str, float]]:
        """CPU seconds of the backends that serve this Windlass, and bytes written to the log."""
        spent: dict[str, float] = {}
        before, position = self._cpu_by_backend(), self._log_position()
        yield spent
        spent["wal"] = self._log_position() - position
        spent["cpu"] = sum(cpu - before.get(pid, 0) for pid, cpu in self._cpu_by_backend().items())

    def _cpu_by_backend(self) -> dict[int, float]:
        query = (
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'windlass-%'"
        )
        return {row["pid"]: precise_cpu_seconds(row["pid"]) for row in ask(self.url, query)}

    def _log_position(self) -> float:
        return float(ask(self.url, "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float")[0][0])

    def blocks(self) -> int:
        """Blocks that were looked at, in memory or not, since the beginning."""
        query = "SELECT blks_hit + blks_read FROM pg_stat_database WHERE datname = current_database()"
        return int(ask(self.url, query)[0][0])


def in_turns(histories: Sequence[History], rounds: int, measure: Callable[[History], Cost]) -> list[dict[int, Cost]]:
    """Each round begins with another one, so that a busy moment of the machine hits all alike."""
    turn = deque(histories)
    found = []
    for _ in range(rounds):
        found.append({history.tasks: measure(history) for history in turn})
        turn.rotate(1)
    return found


def compare(
    what: str, label: str, unit: str, values: Mapping[int, float], ratio: float, *, aimed: bool = True
) -> Figure:
    """Ratio: how much dearer the longest history is than the shortest."""
    each = " / ".join(told(values[tasks]) for tasks in LENGTHS)
    return Figure(
        what,
        f"{each} {unit} = {ratio:.2f} x",
        f"< {AIM} x" if aimed else "",
        {f"at_{tasks}": values[tasks] for tasks in LENGTHS} | {"ratio": ratio},
        reached=ratio < AIM if aimed else None,
        label=label,
    )


def medians(rounds: Sequence[Mapping[int, Cost]], value: Callable[[Cost], float]) -> tuple[dict[int, float], float]:
    """Of each history's rounds, and of the longest one's ratio to the shortest, round by round."""
    middle = {tasks: statistics.median(value(each[tasks]) for each in rounds) for tasks in LENGTHS}
    return middle, statistics.median(value(each[LENGTHS[-1]]) / value(each[LENGTHS[0]]) for each in rounds)


def costs_of_a_task(histories: Sequence[History]) -> list[Figure]:
    in_turns(histories, 1, History.drain)
    time.sleep(SETTLE_SECONDS)
    before = {history.tasks: history.blocks() for history in histories}
    rounds = in_turns(histories, ROUNDS, History.drain)
    time.sleep(SETTLE_SECONDS)
    blocks = {history.tasks: (history.blocks() - before[history.tasks]) / (ROUNDS * TASKS) for history in histories}
    return [
        compare("a task, CPU of Postgres", "a task, CPU", "ms", *medians(rounds, lambda cost: cost.cpu_milliseconds)),
        compare("a task, time in a drain", "", "ms", *medians(rounds, lambda cost: cost.milliseconds), aimed=False),
        compare("a task, blocks looked at", "", "blocks", blocks, blocks[LENGTHS[-1]] / blocks[LENGTHS[0]]),
        compare("a task, write-ahead log", "", "bytes", *medians(rounds, lambda cost: cost.wal_bytes)),
    ]


def costs_of_a_page(histories: Sequence[History], name: str, path: str, parameters: Mapping[str, str]) -> list[Figure]:
    in_turns(histories, 1, lambda history: history.read(path, parameters))
    rounds = in_turns(histories, PAGE_ROUNDS, lambda history: history.read(path, parameters))
    return [
        compare(
            f"{name}, CPU of Postgres",
            name if name in DRAWN else "",
            "ms",
            *medians(rounds, lambda cost: cost.cpu_milliseconds),
        ),
        compare(f"{name}, time at the client", "", "ms", *medians(rounds, lambda cost: cost.milliseconds), aimed=False),
    ]


def measure(histories: Sequence[History]) -> list[Figure]:
    """Pages are read after a vacuum: a small table has one every minute, a large one when a fifth has changed, and what
    is compared is the length of history and not the time since the last one."""
    found = costs_of_a_task(histories)
    for history in histories:
        history.bury_some()
        execute(history.url, "VACUUM (ANALYZE) tasks")
    for name, (path, parameters) in PAGES.items():
        found += costs_of_a_page(histories, f"page, {name}", path, parameters)
    return found + costs_of_a_page(histories, STATUS, f"/api/v1{STATUS}", {})


COUNTED_AT_NONE = """
INSERT INTO task_counts (user_id, provider, actor, status, tasks)
SELECT '', provider, actor, status, 0
FROM (VALUES ('midjourney', 'media'), ('leonardo', 'media'), ('openrouter', 'summarize'), ('local', 'agent'))
     AS of(provider, actor), unnest(ARRAY['completed', 'dead', 'cancelled']) AS status
"""
"""`/queues/status` costs by the providers that were ever used, and that is not what is compared."""


def prepare(servers: Servers) -> dict[int, str]:
    urls = {}
    for tasks in LENGTHS:
        began = time.monotonic()
        urls[tasks] = new_database(servers, f"history_{tasks}")
        if tasks:
            asyncio.run(fill(urls[tasks], tasks, live=0))
        else:
            execute(urls[tasks], COUNTED_AT_NONE)
        print(f"a history of {tasks:,} tasks is written ({time.monotonic() - began:.0f} s)", flush=True)
    execute(servers.database_url, "CHECKPOINT")
    return urls


def figures() -> list[Figure]:
    with throw_away_servers() as servers, ExitStack() as stack:
        return measure_on(servers, prepare(servers), stack)


def measure_on(servers: Servers, urls: Mapping[int, str], stack: ExitStack) -> list[Figure]:
    """Three at once, of which one works at a time: an idle one costs next to nothing."""
    histories = []
    for tasks, url in urls.items():
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        own = on_a_virtual_host(servers, f"history_{tasks}")
        histories.append(History(stack.enter_context(a_windlass(url, own, directory)), tasks))
        start_all(histories[-1].windlass)
    return measure(histories)
