"""Actors of the user's own, in a file that Windlass knows nothing of: they run as the built-in ones do."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from uuid_utils.compat import uuid7

import windlass
from tests.acceptance.conftest import a_windlass_apart
from tests.support import metrics
from tests.support.installation import KEY, Client, Task, Windlass
from tests.support.metrics import Said
from tests.support.pages import files_of
from tests.support.servers.private_servers import Servers
from tests.support.waiting import wait_until
from windlass.services.cli.doctor.there import look_there
from windlass.services.laptop.ports import free_port
from windlass.shared import db
from windlass.shared.actors.definition import Definition
from windlass.shared.settings import Settings
from windlass.shared.store import tasks
from windlass.shared.store.operating import registry, workers
from windlass.shared.store.tasks import Submission

T = TypeVar("T")

OUR_ACTORS = '''
import asyncio
import time
from pathlib import Path

import dramatiq
from windlass import AsyncContext, Context, actor


def note(path: str, line: str) -> None:
    with open(path, "a") as file:
        file.write(f"{line}\\n")


class Witness(dramatiq.Middleware):
    """Sees the task that it is inside of, and how it ended."""

    def before_process_message(self, broker, message):
        if "notes" in message.kwargs:
            note(message.kwargs["notes"], f"before {message.actor_name}")

    def after_process_message(self, broker, message, *, result=None, exception=None):
        if "notes" in message.kwargs:
            note(message.kwargs["notes"], f"after {message.actor_name}: {result or type(exception).__name__}")


@actor(throws=(ValueError,))
def count(words: list[str], *, context: Context) -> dict[str, object]:
    if not words:
        raise ValueError("there is nothing to count")
    context.progress("Counting", percent=50)
    context.log.info("counting for %s", context.user_id)
    return {"count": len(words), "attempt": context.attempt, "user_id": context.user_id}


@actor
async def translate(text: str, notes: str, seconds: float = 0, *, context: AsyncContext) -> str:
    context.usage(cost_usd=0.25, prompt_tokens=10)
    note(notes, f"attempt {context.attempt} of {context.user_id}")
    try:
        await context.rate()
        await context.sleep(seconds if context.attempt == 1 else 0)
    except BaseException as error:
        note(notes, f"stopped by {type(error).__name__}")
        raise
    context.output(f"{text}!")
    note(notes, "finished")
    return text.upper()


@actor
async def forgets(*, context: AsyncContext) -> str:
    context.step("draft", asyncio.sleep, 0)  # without await
    return "done"


@actor
async def deaf(notes: str) -> None:
    note(notes, "began")
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            note(notes, "does not care")
'''

CONFIG = """
[actors.painter]
module = "our_painter"
[worker]
middleware = ["our_actors:Witness"]
"""

FROM_DRAMATIQ = files_of("coming_from_dramatiq.md")
FROM_OTHERS = {**files_of("coming_from_celery.md"), **files_of("coming_from_temporal.md")}
OF_THE_PAGES = {"resize", "render", "answer"}


@pytest.fixture(scope="module")
def own(
    servers: Servers, migrated_template: str, management: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Windlass]:
    """With a module that is well, one that is not, what the pages show to those who come from elsewhere, and hardly a
    table."""
    directory = tmp_path_factory.mktemp("own")
    files = {"our_actors.py": OUR_ACTORS, "our_painter.py": "import a_package_that_nobody_has\n"}
    for name, content in {**files, **FROM_DRAMATIQ, **FROM_OTHERS}.items():
        (directory / name).write_text(content)
    modules = ",".join(str(directory / name) for name in ("our_actors.py", "films.py", "letters.py"))
    settings = {"WINDLASS_ACTORS": modules, "WINDLASS_QUEUES": "probe.probe,own", "PYTHONPATH": str(directory)}
    config = CONFIG + FROM_DRAMATIQ["windlass.toml"]
    with a_windlass_apart(
        servers, migrated_template, management, directory, config=config, actors=("probe",), **settings
    ) as windlass:
        windlass.start_though_unhealthy()
        yield windlass


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return tmp_path / "notes"


def lines(notes: Path) -> list[str]:
    return notes.read_text().splitlines() if notes.exists() else []


def submit(windlass: Windlass, actor: str, payload: dict[str, Any], **fields: Any) -> str:
    """As the api stores what it has accepted."""
    task = {"provider": actor, "user_id": "ann", "timeout_seconds": 60.0, **fields}
    submission = Submission(task_id=uuid7(), actor=actor, payload=payload, **task)
    (row,) = ask(windlass, lambda pool: tasks.submit(pool, [submission]))
    return str(row["task_id"])


def ask(windlass: Windlass, intent: Callable[[db.Database], Awaitable[T]]) -> T:
    async def asked() -> T:
        pool = await db.open_pool(Settings(database_url=windlass.environment["WINDLASS_DATABASE_URL"]), "tests", most=1)
        try:
            return await intent(pool)
        finally:
            await pool.close()

    return asyncio.run(asked())


def finished(client: Client, task_id: str) -> Task:
    return client.finished(task_id)


def test_a_function_runs_and_returns_its_result(own: Windlass) -> None:
    task = finished(own.client, submit(own, "count", {"words": ["a", "b"]}))
    assert task["result"] == {"count": 2, "attempt": 1, "user_id": "ann"}
    wait_until("it is in the log", lambda: "counting for ann" in own.log())


def test_a_coroutine_runs_inside_the_middleware_and_its_claim(own: Windlass, notes: Path) -> None:
    task = finished(own.client, submit(own, "translate", {"text": "hi", "notes": str(notes)}))
    assert (task["status"], task["result"]) == ("completed", "HI")
    assert lines(notes) == ["before translate", "attempt 1 of ann", "finished", "after translate: HI"]
    assert [event["data"]["text"] for event in own.client.events(task["task_id"]) if event["type"] == "output"] == [
        "hi!"
    ]


def test_what_it_throws_is_not_tried_again(own: Windlass) -> None:
    task = finished(own.client, submit(own, "count", {"words": []}))
    assert (task["status"], task["attempt"]) == ("dead", 1)
    error = task["error"]
    assert (error["type"], error["kind"], error["message"]) == ("ValueError", "permanent", "there is nothing to count")


def test_a_forgotten_await_names_the_line_and_is_not_tried_again(own: Windlass) -> None:
    task = finished(own.client, submit(own, "forgets", {}))
    assert (task["status"], task["attempt"], task["error"]["type"]) == ("dead", 1, "NotAwaited")
    line = OUR_ACTORS.splitlines().index('    context.step("draft", asyncio.sleep, 0)  # without await') + 1
    assert task["error"]["message"].startswith(f"our_actors.py:{line}: `await` is missing: context.step('draft', …)")


def test_what_this_version_does_not_take_is_told_with_its_place(own: Windlass) -> None:
    task = finished(own.client, submit(own, "count", {"words": 3, "wrods": []}))
    assert (task["status"], task["error"]["type"]) == ("dead", "InvalidInput")
    assert "/words: must be a list; /wrods: there is no such field" in task["error"]["message"]


def test_what_another_version_takes_is_handed_back_for_free_while_that_one_lives(own: Windlass, notes: Path) -> None:
    other = Definition(name="translate", module="theirs", provider="translate", payload_schema={"type": "object"})

    async def comes(pool: db.Database) -> None:
        await registry.announce(pool, [other])
        worker: dict[str, Any] = {"hostname": "h", "pid": 1, "queues": ["translate.translate"], "capacity": 1}
        await workers.register(pool, "theirs", **worker, actor_versions={"translate": other.version})
        await pool.execute("UPDATE workers SET heartbeat_at = now() + interval '1 hour' WHERE worker_id = 'theirs'")

    ask(own, comes)
    task_id = submit(own, "translate", {"text": "hi", "notes": str(notes), "tone": "dry"})
    wait_until("handed back, and again", lambda: own.client.story(task_id).count("interrupt") > 1)
    task = own.client.get(task_id)
    assert (task["retry_count"], task["error"]) == (0, None)
    ask(own, lambda pool: workers.leave(pool, "theirs", state="stopped", reason="told to"))
    task = finished(own.client, task_id)
    assert (task["status"], task["error"]["type"], task["retry_count"]) == ("dead", "InvalidInput", 0)
    assert f"version {other.version} would take it, and no worker runs that any more" in task["error"]["message"]


def test_a_cancel_reaches_a_coroutine_where_it_awaits(own: Windlass, notes: Path) -> None:
    task_id = submit(own, "translate", {"text": "hi", "notes": str(notes), "seconds": 300})
    wait_until("it is at work", lambda: "attempt 1 of ann" in lines(notes))
    own.client.cancel(task_id)
    assert finished(own.client, task_id)["status"] == "cancelled"
    assert lines(notes)[2:] == ["stopped by CancelledError", "after translate: Stopped"]


def test_a_coroutine_whose_time_is_up_is_stopped(own: Windlass, notes: Path) -> None:
    payload = {"text": "hi", "notes": str(notes), "seconds": 300}
    task = finished(own.client, submit(own, "translate", payload, timeout_seconds=4, max_retries=0))
    assert (task["status"], task["error"]["type"]) == ("dead", "TimedOut")
    assert lines(notes)[2:] == ["stopped by CancelledError", "after translate: TimedOut"]


def test_a_dramatiq_application_moves_with_one_table(own: Windlass) -> None:
    done = own.client.submit(wait=50, actor="resize", payload={"url": "a.png"})
    assert (done["status"], done["result"]) == ("completed", "a.png?width=64")
    assert (done["timeout_seconds"], done["max_retries"]) == (600, 4), "its time_limit and max_retries"
    thrown = own.client.submit(wait=50, actor="resize", payload={"url": "a.txt"})
    assert (thrown["status"], thrown["attempt"], thrown["error"]["type"]) == ("dead", 1, "NoSuchPicture")


@pytest.mark.parametrize(
    ("script", "printed"),
    [
        ("send_resize.py", ["a.png?width=32", "queued"]),
        ("send_film.py", ["{'title': 'Dawn', 'scenes': ['sea.png', 'sun.png']}", "scene 1", "scene 2"]),
        ("send_letter.py", ["final of draft of Dear all", "True"]),
    ],
)
def test_what_the_pages_send_arrives(own: Windlass, script: str, printed: list[str]) -> None:
    sender = {**os.environ, "WINDLASS_URL": own.url, "WINDLASS_API_KEY": KEY}
    done = subprocess.run(
        [sys.executable, script],
        cwd=own.directory,
        env=sender,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert (done.stdout.splitlines(), done.stderr) == (printed, "")


def test_a_module_that_cannot_be_imported_takes_down_its_queue_alone(own: Windlass) -> None:
    (worker,) = own.workers()
    actors = {"probe", "count", "translate", "forgets", "deaf", *OF_THE_PAGES}
    assert set(worker["queues"]) == {f"{actor}.{actor}" for actor in actors}
    assert set(worker["actor_versions"]) == actors
    (said,) = {**worker["broken"]}.values()
    assert worker["broken"].keys() == {"painter.painter"}
    assert "[actors.painter]: module our_painter needs a_package_that_nobody_has, which is not installed here" in said
    told = [line for line in own.log().splitlines() if "painter.painter is not served" in line]
    assert len(told) == 1
    assert "ERROR" in told[0]
    assert own.client.submit(wait=50, payload={})["status"] == "completed"


def test_a_worker_that_can_serve_nothing_lives_and_says_so(own: Windlass) -> None:
    port = free_port()
    own.start("actors", WINDLASS_QUEUES="painter.painter,translate.nowhere", WINDLASS_METRICS_PORT=str(port))

    def says_so() -> dict[str, str] | None:
        return next((worker["broken"] for worker in own.client.workers() if not worker["queues"]), None)

    broken = wait_until("it says so", says_so)
    assert broken.keys() == {"painter.painter", "translate.nowhere"}
    assert broken["translate.nowhere"] == "WINDLASS_QUEUES names translate.nowhere, and no provider serves it"

    def told() -> Said | None:
        """Nothing while its endpoint is not open yet."""
        try:
            return Said(metrics.ask(port), own.client.http.get("/metrics").text)
        except httpx.ConnectError:
            return None

    said = wait_until("it tells Prometheus", told)
    for queue in broken:
        assert said.values("windlass_queue_broken", queue=queue) == [1]
    assert said.values("windlass_actor_versions", actor="translate") == [1]
    with windlass.Client(str(own.client.http.base_url), KEY) as client:
        found = {each.name: each for each in look_there("here", client)}
    assert found["queue painter.painter"].state == "bad"
    assert "a_package_that_nobody_has" in broken["painter.painter"]
    assert found["queue painter.painter"].detail.endswith(broken["painter.painter"])


def test_after_kill_9_of_the_worker_it_is_finished_once_and_what_it_cost_is_kept(own: Windlass, notes: Path) -> None:
    task_id = submit(own, "translate", {"text": "hi", "notes": str(notes), "seconds": 300})
    wait_until("it is at work", lambda: "attempt 1 of ann" in lines(notes))
    wait_until("what it cost is known", lambda: own.client.get(task_id)["usage"])
    (worker,) = own.workers()
    own.kill(worker["pid"])
    task = finished(own.client, task_id)
    assert (task["status"], task["result"], task["attempt"]) == ("completed", "HI", 2)
    assert lines(notes).count("finished") == 1
    assert task["usage"] == {"cost_usd": 0.5, "prompt_tokens": 20, "completion_tokens": None}


def test_a_coroutine_that_does_not_stop_takes_its_process_along(own: Windlass, notes: Path) -> None:
    (before,) = wait_until("a worker", own.workers)
    task_id = submit(own, "deaf", {"notes": str(notes)}, timeout_seconds=4, max_retries=0)
    task = finished(own.client, task_id)
    assert (task["status"], task["error"]["type"]) == ("dead", "TimedOut")
    assert lines(notes) == ["before deaf", "began", "does not care"]
    wait_until("another worker", lambda: {each["pid"] for each in own.workers()} not in (set(), {before["pid"]}))
    assert before["pid"] not in {each["pid"] for each in own.workers()}
