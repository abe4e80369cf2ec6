"""`isolate = true`: each attempt of an actor of the user's own has a process of its own, whose end is proven."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.conftest import a_windlass_apart
from tests.acceptance.test_own_actors import finished, lines, submit
from tests.support.installation import Task, Windlass
from tests.support.servers.private_servers import Servers
from tests.support.waiting import wait_until
from windlass.shared.process.procfs import ProcessIdentity

OUR_ACTORS = '''
import asyncio
import os
import signal
import subprocess
import time
from pathlib import Path

from windlass import AsyncContext, Context, ServiceUnavailable, actor


def note(path: str, line: object) -> None:
    with open(path, "a") as file:
        file.write(f"{line}\\n")


class Overworked(ServiceUnavailable):
    delays = (0, 0)


@actor(isolate=True)
def speak(notes: str, release: str, *, context: Context) -> dict[str, object]:
    """Says all that can be said, and waits to be let go."""
    note(notes, os.getpid())
    print("printed here")
    context.log.info("logged for %s", context.user_id)
    context.progress("Telling", percent=50)
    context.output("word by word")
    context.save({"at": 1})
    context.usage(cost_usd=0.5)
    context.rate()
    while not Path(release).exists():
        context.sleep(0.05)
    child = context.step("child", context.submit, "probe", {"result": "from afar"})
    return {"pid": os.getpid(), "child": child, "file": context.store_file(b"some bytes", media_type="text/plain")}


@actor(isolate=True)
async def steps(notes: str, place: str, *, context: AsyncContext) -> list[int]:
    async def work(number: int) -> int:
        note(notes, f"step {number}")
        return number * 10

    done = [await context.step("one", work, 1)]
    if context.attempt == 1:
        note(place, os.getpid())
        await context.sleep(300)
    return [*done, await context.step("two", work, 2)]


@actor(isolate=True)
async def gather(*, context: AsyncContext) -> dict[str, object]:
    async def make() -> list[str]:
        return [await context.submit("probe", {"result": n}) for n in range(2)]

    await context.rate()
    await context.rate()
    children = await context.step("children", make)
    return {"children": children, "file": await context.store_file(b"some bytes", media_type="text/plain")}


@actor(isolate=True, throws=(ValueError,))
def fail(how: str) -> None:
    if how == "throws":
        raise ValueError("it cannot be")
    if how == "ours":
        raise Overworked("too much", queue=7)
    if how == "foreign":
        {}["nothing"]
    if how == "signal":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "exit":
        os._exit(3)


@actor(isolate=True)
def spin(notes: str, deaf: bool = False) -> None:
    if deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note(notes, os.getpid())
    while True:
        pass


@actor(isolate=True)
async def wait(notes: str, *, context: AsyncContext) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note(notes, os.getpid())
    try:
        await asyncio.sleep(300)
    except BaseException as error:
        note(notes, f"stopped by {type(error).__name__}")
        raise


@actor(isolate=True)
def poll(notes: str, *, context: Context) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note(notes, os.getpid())
    try:
        while True:
            time.sleep(0.02)
            context.check()
    except BaseException as error:
        note(notes, f"stopped by {type(error).__name__}")
        raise


@actor(isolate=True)
def leave(notes: str) -> str:
    note(notes, subprocess.Popen(["sleep", "300"], start_new_session=True).pid)
    return "done"


@actor
def beside(notes: str, release: str, *, context: Context) -> int:
    note(notes, "begun")
    while not Path(release).exists():
        context.sleep(0.05)
    return context.attempt
'''

SHY = """
import sys

from windlass import actor

if any("isolation" in each for each in sys.orig_argv):
    raise ImportError("not when I am alone")


