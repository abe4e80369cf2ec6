"""The outbox: how long a row waits for its subscriber, with a long history under an open snapshot, and beside a subject
that fails.

A relay of the orchestrator handles the rows of a feature that records when it handled each. The time is from the row's
insertion to the subscriber's, by Postgres' clock. And what a task's end costs while the orchestrator stands still.
"""

import asyncio
import os
import signal
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID, uuid4

from bench.deployment import a_windlass, new_database, start_all
from bench.figures import Figure
from bench.snapshot import an_open_snapshot
from tests.support.engine.outbox import relays
from tests.support.engine.store import Engine, an_engine, until
from tests.support.installation import Windlass
from tests.support.servers.databases import ask, execute
from tests.support.servers.private_servers import throw_away_servers
from tests.support.waiting import wait_until
from windlass.shared.concerns import Concern
from windlass.shared.db import Database
from windlass.shared.features.feature import Feature
from windlass.shared.store import outbox
from windlass.shared.store.outbox import Move

HISTORY = int(os.environ.get("OUTBOX_HISTORY", "1000000"))
"""Rows that were written and deleted while a snapshot is open, so that no vacuum can remove them."""
POISONED = int(os.environ.get("OUTBOX_POISONED", "200000"))
"""Rows of one subject that its feature cannot handle."""
SAMPLES = int(os.environ.get("OUTBOX_SAMPLES", "500"))
AT_ONCE = 50_000
PAUSE_SECONDS = 0.01
DRAINED = int(os.environ.get("OUTBOX_DRAINED", "5000"))
ROUNDS = int(os.environ.get("ROUNDS", "5"))
AIM_MS = 50.0
FLAT = 2.0
LONGEST_SECONDS = 120.0

WRITE = "INSERT INTO outbox (feature, subject, task_id, life, seq, move, status) "
SERIES = "SELECT 'bench', $1, $1, 1, seq, 'complete', 'completed' FROM generate_series(1, $2::int) AS seq"
PASS_THROUGH = f"""
WITH written AS ({WRITE} SELECT 'bench', gen_random_uuid(), gen_random_uuid(), 1, 1, 'complete', 'completed'
                 FROM generate_series(1, $1::int) RETURNING id)
SELECT count(*) FROM written
"""
ENDED = """
SELECT count(completed_at) AS number, extract(epoch FROM max(completed_at) - min(started_at))::float AS seconds
FROM tasks WHERE task_id = ANY($1::uuid[])
"""
HANDLED = "CREATE TABLE handled (subject uuid, seconds float)"
RECORD = "INSERT INTO handled SELECT $1, extract(epoch FROM clock_timestamp() - $2)"


class Recording:
    """A feature that records how long each row waited, and refuses one subject."""

    def __init__(self) -> None:
        self.feature = Feature("bench", self.handle)
        self.poisoned: UUID | None = None

    async def handle(self, db: Database, moves: Sequence[Move]) -> None:
        if any(move.subject == self.poisoned for move in moves):
            raise ValueError("this subject cannot be handled")
        await db.executemany(RECORD, [(move.subject, move.at) for move in moves])


async def waits(engine: Engine) -> list[float]:
    """Milliseconds until each of many rows was handled, one row after the other."""
    await engine.sql("TRUNCATE handled")
    for _ in range(SAMPLES):
        await engine.sql(WRITE + SERIES, uuid4(), 1)
        await engine.sql(f"NOTIFY {outbox.CHANNEL}")
        await asyncio.sleep(PAUSE_SECONDS)

    async def all_are_handled() -> bool:
        return await engine.pool.fetchval("SELECT count(*) FROM handled") == SAMPLES  # type: ignore[no-any-return]

    await until(all_are_handled, seconds=LONGEST_SECONDS)
    return [row["seconds"] * 1000 for row in await engine.pool.fetch("SELECT seconds FROM handled")]


