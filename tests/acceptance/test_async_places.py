"""Actors that hold no thread: many at once in one process, beside those that do, and what is done to them."""

import json
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.conftest import a_windlass_apart
from tests.support.installation import Client, Windlass
from tests.support.servers.databases import ask
from tests.support.servers.private_servers import Servers
from tests.support.waiting import wait_until

MANY = 300
THREADS = 2

OUR_ACTORS = '''
import asyncio
import contextvars
import threading
import time

import dramatiq
from windlass import AsyncContext, Context, actor

whose = contextvars.ContextVar("whose", default="nobody")


def note(path: str, line: str) -> None:
    with open(path, "a") as file:
        file.write(f"{line}\\n")


class Witness(dramatiq.Middleware):
    def before_process_message(self, broker, message):
        time.sleep(0.01)  # it may wait, and holds up nobody
        whose.set(message.message_id)

    def after_process_message(self, broker, message, *, result=None, exception=None):
        if "notes" in message.kwargs:
            note(message.kwargs["notes"], f"after: {result or type(exception).__name__}")


@actor
async def waits(seconds: float = 0, context: AsyncContext = None) -> str:
    await context.sleep(seconds)
    return whose.get()


@actor
async def speaks(lines: int = 5, context: AsyncContext = None) -> None:
    for number in range(lines):
        context.log.info("line %d is of %s", number, context.task_id)
        await asyncio.sleep(0)


@actor
def sleeps(seconds: float, context: Context) -> None:
    context.sleep(seconds)


@actor
async def blocks(seconds: float = 600) -> None:
    time.sleep(seconds)


@actor
async def leaves(notes: str) -> str:
    """A task that does something on its way out, and a thread that takes its time."""

    async def lingers():
        try:
            await asyncio.sleep(600)
        finally:
            await asyncio.sleep(0.2)
            note(notes, "its task is over")

    def works():
        time.sleep(0.5)
        note(notes, "its thread is over")

    lingering = asyncio.create_task(lingers())
    asyncio.get_running_loop().run_in_executor(None, works)
    await asyncio.sleep(0.05)
    note(notes, "it returns")
    return "done"


@actor
async def exits() -> None:
    raise SystemExit("for good")
'''

CONFIG = """
[worker]
middleware = ["our_actors:Witness"]
[actors.waits]
module = "our_actors"
provider = "shared"
[actors.sleeps]
module = "our_actors"
provider = "shared"
[providers.shared]
actors = ["waits", "sleeps"]
"""


@pytest.fixture(scope="module")
def windlass(
    servers: Servers, migrated_template: str, management: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Windlass]:
    """One worker, with two threads and 300 places on its loop."""
    directory = tmp_path_factory.mktemp("async")
    (directory / "our_actors.py").write_text(OUR_ACTORS)
    settings = {
        "WINDLASS_ACTORS": str(directory / "our_actors.py"),
        "WINDLASS_QUEUES": "own",
        "WINDLASS_ACTOR_THREADS": str(THREADS),
        "WINDLASS_ASYNC_PLACES": str(MANY),
        "WINDLASS_LOG_FORMAT": "json",
        "PYTHONPATH": str(directory),
    }
    with a_windlass_apart(
        servers, migrated_template, management, directory, config=CONFIG, actors=("probe",), **settings
    ) as windlass:
        windlass.start_though_unhealthy()
        yield windlass


@pytest.fixture
def client(windlass: Windlass) -> Iterator[Client]:
    yield windlass.client
    url = windlass.environment["WINDLASS_DATABASE_URL"]
    windlass.client.http.post(
        "/api/v1/tasks/bulk", json={"action": "cancel", "filter": {"status": ["queued", "retrying", "running"]}}
    ).raise_for_status()
    living = "SELECT count(*) FROM tasks WHERE status IN ('queued', 'retrying', 'running')"
    wait_until("nothing runs", lambda: ask(url, living)[0][0] == 0, seconds=60)
    wait_until("a worker", windlass.workers, seconds=60)