@actor
def shy() -> None: ...
"""

CONFIG = """
[actors.shy]
module = "our_shy"
isolate = true
"""


@pytest.fixture(scope="module")
def own(
    servers: Servers, migrated_template: str, management: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Windlass]:
    directory = tmp_path_factory.mktemp("isolated")
    file = directory / "our_actors.py"
    file.write_text(OUR_ACTORS)
    (directory / "our_shy.py").write_text(SHY)
    settings = {
        "WINDLASS_ACTORS": str(file),
        "WINDLASS_QUEUES": "probe.probe,own",
        "PYTHONPATH": str(directory),
        # Time enough to hear that it is told, on a busy machine, before it is killed.
        "WINDLASS_STOP_GRACE_SECONDS": "8",
        "WINDLASS_LEASE_SECONDS": "24",
    }
    with a_windlass_apart(
        servers, migrated_template, management, directory, config=CONFIG, actors=("probe",), **settings
    ) as windlass:
        windlass.start_though_unhealthy()
        yield windlass


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return tmp_path / "notes"


def process_in(notes: Path) -> ProcessIdentity:
    """The one whose number is its first line."""
    wait_until("it is at work", lambda: lines(notes))
    found = ProcessIdentity.of(int(lines(notes)[0]))
    assert found is not None
    return found


def proof_of(windlass: Windlass, task: Task) -> dict[str, Any]:
    (proof,) = [event["data"]["proof"] for event in windlass.client.events(task["task_id"]) if "proof" in event["data"]]
    assert {"keeper", "process", "none_left_at"} <= proof.keys()
    return dict(proof)


def signals_in(proof: dict[str, Any]) -> list[str]:
    return [each["signal"] for each in proof["signals"]]


def test_all_that_it_says_arrives_while_it_runs_and_all_that_it_asks_is_done(
    own: Windlass, notes: Path, tmp_path: Path
) -> None:
    client, release = own.client, tmp_path / "release"
    task_id = submit(own, "speak", {"notes": str(notes), "release": str(release)})
    said = wait_until("it is heard", lambda: [e for e in client.events(task_id) if e["type"] == "output"])
    assert [each["data"]["text"] for each in said] == ["word by word"]
    assert client.get(task_id)["progress"]["percent"] == 50
    process = process_in(notes)
    assert process.is_running()
    release.touch()
    task = finished(client, task_id)
    assert task["status"] == "completed", task["error"]
    assert not process.is_running()
    result = task["result"]
    assert result["pid"] == process.pid
    assert task["usage"]["cost_usd"] == 0.5
    assert client.finished(result["child"])["result"]["echo"] == "from afar"
    assert client.get(result["child"])["parent_task_id"] == task_id
    assert client.http.get(f"/api/v1/media/{result['file']}").content == b"some bytes"
    for words in ("actors.speak: printed here", "actors.speak: logged for ann"):
        wait_until(f"{words} in the log", lambda words=words: words in own.log())  # type: ignore[misc]


def test_an_async_one_has_children_files_and_rates_too(own: Windlass) -> None:
    task = finished(own.client, submit(own, "gather", {}))
    assert task["status"] == "completed", task["error"]
    echoes = [own.client.finished(child)["result"]["echo"] for child in task["result"]["children"]]
    assert echoes == [0, 1]
    assert own.client.http.get(f"/api/v1/media/{task['result']['file']}").content == b"some bytes"


ERRORS = {
    "throws": ("ValueError", "permanent", "it cannot be"),
    "ours": ("Overworked", "transient", "too much"),
    "foreign": ("KeyError", "transient", "'nothing'"),
    "signal": ("SubprocessFailed", "transient", "the process of actor fail was ended by SIGSEGV"),
    "exit": ("SubprocessFailed", "transient", "the process of actor fail ended with exit code 3 and said nothing"),
}


def test_an_error_is_what_it_would_be_in_the_worker(own: Windlass) -> None:
    ids = {how: submit(own, "fail", {"how": how}, max_retries=0) for how in ERRORS}
    errors = {}
    for how, (error_type, kind, message) in ERRORS.items():
        task = finished(own.client, ids[how])
        error = errors[how] = task["error"]
        assert (task["status"], error["type"], error["kind"]) == ("dead", error_type, kind)
        assert error["message"].startswith(message)
    for how in ("throws", "ours", "foreign"):
        assert "our_actors.py" in errors[how]["stack_trace"], how
    assert errors["ours"]["details"]["queue"] == 7
    assert errors["signal"]["details"]["signal"] == "SIGSEGV"
    assert "our_actors.py" in errors["signal"]["details"]["stderr"], "the interpreter says where"


def test_what_fails_to_be_imported_there_is_told(own: Windlass) -> None:
    task = finished(own.client, submit(own, "shy", {}, max_retries=0))
    assert (task["status"], task["error"]["type"]) == ("dead", "SubprocessFailed")
    assert "ImportError: not when I am alone" in task["error"]["message"]


def test_its_death_costs_its_own_attempt_and_no_finished_step_and_no_sibling(
    own: Windlass, notes: Path, tmp_path: Path
) -> None:
    (before,) = wait_until("a worker", own.workers)
    release, place = tmp_path / "release", tmp_path / "place"
    sibling = submit(own, "beside", {"notes": str(tmp_path / "beside"), "release": str(release)})
    wait_until("its sibling is at work", lambda: lines(tmp_path / "beside"))
    task_id = submit(own, "steps", {"notes": str(notes), "place": str(place)}, retry_delays={"delays": [0.0]})
    os.kill(process_in(place).pid, 9)
    task = finished(own.client, task_id)
    assert (task["status"], task["result"], task["attempt"]) == ("completed", [10, 20], 2), task["error"]
    assert lines(notes) == ["step 1", "step 2"]
    assert task["error_history"][0]["type"] == "SubprocessFailed"
    assert task["error_history"][0]["details"]["signal"] == "SIGKILL"
    release.touch()
    assert finished(own.client, sibling)["result"] == 1
    (after,) = own.workers()
    assert after["pid"] == before["pid"]


def test_after_kill_9_of_the_worker_nothing_of_it_lives_and_no_finished_step_runs_again(
    own: Windlass, notes: Path, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    task_id = submit(own, "steps", {"notes": str(notes), "place": str(place)})
    process = process_in(place)
    (worker,) = wait_until("a worker", own.workers)
    own.kill(worker["pid"])
    wait_until("it is gone", lambda: not process.is_running())
    task = finished(own.client, task_id)
    assert (task["status"], task["result"], task["attempt"]) == ("completed", [10, 20], 2)
    assert lines(notes) == ["step 1", "step 2"]


def test_one_that_never_looks_is_stopped_all_the_same(own: Windlass, notes: Path) -> None:
    (before,) = wait_until("a worker", own.workers)
    task_id = submit(own, "spin", {"notes": str(notes)})
    process = process_in(notes)
    own.client.cancel(task_id)
    task = finished(own.client, task_id)
    assert task["status"] == "cancelled"
    assert not process.is_running()
    proof = proof_of(own, task)
    assert (proof["reason"], signals_in(proof)[0]) == ("cancelled", "SIGTERM")
    (after,) = own.workers()
    assert after["pid"] == before["pid"], "its worker need not go"


def test_one_that_ignores_term_is_killed(own: Windlass, notes: Path) -> None:
    task_id = submit(own, "spin", {"notes": str(notes), "deaf": True})
    process = process_in(notes)
    own.client.cancel(task_id)
    task = finished(own.client, task_id)
    assert task["status"] == "cancelled"
    assert not process.is_running()
    assert signals_in(proof_of(own, task)) == ["SIGTERM", "SIGKILL"]


def test_one_whose_time_is_up_is_ended(own: Windlass, notes: Path) -> None:
    """One whose time is up before its function has begun ends by itself when it is told: a busy machine needs more."""
    for seconds in (1, 4, 16, 64):
        task = finished(own.client, submit(own, "spin", {"notes": str(notes)}, timeout_seconds=seconds, max_retries=0))
        assert (task["status"], task["error"]["type"]) == ("dead", "TimedOut")
        if lines(notes):
            break
    assert proof_of(own, task)["reason"] == "timed out"


@pytest.mark.parametrize(("actor", "by"), [("wait", "CancelledError"), ("poll", "Stopped")])
def test_it_is_told_before_it_is_sent_anything(own: Windlass, notes: Path, actor: str, by: str) -> None:
    """A coroutine where it awaits, a function where it looks. They are deaf to TERM."""
    task_id = submit(own, actor, {"notes": str(notes)})
    process = process_in(notes)
    own.client.cancel(task_id)
    assert finished(own.client, task_id)["status"] == "cancelled"
    assert lines(notes)[1:] == [f"stopped by {by}"]
    assert not process.is_running()


def test_what_it_leaves_behind_is_ended_before_it_completes(own: Windlass, notes: Path) -> None:
    task = finished(own.client, submit(own, "leave", {"notes": str(notes)}))
    assert (task["status"], task["result"]) == ("completed", "done")
    left = ProcessIdentity.of(int(lines(notes)[0]))
    assert left is None or not left.is_running()
    assert proof_of(own, task)["reason"] == "ended by itself and left processes behind"
