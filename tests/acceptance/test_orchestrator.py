"""Orchestrators that are killed, frozen or away: every end is recorded once, no task waits, reads are up to date."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import pytest

from tests.chaos.faults.batches import in_a_batch
from tests.chaos.memory.ledger import as_unit, install_ledger
from tests.support.engine.memory import REMEMBERED
from tests.support.engine.projects import Project
from tests.support.engine.store import Engine, an_engine, on_the_engine, until
from tests.support.installation import PROJECT, Process, Windlass
from tests.support.waiting import wait_until
from windlass.shared.features.catching_up import CatchUp
from windlass.shared.features.feature import Feature
from windlass.shared.features.memory.subscriber import MEMORY
from windlass.shared.features.projects.subscriber import PROJECTS

CALLS = 8
"""Of the subscriber's transaction: begin, lock, rows, tasks, events, notify, delete, commit."""


@asynccontextmanager
async def engine_of(windlass: Windlass) -> AsyncIterator[Engine]:
    async with an_engine(windlass.environment["WINDLASS_DATABASE_URL"]) as engine:
        yield engine


async def end_some(engine: Engine, number: int) -> None:
    for _ in range(number):
        await engine.finish(await engine.running(**REMEMBERED), "complete")


def test_orchestrators_that_are_killed_in_mid_batch_handle_every_move_once(stopped_windlass: Windlass) -> None:
    windlass = stopped_windlass
    url = windlass.environment["WINDLASS_DATABASE_URL"]
    install_ledger(url)

    def start(name: str) -> Process:
        return windlass.start("orchestrator", WINDLASS_DATABASE_URL=as_unit(url, name))

    async def run() -> None:
        async with engine_of(windlass) as engine:
            await end_some(engine, 150)
            processes = {name: start(name) for name in ("one", "two")}
            for name in ("one", "two") * 2:
                killing = asyncio.create_task(asyncio.to_thread(in_a_batch, url, name, processes[name].kill))
                while not killing.done():
                    await end_some(engine, 5)
                assert await killing
                processes[name] = start(name)

            async def is_empty() -> bool:
                return await engine.pool.fetchval("SELECT NOT EXISTS (SELECT 1 FROM outbox)")  # type: ignore[no-any-return]

            await until(is_empty, seconds=20)
            found = await engine.pool.fetch("SELECT task_id FROM storm_ledger")
            ended = await engine.pool.fetch("SELECT task_id FROM tasks WHERE status = 'completed'")
            assert sorted(row["task_id"] for row in found) == sorted(row["task_id"] for row in ended)

    asyncio.run(run())


@on_the_engine
async def test_a_subscriber_that_is_frozen_at_any_call_holds_up_no_end_and_its_subject_goes_on(engine: Engine) -> None:
    attempts = [await engine.running(**REMEMBERED) for _ in range(CALLS)]
    for attempt in attempts:
        await engine.finish(attempt, "bury")
    frozen = [a_frozen_one(engine, MEMORY, attempt.task_id, place) for place, attempt in enumerate(attempts, 1)]
    try:
        for process in frozen:
            await asyncio.to_thread(wait_until, "it is frozen", lambda process=process: is_stopped(process.pid))
        for attempt in attempts:
            assert await longest(engine, attempt.task_id) < 2.5
        catch_up = CatchUp(engine.pool, MEMORY)
        began = time.monotonic()
        await catch_up()
        assert time.monotonic() - began < 3.5
        assert await events(engine) == sorted((each.task_id, life) for each in attempts for life in (1, 2))
    finally:
        for process in frozen:
            process.send_signal(signal.SIGCONT)
        codes = [await asyncio.to_thread(process.wait, 20) for process in frozen]
    assert len(codes) == CALLS
    await catch_up()
    assert await events(engine) == sorted((each.task_id, life) for each in attempts for life in (1, 2))
    assert await engine.pool.fetchval("SELECT count(*) FROM outbox_subjects") == 0


CALLS_OF_AN_ADVANCE = 7
"""Begin, lock, rows, project, changes, delete, commit."""
CALLS_OF_A_REBIND = 9
"""The same, with the backlog and the lock of the run's task before the changes."""


@on_the_engine
async def test_a_project_that_is_frozen_between_two_runs_holds_up_no_end_and_goes_on(engine: Engine) -> None:
    projects = [await Project.made(engine, "one", "two", "three") for _ in range(CALLS_OF_AN_ADVANCE)]
    former = []
    for project in projects:
        await project.start("loop")
        former.append(await project.finish())
    frozen = [a_frozen_one(engine, PROJECTS, each.project_id, place) for place, each in enumerate(projects, 1)]
    async with thawed_at_the_end(frozen):
        for task_id in former:
            began = time.monotonic()
            assert await engine.cancel(task_id) == "completed"
            assert time.monotonic() - began < 2.5
        for project in projects:
            assert await project.running() == "two"
            attempt = await project.claimed()
            began = time.monotonic()
            await engine.finish(attempt)
            assert time.monotonic() - began < 2.5
    for project in projects:
        assert await project.running() == "three"
        assert await project.ends() == ["completed", "completed", "running"]
    assert await engine.pool.fetchval("SELECT count(*) FROM outbox_subjects") == 0


