"""The step from marks to credit: a database with work of every kind under way is migrated, and nothing is lost."""

import asyncio
from uuid import UUID

from tests.conftest import a_database
from tests.integration.test_supported_schema import bring_to
from tests.support.engine.dispatching import start_next
from tests.support.engine.store import an_engine
from tests.support.servers.databases import ask, execute
from tests.support.servers.private_servers import Servers
from windlass.shared.concerns import Concern
from windlass.shared.holds import Hold
from windlass.shared.migrations.runner import migrate
from windlass.shared.store import tasks
from windlass.shared.store.operating import workers

BEFORE = "0015"
A_TASK = """
INSERT INTO tasks (task_id, actor, provider, status, payload, user_id, timeout_seconds, available_at, {names})
VALUES ('{task_id}', 'probe', 'probe', '{status}', '{{}}', 'ann', 300, now() - interval '1 min', {values});
INSERT INTO task_events (task_id, seq, type, at, attempt, data) VALUES ('{task_id}', 1, 'submit', now(), 0, '{{}}')
"""
RUNNING = {
    "claim_token": "gen_random_uuid()",
    "worker_id": "'old-worker'",
    "attempt": "1",
    "started_at": "now()",
    "lease_expires_at": "now() + interval '1 h'",
}
RUNG = {"doorbell_token": "gen_random_uuid()", "doorbell_at": "now()", "doorbell_count": "3"}
KINDS: dict[str, tuple[str, dict[str, str]]] = {
    "waits": ("queued", {}),
    "was rung for": ("queued", RUNG),
    "was rung for again and must run alone": ("retrying", {**RUNG, "lane": "'retry'", "suspicion": "2"}),
    "waits to be tried again": ("retrying", {"lane": "'retry'", "attempt": "1"}),
    "waits for its open job": ("queued", {"job_open": "true", "attempt": "1"}),
    "was rung for its open job": ("queued", {**RUNG, "job_open": "true", "attempt": "1"}),
    "is held": (
        "queued",
        {"held": "'{workflow}'", "held_at": "now()", "due_at": "now()", "available_at": "'infinity'"},
    ),
    "is parked for its key": (
        "queued",
        {
            "held": "'{key}'",
            "held_at": "now()",
            "due_at": "now()",
            "available_at": "'infinity'",
            "concurrency_key": "'k'",
            "concerns": str(int(Concern.KEY)),
        },
    ),
    "runs": ("running", RUNNING),
    "runs and is to be cancelled": ("running", {**RUNNING, "cancel_requested": "true"}),
    "runs with an open job": ("running", {**RUNNING, "job_open": "true"}),
    "is blocked": ("blocked", {"unmet": "1"}),
    "has ended": ("completed", {"completed_at": "now()", "attempt": "1"}),
}
BESIDE = {
    "task_steps": "(task_id, name, attempt, result, elapsed_ms) VALUES ('{runs}', 'first', 1, '[1]', 5)",
    "task_children": "(task_id, place, child_id, life) VALUES ('{runs}', '1', '{waits}', 1)",
    "sessions": "(session_hash, key_id, secure, expires_at) VALUES ('x', 'k', true, now() + interval '1 h')",
    "workers": "(worker_id, hostname, pid, queues, capacity, heartbeat_at)"
    " VALUES ('old-worker', 'h', 1, '{{}}', 2, now() - interval '1 min')",
}
"""What stands beside the tasks since the edition before that."""
STARTABLE = {
    "waits", "was rung for", "waits to be tried again", "waits for its open job", "was rung for its open job",
}  # fmt: skip


def fill(database_url: str) -> dict[str, UUID]:
    """One of each kind, as the edition before would have them."""
    execute(database_url, "INSERT INTO providers (name, actor, configured_limit) VALUES ('probe', 'probe', 9)")
    execute(database_url, "INSERT INTO queues VALUES ('probe.probe', 'probe', 'probe')")
    ids = {kind: UUID(int=number + 1) for number, kind in enumerate(KINDS)}
    for kind, (status, fields) in KINDS.items():
        columns = {"last_seq": "1", **fields}
        names = [name for name in columns if name != "available_at"]
        values = ", ".join(columns[name] for name in names)
        statement = A_TASK.format(task_id=ids[kind], status=status, names=", ".join(names), values=values)
        if "available_at" in columns:
            statement = statement.replace("now() - interval '1 min'", columns["available_at"])
        execute(database_url, statement)
    for table, values in BESIDE.items():
        execute(database_url, f"INSERT INTO {table} {values.format(**ids)}")
    return ids


def statuses(database_url: str) -> dict[UUID, str]:
    return {row[0]: row[1] for row in ask(database_url, "SELECT task_id, status FROM tasks")}


def test_nothing_is_lost_and_everything_goes_on(servers: Servers) -> None:
    with a_database(servers, "template1") as database_url:
        asyncio.run(bring_to(database_url, BEFORE, with_functions=False))
        ids = fill(database_url)
        before = statuses(database_url)
        asyncio.run(migrate(database_url, force=True))  # its worker counts as alive
        assert statuses(database_url) == before
        for table in BESIDE:
            assert len(ask(database_url, f"SELECT 1 FROM {table}")) == 1, table

        async def go_on() -> None:
            async with an_engine(database_url) as engine:
                await engine.provide("probe", limit=9)
                await workers.register(
                    engine.pool, "worker-1", hostname="h", pid=1, queues=["probe.probe"], capacity=64
                )
                given = await start_next(engine)
                # Three run and two resume in slots of their own; one is left to who must run alone.
                assert {each.task_id for each in given} == {ids[kind] for kind in STARTABLE}
                alone = await tasks.next_alone(engine.pool, ["probe.probe"])
                assert alone is not None
                assert alone.task_id == ids["was rung for again and must run alone"]
                for attempt in given:
                    await engine.finish(attempt)
                rows = await tasks.stall(engine.pool, expired_for_seconds=None, dead_workers=["old-worker"])
                assert {row.task_id for row in rows} == {ids[kind] for kind in KINDS if kind.startswith("runs")}
                assert await engine.count("status = 'running'") == 0
                assert await engine.status(ids["runs and is to be cancelled"]) == "cancelled"
                assert await tasks.release(engine.pool, [ids["is parked for its key"]], Hold.KEY)
                assert {each.task_id for each in await start_next(engine)} >= {ids["is parked for its key"]}

        asyncio.run(go_on())