async def measure(url: str) -> list[Figure]:
    recording = Recording()
    async with an_engine(url) as engine, relays(engine, recording.feature):
        await engine.sql(HANDLED)
        await waits(engine)  # warm up
        alone = await waits(engine)
        async with an_open_snapshot(url):
            for _ in range(0, HISTORY, AT_ONCE):
                await engine.sql(PASS_THROUGH, AT_ONCE)
                await engine.sql("DELETE FROM outbox WHERE feature = 'bench'")
            after_many = await waits(engine)
        recording.poisoned = uuid4()
        await engine.sql(WRITE + SERIES, recording.poisoned, POISONED)
        beside_poison = await waits(engine)
    return [
        _figure("a row is handled", alone),
        _figure(f"after {HISTORY:,} rows under an open snapshot", after_many, alone),
        _figure(f"beside {POISONED:,} rows of a subject that fails", beside_poison, alone),
    ]


def _figure(name: str, sample: list[float], base: list[float] | None = None) -> Figure:
    p50, p99 = statistics.median(sample), statistics.quantiles(sample, n=100)[98]
    numbers = {"p50_ms": p50, "p99_ms": p99}
    ratio, aim, reached = "", f"p99 <= {AIM_MS:g} ms", p99 <= AIM_MS
    if base is not None:
        numbers["ratio"] = p50 / statistics.median(base)
        ratio = f", {numbers['ratio']:.2f} x of the first line"
        aim, reached = f"{aim}, p50 <= {FLAT:g} x", reached and numbers["ratio"] <= FLAT
    return Figure(name, f"p50 {p50:.1f} ms, p99 {p99:.1f} ms{ratio}", aim, numbers, reached=reached)


def beside_a_frozen_one(windlass: Windlass) -> Figure:
    """No-ops, each of which writes a row for webhooks as it ends, beside a running and a frozen orchestrator."""
    wait_until("a worker", windlass.client.workers)
    drains: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(ROUNDS + 1):
        for is_frozen, rates in drains.items():
            if is_frozen:
                windlass.orchestrator.send_signal(signal.SIGSTOP)
            rates.append(_drained(windlass))
            windlass.orchestrator.send_signal(signal.SIGCONT)
            wait_until("no row is left", lambda: not _rows(windlass), seconds=LONGEST_SECONDS)
    ratio = statistics.median(frozen / running for running, frozen in zip(*drains.values(), strict=True))
    return Figure(
        f"{DRAINED:,} no-ops with a row each, orchestrator frozen",
        f"{statistics.median(drains[True]):.0f} tasks/s = {ratio:.2f} x as while it runs",
        ">= 0.95 x",
        {"tasks_per_second": statistics.median(drains[True]), "ratio": ratio},
        reached=ratio >= 0.95,
    )


def _drained(windlass: Windlass) -> float:
    client, url = windlass.client, windlass.environment["WINDLASS_DATABASE_URL"]
    client.change_provider("probe", limit=0)
    ids: list[str] = []
    for _ in range(0, DRAINED, 1000):
        ids += client.submit_many([{}] * 1000)
    execute(url, f"UPDATE tasks SET concerns = {Concern.WEBHOOK:d} WHERE status = 'queued'")
    client.change_provider("probe", limit=None)
    wait_until("drained", lambda: ask(url, ENDED, ids)[0]["number"] == DRAINED, seconds=LONGEST_SECONDS, every=0.1)
    return float(DRAINED / ask(url, ENDED, ids)[0]["seconds"])


def _rows(windlass: Windlass) -> int:
    return int(ask(windlass.environment["WINDLASS_DATABASE_URL"], "SELECT count(*) AS number FROM outbox")[0]["number"])


def figures() -> list[Figure]:
    with throw_away_servers() as servers, tempfile.TemporaryDirectory() as directory:
        found = asyncio.run(measure(new_database(servers, "outbox")))
        with a_windlass(new_database(servers, "frozen"), servers, Path(directory)) as windlass:
            start_all(windlass)
            return [*found, beside_a_frozen_one(windlass)]