@on_the_engine
async def test_a_project_that_is_frozen_while_it_chooses_another_item_holds_up_no_end(engine: Engine) -> None:
    projects = [await Project.made(engine, "one", "two") for _ in range(CALLS_OF_A_REBIND)]
    bound = []
    for project in projects:
        await project.start("loop")
        bound.append(await project.task())
        await engine.sql(
            "UPDATE project_items SET position = -1 WHERE project_id = $1 AND title = 'two'", project.project_id
        )
        await engine.sql("INSERT INTO outbox (feature, subject, move) VALUES ('run', $1, 'choose')", project.project_id)
    frozen = [a_frozen_one(engine, PROJECTS, each.project_id, place) for place, each in enumerate(projects, 1)]
    async with thawed_at_the_end(frozen):
        for task_id in bound:
            began = time.monotonic()
            await engine.cancel(task_id)
            assert time.monotonic() - began < 2.5
    for project in projects:
        assert await project.state() == ("idle", "stopped")
        assert await project.ends() == ["cancelled"]


@asynccontextmanager
async def thawed_at_the_end(frozen: "list[subprocess.Popen[bytes]]") -> AsyncIterator[None]:
    try:
        for process in frozen:
            await asyncio.to_thread(wait_until, "it is frozen", lambda process=process: is_stopped(process.pid))
        yield
    finally:
        for process in frozen:
            process.send_signal(signal.SIGCONT)
        for process in frozen:
            await asyncio.to_thread(process.wait, 20)


def a_frozen_one(engine: Engine, feature: Feature, subject: UUID, place: int) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "tests.support.freezing_subscriber", feature.name, str(subject), str(place)]
    environment = {**os.environ, "WINDLASS_DATABASE_URL": engine.database_url}
    return subprocess.Popen(command, cwd=PROJECT, env=environment)


async def longest(engine: Engine, task_id: UUID) -> float:
    """How long a new life of the task takes, of which each call could be in the frozen subscriber's way."""
    began = time.monotonic()
    await engine.revive(task_id)
    await engine.finish(await engine.start(task_id), "complete")
    return time.monotonic() - began


async def events(engine: Engine) -> list[tuple[UUID, int]]:
    rows = await engine.pool.fetch("SELECT task_id, life FROM agent_events ORDER BY task_id, life")
    return [(row["task_id"], row["life"]) for row in rows]


def is_stopped(pid: int) -> bool:
    with open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123
        return stat.read().rpartition(")")[2].split()[0] == "T"


def test_reads_are_up_to_date_while_no_orchestrator_runs_and_health_says_so(stopped_windlass: Windlass) -> None:
    windlass = stopped_windlass
    windlass.start("api")
    windlass.wait_until_answering()
    client = windlass.client

    async def run() -> None:
        async with engine_of(windlass) as engine:
            for number in range(1, 4):
                await end_some(engine, 1)
                listed = await asyncio.to_thread(client.http.get, "/api/v1/agent-events")
                assert len(listed.json()["items"]) == number

    asyncio.run(run())
    component = client.http.get("/health").json()["components"]["orchestrator"]
    assert component["status"] == "unhealthy"
    orchestrator = windlass.start("orchestrator")
    wait_until(
        "it is back", lambda: client.http.get("/health").json()["components"]["orchestrator"]["status"] == "healthy"
    )
    orchestrator.terminate()
    wait_until(
        "it has said goodbye",
        lambda: client.http.get("/health").json()["components"]["orchestrator"]["status"] == "unhealthy",
    )


def test_projects_need_no_orchestrator_to_be_read_and_stopped(stopped_windlass: Windlass) -> None:
    windlass = stopped_windlass
    windlass.start("api")
    windlass.wait_until_answering()
    http = windlass.client.http

    async def run() -> None:
        async with engine_of(windlass) as engine:
            for path in ("", "/queue/status", "/runs"):
                project = await Project.made(engine, "one", "two")
                await project.start("loop")
                await project.finish()
                found = await asyncio.to_thread(http.get, f"/api/v1/projects/{project.project_id}{path}")
                assert found.status_code == 200
                runs = await engine.pool.fetchval(
                    "SELECT count(*) FROM project_runs WHERE project_id = $1", project.project_id
                )
                assert runs == 2, f"GET {path} has closed the run and opened the next"
            project = await Project.made(engine, "one")
            await project.start()
            await project.finish()
            listed = (await asyncio.to_thread(http.get, "/api/v1/projects")).json()["items"]
            assert listed[0]["queue"]["state"] == "idle"
            project = await Project.made(engine, "one", "two")
            await project.start("loop")
            await project.finish()
            path = f"/api/v1/projects/{project.project_id}/queue/stop"
            stopped = (await asyncio.to_thread(http.post, path)).json()
            assert (stopped["state"], stopped["stop_reason"]) == ("idle", "stopped")
            assert await project.ends() == ["completed", "withdrawn"]

    asyncio.run(run())


@pytest.mark.parametrize("frozen", [False, True], ids=["away", "frozen"])
def test_tasks_end_while_the_orchestrator_is_away_or_frozen_and_nothing_is_missing_afterwards(
    stopped_windlass: Windlass, frozen: bool
) -> None:
    windlass = stopped_windlass

    async def run() -> None:
        async with engine_of(windlass) as engine:
            process = windlass.start("orchestrator")
            await end_some(engine, 5)

            async def are_recorded() -> bool:
                return len(await events(engine)) == 5

            await until(are_recorded)
            process.send_signal(signal.SIGSTOP if frozen else signal.SIGKILL)
            began = time.monotonic()
            await end_some(engine, 20)
            assert time.monotonic() - began < 2.5
            assert len(await events(engine)) == 5
            process.send_signal(signal.SIGCONT) if frozen else windlass.start("orchestrator")

            async def all_are_recorded() -> bool:
                return len(await events(engine)) == 25

            await until(all_are_recorded)

    asyncio.run(run())