def many(actor: str, number: int, **payload: Any) -> list[dict[str, Any]]:
    return [{"actor": actor, "payload": payload}] * number


def counts(windlass: Windlass, actor: str = "waits") -> dict[str, int]:
    rows = ask(
        windlass.environment["WINDLASS_DATABASE_URL"],
        "SELECT status, count(*) FROM tasks WHERE actor = $1 GROUP BY status",
        actor,
    )
    return {row["status"]: row["count"] for row in rows}


def wait_until_running(windlass: Windlass, number: int, actor: str = "waits") -> None:
    wait_until(f"{number} run", lambda: counts(windlass, actor).get("running") == number, seconds=60)


def rows_of(windlass: Windlass, task_ids: list[str]) -> list[Any]:
    return ask(
        windlass.environment["WINDLASS_DATABASE_URL"],
        "SELECT * FROM tasks WHERE task_id = ANY ($1::uuid[])",
        task_ids,
    )


def test_hundreds_run_at_once_in_a_process_of_two_threads(windlass: Windlass, client: Client) -> None:
    task_ids = client.submit_many(many("waits", MANY + 5, seconds=600))
    wait_until_running(windlass, MANY)
    (worker,) = windlass.workers()
    assert worker["capacity"] == THREADS + MANY
    assert worker["running"] == MANY
    threads = [line for line in Path(f"/proc/{worker['pid']}/status").read_text().splitlines() if "Threads" in line]
    assert int(threads[0].split()[1]) < 40

    assert client.submit(actor="sleeps", payload={"seconds": 0}, wait=30)["status"] == "completed", "a thread is free"
    waiting = [row["task_id"] for row in rows_of(windlass, task_ids) if row["status"] == "queued"]
    assert len(waiting) == 5, "none is claimed without a place"

    running = next(str(row["task_id"]) for row in rows_of(windlass, task_ids) if row["status"] == "running")
    client.cancel(running)
    assert client.finished(running)["status"] == "cancelled"
    wait_until_running(windlass, MANY)


def test_busy_threads_leave_the_loop_its_places(windlass: Windlass, client: Client) -> None:
    client.submit_many(many("sleeps", THREADS + 3, seconds=600))
    wait_until_running(windlass, THREADS, "sleeps")
    done = [client.finished(each)["status"] for each in client.submit_many(many("waits", 20, seconds=0.01))]
    assert Counter(done) == {"completed": 20}
    assert counts(windlass, "sleeps")["running"] == THREADS


def test_a_providers_limit_holds_for_both_kinds_together(windlass: Windlass, client: Client) -> None:
    client.change_provider("shared", limit=3)
    try:
        client.submit_many([*many("sleeps", 3, seconds=600), *many("waits", 10, seconds=600)])
        running = "SELECT count(*) FROM tasks WHERE provider = 'shared' AND status = 'running'"
        url = windlass.environment["WINDLASS_DATABASE_URL"]
        wait_until("three run", lambda: ask(url, running)[0][0] == 3, seconds=60)
        assert client.submit(actor="speaks", payload={}, wait=30)["status"] == "completed"
        assert ask(url, running)[0][0] == 3
    finally:
        client.change_provider("shared", limit=None)


def test_each_has_its_time_and_may_be_given_no_more(client: Client) -> None:
    late = client.submit(actor="waits", payload={"seconds": 600}, timeout_seconds=0.5, max_retries=0)["task_id"]
    task = client.finished(late)
    assert (task["status"], task["error"]["type"]) == ("dead", "TimedOut")


def test_middleware_sees_each_and_leaves_something_in_its_context(client: Client) -> None:
    task_ids = client.submit_many(many("waits", 30, seconds=0.01))
    assert {task_id: client.finished(task_id)["result"] for task_id in task_ids} == dict(
        zip(task_ids, task_ids, strict=True)
    )


