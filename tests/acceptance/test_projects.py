"""Projects over REST, by the clients, by the command line and as their page says, in one installation."""

import asyncio
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

import windlass as library
from tests.acceptance.conftest import a_windlass_apart
from tests.support.command_line import Run, run
from tests.support.installation import KEY, NOBODY, Client, Windlass, end_with_descendants, read_events
from tests.support.pages import lines_typed, page
from tests.support.servers.private_servers import Servers
from tests.support.up import WINDLASS
from tests.support.waiting import wait_until

__all__ = ["run"]

LONG = {"actor": "probe", "payload": {"seconds": 60}}
SHORT = {"actor": "probe", "payload": {}}
NOWHERE = {**SHORT, "provider": "nowhere"}


@pytest.fixture(scope="module")
def windlass(
    servers: Servers, migrated_template: str, management: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Windlass]:
    directory: Path = tmp_path_factory.mktemp("projects")
    config = '[providers.nowhere]\nactor = "probe"\nlimit = 0\n'
    # A worker that is frozen for as long as a test looks is not ended for it.
    with a_windlass_apart(
        servers, migrated_template, management, directory, config=config, WINDLASS_LEASE_SECONDS="20"
    ) as windlass:
        windlass.start_all()
        yield windlass


class Project:
    def __init__(self, client: Client, *items: dict[str, Any], **fields: Any) -> None:
        self.client = client
        made = client.http.post("/api/v1/projects", json={"name": "site", **fields})
        assert made.status_code == 201, made.text
        self.document = made.json()
        self.path = f"/api/v1/projects/{self.document['project_id']}"
        assert made.headers["Location"] == self.path
        self.items = self.post("/items", {"items": list(items)}, 201)["items"] if items else []

    def post(self, path: str, body: Any = None, status: int = 200) -> Any:
        answer = self.client.http.post(f"{self.path}{path}", json={} if body is None else body)
        assert answer.status_code == status, answer.text
        return answer.json()

    def get(self, path: str = "", **query: Any) -> Any:
        answer = self.client.http.get(f"{self.path}{path}", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def patch(self, path: str, body: Any, status: int = 200) -> Any:
        answer = self.client.http.patch(f"{self.path}{path}", json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    @property
    def queue(self) -> dict[str, Any]:
        queue: dict[str, Any] = self.get("/queue/status")
        return queue

    def until(self, state: str) -> dict[str, Any]:
        return wait_until(
            f"the queue is {state}", lambda: queue if (queue := self.queue)["state"] == state else None, seconds=150
        )


@pytest.fixture
def client(windlass: Windlass) -> Client:
    return windlass.client


def test_a_loop_runs_its_backlog_and_tells_of_it(client: Client) -> None:
    project = Project(client, SHORT, SHORT, SHORT, defaults={"tags": ["looped"]})
    assert project.document["queue"]["state"] == "idle"
    assert project.document["queue"]["counts"] == {"waiting": 0, "running": 0, "done": 0, "failed": 0, "skipped": 0}
    with client.http.stream("GET", f"{project.path}/queue/stream") as answer:
        events = read_events(answer.iter_lines())
        seq, name, status = next(events)
        assert (name, status["state"], status["counts"]["waiting"]) == ("status", "idle", 3)
        started = project.post("/run", {"mode": "loop"}, 202)
        assert (started["is_running"], started["should_stop"], started["mode"]) == (True, False, "loop")
        told = []
        for number, name, data in events:
            assert number == seq + 1
            seq = number
            told.append((name, data["type"]))
            if data["type"] == "finish":
                assert (data["state"], data["stop_reason"]) == ("idle", "finished")
                break
    assert [kind for name, kind in told if name == "run"] == ["open", "complete"] * 3
    assert [kind for name, kind in told if name == "item"] == ["fulfil"] * 3
    queue = project.queue
    assert (queue["state"], queue["stop_reason"], queue["counts"]["done"]) == ("idle", "finished", 3)
    runs = project.get("/runs")["items"]
    assert [run["state"] for run in runs] == ["completed"] * 3
    task = client.get(runs[0]["task_id"])
    assert (task["project_id"], task["tags"]) == (project.document["project_id"], ["looped"])
    with client.http.stream("GET", f"{project.path}/queue/stream", headers={"Last-Event-ID": str(seq - 2)}) as answer:
        assert next(read_events(answer.iter_lines()))[0] == seq - 1, "it goes on where the client was"
    history = project.get("/events", after=3, limit=5)
    assert [event["seq"] for event in history["items"]] == [4, 5, 6, 7, 8]
    assert history["next_cursor"] == "8"
    assert (
        client.http.get(f"{project.path}/queue/stream", params={"after": "9999"}).json()["code"] == "invalid-event-id"
    )


def test_of_fifty_calls_at_once_one_starts(client: Client) -> None:
    project = Project(client, LONG)

    def run(_number: int) -> httpx.Response:
        return client.http.post(f"{project.path}/run")

    with ThreadPoolExecutor(50) as threads:
        answers = list(threads.map(run, range(50)))
    assert sorted(answer.status_code for answer in answers) == [202, *[409] * 49]
    (problem, *_) = [answer.json() for answer in answers if answer.status_code == 409]
    assert problem["code"] == "queue-already-running"
    assert problem["run"]["task_id"] == project.queue["current_task_id"]
    client.wait_until(project.queue["current_task_id"], "running")
    item = f"/items/{project.items[0]['item_id']}"
    assert project.get(item)["state"] == "running"
    assert project.patch(item, {"title": "late"}, 409)["code"] == "item-running"
    assert client.http.delete(project.path).json()["code"] == "project-running"
    stopping = project.post("/queue/stop")
    assert (stopping["success"], stopping["state"], stopping["should_stop"]) == (True, "stopping", True)
    since = re.compile(r'queues{state="stopping"} 1.0\n(.*\n)*windlass_project_stopping_seconds{by="stop"} (?!0.0\n)')
    wait_until("it is measured", lambda: since.search(client.http.get("/metrics").text))
    forced = project.post("/queue/force-stop")
    assert (forced["success"], forced["state"], forced["stop_reason"]) == (True, "idle", "forced")
    (killed,) = forced["killed_runs"]
    assert [each["proof"] for each in killed["receipt"]["tasks"]] == ["returned"]
    assert project.post("/queue/force-stop")["killed_runs"] == []


def test_a_loop_goes_on_over_a_restart_of_everything(windlass: Windlass, client: Client) -> None:
    """Nothing that runs knows of the loop: every process is killed between and within its runs."""
    number = 20
    project = Project(client, *[{"actor": "probe", "payload": {"seconds": 0.1}}] * number, defaults={"max_retries": 9})
    project.post("/run", {"mode": "loop"}, 202)
    wait_until("some of it is done", lambda: project.queue["counts"]["done"] >= 3)
    for process in (windlass.api, windlass.dispatcher, windlass.janitor, windlass.actors):
        end_with_descendants(process)
    windlass.start_all()
    queue = project.until("idle")
    assert (queue["stop_reason"], queue["counts"]["done"]) == ("finished", number)
    runs = project.get("/runs", limit=200)["items"]
    assert [run["state"] for run in runs] == ["completed"] * number
    assert len({run["item_id"] for run in runs}) == number, "each once"


def test_the_backlog_is_ordered_changed_and_chosen_late(client: Client) -> None:
    project = Project(client, *({**NOWHERE, "title": title} for title in ("one", "two", "three")))
    one, two, three = (item["item_id"] for item in project.items)
    first = project.post("/run", status=202)["current_task_id"]
    project.patch(f"/items/{three}", {"before": one})
    assert [item["title"] for item in project.get("/items")["items"]] == ["three", "one", "two"]
    queue = project.queue
    assert queue["current_task_id"] != first
    assert client.get(first)["status"] == "cancelled"
    changed = project.patch(f"/items/{three}", {"payload": {"steps": 2}, "title": "third"})
    assert (changed["title"], changed["task"]["payload"], changed["state"]) == ("third", {"steps": 2}, "waiting")
    assert client.get(project.queue["current_task_id"])["payload"] == {"steps": 2}
    assert project.post(f"/items/{three}/skip")["state"] == "skipped"
    assert project.get("/items", state="skipped")["items"][0]["item_id"] == three
    assert client.http.delete(f"{project.path}/items/{one}").status_code == 204
    page = project.get("/items", limit=1)
    assert project.get("/items", limit=1, cursor=page["next_cursor"])["items"][0]["item_id"] == two
    stopped = project.post("/queue/stop")
    assert (stopped["state"], stopped["stop_reason"]) == ("idle", "stopped")
    assert project.post(f"/items/{three}/requeue")["state"] == "waiting"
    assert project.get("/runs")["items"][0]["state"] == "withdrawn"


def test_defaults_are_merged_and_what_is_wrong_is_named(client: Client) -> None:
    defaults = {"actor": "probe", "priority": 1, "payload": {"seconds": 1, "steps": 1}, "tags": ["a", "b"]}
    project = Project(client, defaults=defaults)
    (item,) = project.post("/items", {"payload": {"steps": 3}, "tags": ["b", "c"], "title": "it"}, 201)["items"]
    task = item["task"]
    assert (task["actor"], task["priority"], task["tags"]) == ("probe", 1, ["a", "b", "c"])
    assert task["payload"] == {"seconds": 1, "steps": 3}

    def pointers(body: Any, path: str = "/items") -> list[str]:
        return [error["pointer"] for error in project.post(path, body, 422)["errors"]]

    assert pointers({"items": [SHORT, SHORT, {**SHORT, "payload": {"seconds": "long"}}]}) == [
        "/items/2/payload/seconds"
    ]
    assert pointers({"items": [{**SHORT, "depends_on": []}]}) == ["/items/0/depends_on"]
    assert pointers({**SHORT, "dedupe_key": "k"}) == ["/dedupe_key"]
    assert pointers({"actor": "nobody"}) == ["/actor"]
    assert pointers({"items": []}) == ["/items"]
    assert pointers({"mode": "twice"}, "/run") == ["/mode"]
    assert project.patch("", {"defaults": {"priority": 99}}, 422)["errors"][0]["pointer"] == "/defaults/priority"
    assert client.http.post("/api/v1/projects", json={}).json()["errors"][0]["pointer"] == "/name"
    assert project.patch("", {"name": "other", "on_failure": "continue"})["name"] == "other"


def test_a_repeat_under_the_same_key_is_the_same_project(client: Client) -> None:
    def make(name: str) -> httpx.Response:
        return client.http.post("/api/v1/projects", json={"name": name}, headers={"Idempotency-Key": "once"})

    first, second = make("keyed"), make("keyed")
    assert (first.status_code, second.status_code) == (201, 200)
    assert second.json()["project_id"] == first.json()["project_id"]
    assert (second.json()["deduplicated"], second.headers["Idempotent-Replayed"]) == (True, "true")
    assert (other := make("another")).status_code == 422
    assert other.json()["code"] == "idempotency-key-reused"


def test_lists_archives_and_batches(client: Client) -> None:
    projects = [Project(client, NOWHERE, name=f"batch {number}") for number in range(3)]
    empty = Project(client, name="batch empty")
    ids = [each.document["project_id"] for each in [*projects, empty]]

    def batch(action: str) -> list[dict[str, Any]]:
        answer = client.http.post("/api/v1/projects/batch", json={"action": action, "project_ids": ids})
        assert answer.status_code == 200, answer.text
        items: list[dict[str, Any]] = answer.json()["items"]
        assert [item["project_id"] for item in items] == ids
        return items

    started = batch("run")
    assert [item["status_code"] for item in started] == [202, 202, 202, 409]
    assert (started[0]["queue"]["state"], started[3]["problem"]["code"]) == ("running", "backlog-empty")
    listed = client.http.get("/api/v1/projects", params={"q": "BATCH", "state": "running", "limit": 2}).json()
    assert [each["name"] for each in listed["items"]] == ["batch 2", "batch 1"]
    rest = {"q": "batch", "state": "running", "cursor": listed["next_cursor"]}
    assert [each["name"] for each in client.http.get("/api/v1/projects", params=rest).json()["items"]] == ["batch 0"]
    assert [item["queue"]["state"] for item in batch("stop")] == ["idle"] * 4
    batch("run")
    assert [item["status_code"] for item in batch("force-stop")] == [200] * 4
    for _ in range(2):
        assert client.http.delete(empty.path).json()["archived_at"] is not None
    assert empty.post("/run", status=409)["code"] == "project-archived"
    archived = client.http.get("/api/v1/projects", params={"archived": "true"}).json()["items"]
    assert [each["project_id"] for each in archived] == [ids[3]]


def test_the_task_of_a_run_is_revived_as_a_run(client: Client) -> None:
    fails = {"actor": "probe", "payload": {"outcome": "permanent"}, "max_retries": 0}
    project = Project(client, fails, NOWHERE)
    project.post("/run", {"mode": "loop"}, 202)
    queue = project.until("idle")
    assert (queue["stop_reason"], queue["counts"]["failed"]) == ("failed", 1)
    assert queue["last_error"]["kind"] == "permanent"
    (run,) = project.get("/runs")["items"]
    project.post("/run", status=202)
    refused = client.retry(run["task_id"])
    assert (refused.status_code, refused.json()["code"]) == (409, "queue-already-running")
    project.post("/queue/stop")
    assert client.retry(run["task_id"]).status_code == 200
    project.until("idle")
    assert project.get("/runs")["items"][0]["revived_from"] == run["run_id"]


def test_what_happens_is_logged_and_counted(windlass: Windlass, client: Client) -> None:
    project = Project(client, SHORT)
    project.post("/run", status=202)
    project.until("idle")
    (run,) = project.get("/runs")["items"]
    ours = f"project={project.document['project_id']}"
    lines = [
        f"project_run_open {ours} run={run['run_id']}",
        f"project_run_complete {ours} run={run['run_id']}",
        f"project_finish {ours} state=idle reason=finished",
    ]
    wait_until("each is a line of the log", lambda: all(line in windlass.log() for line in lines))
    figures = client.http.get("/metrics").text
    assert "windlass_project_orphans 0.0" in figures


@pytest.fixture
def environment(windlass: Windlass, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("WINDLASS_URL", windlass.url)
    monkeypatch.setenv("WINDLASS_API_KEY", KEY)
    return {**os.environ, "KEY": KEY, "PATH": f"{WINDLASS.parent}:{os.environ['PATH']}"}


def test_the_client_fills_runs_watches_and_stops(windlass: Windlass) -> None:
    with library.Client(windlass.url, KEY) as client:
        projects = client.projects
        made = projects.create("by the client", defaults={"actor": "probe"}, idempotency_key="clients-own")
        again = projects.create("by the client", defaults={"actor": "probe"}, idempotency_key="clients-own")
        assert (again.project_id, again.deduplicated) == (made.project_id, True)
        project_id = made.project_id
        assert [type(event) for event in projects.watch(project_id)] == [library.QueueEvent], "it is idle"
        with pytest.raises(library.BacklogEmpty):
            projects.run(project_id)
        one, two, three = projects.add(project_id, {"title": "one"}, {"title": "two"}, {"title": "three"})
        assert projects.move(project_id, three.item_id, before=one.item_id).title == "three"
        assert projects.change_item(project_id, two.item_id, payload={"seconds": 60}).task["payload"] == {"seconds": 60}
        projects.delete_item(project_id, one.item_id)
        with pytest.raises(library.ItemNotFound):
            projects.item(project_id, one.item_id)
        assert [item.title for item in projects.items(project_id, page_size=1)] == ["three", "two"]
        assert projects.skip(project_id, three.item_id).state == "skipped"
        assert projects.requeue(project_id, three.item_id).state == "waiting"
        assert projects.run(project_id, mode="loop").mode == "loop"
        with pytest.raises(library.QueueAlreadyRunning):
            projects.run(project_id)
        restarted, seen = [], []
        for event in projects.watch(project_id, after=0, on_resumption=lambda: restarted.append(True)):
            seen.append(event)
            if isinstance(event, library.RunEvent) and event.type == "open" and event.item_id == two.item_id:
                windlass.kill_api()
                windlass.start_api_again()
                wait_until("a worker has it", lambda: projects.item(project_id, two.item_id).state == "running")
                assert projects.stop(project_id).state == "stopping"
                forced = projects.force_stop(project_id, reason="it is enough")
                assert (forced.success, forced.still_running, forced.open_jobs) == (True, (), ())
        assert restarted
        assert [event.seq for event in seen] == list(range(1, len(seen) + 1)), "no gap, no repeat"
        assert isinstance(seen[-1], library.QueueEvent)
        assert (seen[-1].state, seen[-1].stop_reason) == ("idle", "forced")
        assert list(projects.watch(project_id, after=seen[-1].seq)) == [], "nothing would come"
        assert [event.type for event in projects.events(project_id, after=len(seen) - 1)] == ["finish"]
        killed, completed = projects.runs(project_id)
        assert completed.state == "completed"
        assert killed.receipt is not None
        assert [each.proof for each in killed.receipt.tasks] == ["returned"]
        (answer,) = projects.batch("run", [project_id])
        assert (answer.status_code, answer.queue, (answer.problem or {})["code"]) == (409, None, "backlog-empty")
        assert projects.change(project_id, name="renamed").name == "renamed"
        assert [each.name for each in projects.list(state="idle", q="renam")] == ["renamed"]
        assert projects.archive(project_id).archived_at is not None
        with pytest.raises(library.ProjectNotFound):
            projects.get(NOBODY)


def test_the_asynchronous_client_does_the_same(windlass: Windlass) -> None:
    async def use() -> None:
        async with library.AsyncClient(windlass.url, KEY) as client:
            projects = client.projects
            project_id = (await projects.create("awaited", defaults={"actor": "probe"})).project_id
            await projects.add(project_id, {"title": "one"}, {"title": "two"})
            await projects.run(project_id, mode="loop")
            first = [event async for event in projects.watch(project_id, after=0)]
            assert [each.type for each in first if isinstance(each, library.RunEvent)] == ["open", "complete"] * 2
            assert [event async for event in projects.watch(project_id, after=first[-1].seq)] == []
            (one, _two) = [item async for item in projects.items(project_id)]
            await projects.requeue(project_id, one.item_id)
            await projects.run(project_id)
            both = [event async for event in projects.watch(project_id, after=0)]
            ends = [event.seq for event in both if isinstance(event, library.QueueEvent) and event.state == "idle"]
            assert (len(ends), ends[-1]) == (2, both[-1].seq), "it does not take an end that is past for the end"
            assert (await projects.status(project_id)).counts.done == 2
            assert (await projects.force_stop(project_id)).killed_runs == ()
            assert len([each async for each in projects.runs(project_id)]) == 3

    asyncio.run(use())


@pytest.mark.usefixtures("environment")
def test_the_command_line_fills_runs_and_stops(run: Run, client: Client) -> None:
    def said(*words: str, code: int = 0) -> str:
        result = run("projects", *words)
        assert result.code == code, result.err
        return result.out.strip()

    project = said("create", "by hand", "--actor", "probe", "steps=2", "--tag", "typed", "--on-failure", "continue")
    one = said("add", project, "--title", "one", "seconds=60", "steps=60")
    two, three = said("add", project, "--items", '[{"title": "two"}, {"title": "three"}]').splitlines()
    assert client.http.get(f"/api/v1/projects/{project}/items/{one}").json()["task"]["payload"] == {
        "seconds": 60, "steps": 60,
    }  # fmt: skip
    said("move", project, three, "--before", two)
    assert said("skip", project, two, three) == f"{two}\tskipped\n{three}\tskipped"
    assert said("skip", project, str(NOBODY), code=3) == ""
    assert said("requeue", project, three) == f"{three}\twaiting"
    rows = run("projects", "items", project).rows
    assert [(row[0], row[1], row[4]) for row in rows[1:]] == [
        (one, "waiting", "one"), (three, "waiting", "three"), (two, "skipped", "two"),
    ]  # fmt: skip
    assert "state\trunning" in said("loop", project)
    refused = run("projects", "run", project)
    assert (refused.code, "[queue-already-running]" in refused.err) == (1, True)
    task = run("projects", "show", project, "-o", "json").document["queue"]["current_task_id"]
    client.wait_until(task, "running")
    assert "state\tstopping" in said("stop", project)
    (killed,) = [row for row in run("projects", "force-stop", project, "--reason", "enough").rows if row[0] == "proof"]
    assert killed[1] == f"task {task} cancelled: its worker said that the work had returned"
    nothing = run("projects", "force-stop", project)
    assert (nothing.code, nothing.err) == (0, "there was nothing to kill\n")
    watched = run("projects", "watch", project)
    assert (watched.code, "idle, forced" in watched.out, "1 waiting, 1 failed, 1 skipped" in watched.out) == (
        1,
        True,
        True,
    )
    finished = run("projects", "loop", project, "--watch")
    assert finished.code == 0, finished.err
    assert "queue  idle, finished" in finished.out
    assert [row[1] for row in run("projects", "runs", project).rows] == ["STATE", "completed", "cancelled"]
    assert run("projects", "list", "--search", "by hand").rows[1][:2] == [project, "idle"]
    assert run("projects", "archive", project, "-o", "json").document["archived_at"]
    assert run("projects", "list", "--search", "by hand").err == "no project is like that\n"


@pytest.mark.usefixtures("environment")
def test_a_proof_that_is_not_there_yet_is_said(run: Run, windlass: Windlass, client: Client) -> None:
    project = Project(client, LONG)
    project_id = project.document["project_id"]
    task_id = project.post("/run", status=202)["current_task_id"]
    worker_id = client.wait_until(task_id, "running")["worker_id"]
    (pid,) = [worker["pid"] for worker in windlass.workers() if worker["worker_id"] == worker_id]
    windlass.kill(pid, signal.SIGSTOP)
    try:
        early = run("projects", "force-stop", project_id, "--wait", "0")
    finally:
        windlass.kill(pid, signal.SIGCONT)
    assert (early.code, "not proven yet" in early.err) == (6, True)
    assert re.fullmatch(rf"task {task_id} at {worker_id} on \S+ for \d+s: .+", dict(early.rows)["still running"])
    assert run("projects", "force-stop", project_id).code == 0


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("move", str(NOBODY), str(NOBODY)), "one of the arguments --before --after is required"),
        (("add", str(NOBODY), "--items", "{}"), "items are a JSON list of objects: [{…}, …]"),
        (("add", str(NOBODY), "--title", "a", "--items", "[{}]"), "say one item, or many with --items"),
        (("force-sop", str(NOBODY)), "did you mean `force-stop`?"),
    ],
)
def test_what_is_typed_wrong_is_one_sentence(run: Run, words: tuple[str, ...], sentence: str) -> None:
    refused = run("projects", *words)
    assert (refused.code, refused.out, len(refused.err.splitlines())) == (2, "", 1)
    assert sentence in refused.err


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page calls curl, which is not installed")
def test_the_page_does_what_it_says(
    windlass: Windlass, environment: dict[str, str], run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    text = page("projects.md")
    typed = [line.replace("http://127.0.0.1:8800", windlass.url) for line in lines_typed("projects.md")]
    known = typed_by_hand(typed, environment, run)
    assert dict(run("projects", "show", known["PROJECT"]).rows)["state"] == "idle"
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(program, {})
    assert capsys.readouterr().out.splitlines()[-1] == "Counts(waiting=0, running=0, done=2, failed=1, skipped=0)"


def typed_by_hand(lines: list[str], environment: dict[str, str], run: Run) -> dict[str, str]:
    """As a shell would; but `windlass` runs in this process, which is quicker. Returns the variables."""
    known = {"KEY": KEY}
    for line in lines:
        variable, command = line.split("=", 1) if re.match(r"[A-Z]+=", line) else ("", line)
        filled = re.sub(r"\$(\w+)", lambda found: known[found[1]], command)
        if "windlass " in command:
            done = run(*shlex.split(filled.removeprefix("$(").removesuffix(")"))[1:])
            assert done.code == 0, (line, done)
            known[variable] = done.out.strip()
        elif variable:
            known[variable] = filled
        else:
            subprocess.run(shlex.split(filled), env=environment, stdout=subprocess.DEVNULL, check=True)
    return known