def test_lines_are_about_the_task_that_writes_them(windlass: Windlass, client: Client) -> None:
    task_ids = client.submit_many(many("speaks", 50))
    assert {client.finished(each)["status"] for each in task_ids} == {"completed"}
    said = [json.loads(line) for line in windlass.log().splitlines() if " is of " in line]
    ours = [line for line in said if line["task_id"] in task_ids]
    assert len(ours) == 5 * len(task_ids)
    assert all(line["message"].endswith(line["task_id"]) for line in ours)


def test_what_it_has_begun_is_over_before_its_end_is_written(client: Client, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    task = client.submit(actor="leaves", payload={"notes": str(notes)}, wait=30)
    assert (task["status"], task["result"]) == ("completed", "done")
    assert notes.read_text().splitlines() == [
        "it returns", "its task is over", "its thread is over", "after: done"
    ]  # fmt: skip


def test_one_that_exits_takes_nobody_along(windlass: Windlass, client: Client) -> None:
    (before,) = windlass.workers()
    task = client.submit(actor="exits", payload={}, max_retries=0, wait=30)
    assert (task["status"], task["error"]["type"]) == ("dead", "RuntimeError")
    assert client.submit(actor="waits", payload={}, wait=30)["status"] == "completed"
    assert [worker["pid"] for worker in windlass.workers()] == [before["pid"]]


def test_told_to_stop_all_are_handed_back_and_none_has_lost_a_retry(windlass: Windlass, client: Client) -> None:
    task_ids = client.submit_many(many("waits", MANY, seconds=600))
    wait_until_running(windlass, MANY)
    windlass.actors.send_signal(signal.SIGTERM)
    windlass.actors.wait(60)
    rows = rows_of(windlass, task_ids)
    assert Counter((row["status"], row["retry_count"], row["interrupt_count"]) for row in rows) == {
        ("queued", 0, 1): MANY
    }
    windlass.actors = windlass.start("actors")
    wait_until_running(windlass, MANY)


def test_after_kill_9_all_run_again_and_each_completes_once(windlass: Windlass, client: Client) -> None:
    task_ids = client.submit_many(many("waits", 100, seconds=2))
    wait_until_running(windlass, 100)
    (worker,) = windlass.workers()
    windlass.kill(worker["pid"])
    assert {client.finished(each)["status"] for each in task_ids} == {"completed"}
    rows = rows_of(windlass, task_ids)
    assert {(row["attempt"], row["stall_count"]) for row in rows} == {(2, 1)}
    ends = "SELECT count(*) FROM task_events WHERE type = 'complete' AND task_id = ANY ($1::uuid[])"
    assert ask(windlass.environment["WINDLASS_DATABASE_URL"], ends, task_ids)[0][0] == 100


def test_who_holds_up_the_loop_stalls_alone_and_the_others_lose_nothing(windlass: Windlass, client: Client) -> None:
    siblings = client.submit_many(many("waits", 50, seconds=600))
    on_a_thread = client.submit_many(many("sleeps", 1, seconds=600))
    wait_until_running(windlass, 50)
    wait_until_running(windlass, 1, "sleeps")
    (before,) = windlass.workers()
    culprit = client.submit(actor="blocks", payload={}, max_retries=0)["task_id"]
    task = client.finished(culprit)
    assert (task["status"], task["error"]["type"]) == ("dead", "WorkerLost")
    assert "held up the event loop" in task["error"]["message"]
    (stall,) = [event for event in client.events(culprit) if event["type"] == "stall"]
    assert stall["data"]["proof"]["by"] == "guardian"
    assert [row["stall_count"] for row in rows_of(windlass, [culprit])] == [1]

    wait_until_running(windlass, 50)
    for row in rows_of(windlass, [*siblings, *on_a_thread]):
        assert (row["retry_count"], row["stall_count"], row["interrupt_count"]) == (0, 0, 1)
    told = {worker["worker_id"]: worker["stop_reason"] for worker in client.workers("stopped")}
    assert told[before["worker_id"]] == f"condemned: task {culprit} holds up its event loop"
    assert "in blocks" in windlass.log(), "the log says where"
