"""Schedules over REST, by the clients, by the command line and as their page says; orchestrators that are killed."""

import asyncio
import os
import re
import shutil
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

import windlass as library
from tests.acceptance.conftest import a_windlass_apart
from tests.acceptance.test_projects import typed_by_hand
from tests.support.command_line import Run, run
from tests.support.installation import KEY, NOBODY, Client, Windlass
from tests.support.pages import lines_typed, page
from tests.support.servers.databases import ask
from tests.support.servers.private_servers import Servers
from tests.support.up import WINDLASS
from tests.support.waiting import wait_until

__all__ = ["run"]

SHORT = {"task": {"actor": "probe", "payload": {}}}
WEEKDAYS = ("--cron", "30 2 * * 1-5", "--timezone", "Europe/Berlin")
DAY = (datetime(2025, 6, 2, tzinfo=UTC), datetime(2025, 6, 3, tzinfo=UTC))
HOURLY = {"cron": "0 * * * *", "target": SHORT}


@pytest.fixture(scope="module")
def windlass(
    servers: Servers, migrated_template: str, management: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Windlass]:
    directory: Path = tmp_path_factory.mktemp("schedules")
    with a_windlass_apart(servers, migrated_template, management, directory) as windlass:
        windlass.start_all()
        yield windlass


@pytest.fixture
def client(windlass: Windlass) -> Client:
    return windlass.client


def call(client: Client, method: str, path: str = "", body: Any = None, status: int = 200, **query: Any) -> Any:
    answer = client.http.request(method, f"/api/v1/schedules{path}", json=body, params=query)
    assert answer.status_code == status, answer.text
    return answer.json() if answer.content else None


def make(client: Client, name: str, **fields: Any) -> Any:
    return call(client, "POST", body={"name": name, **HOURLY, **fields}, status=201)


def runs(client: Client, name: str, **query: Any) -> list[Any]:
    items: list[Any] = call(client, "GET", f"/{name}/runs", **query)["items"]
    return items


def ended_as(client: Client, name: str) -> str | None:
    end: str | None = runs(client, name)[0]["ended_as"]
    return end


def test_a_schedule_is_made_read_changed_and_deleted_by_its_name(client: Client) -> None:
    made = make(client, "reports", timezone="Europe/Berlin", cron="30 2 * * MON")
    assert made["words"] == "At 02:30 on Monday (Europe/Berlin)"
    assert len(made["next_times"]) == 5
    assert made["next_due_at"] == made["next_times"][0]
    assert (made["overlap"], made["catch_up"], made["catch_up_window_seconds"]) == ("skip", "latest", 3600)
    assert call(client, "GET", "/reports")["schedule_id"] == made["schedule_id"]
    assert call(client, "GET", f"/{made['schedule_id']}")["name"] == "reports"
    assert call(client, "POST", body={"name": "reports", **HOURLY}, status=409)["code"] == "name-taken"
    changed = call(client, "PATCH", "/reports", {"every_seconds": 60, "overlap": "queue-one"})
    assert (changed["cron"], changed["every_seconds"], changed["words"]) == (None, 60, "Every minute")
    put = call(client, "PUT", "/reports", HOURLY)
    assert (put["schedule_id"], put["cron"], put["overlap"]) == (made["schedule_id"], "0 * * * *", "skip")
    assert call(client, "PUT", "/others", HOURLY, status=201)["name"] == "others"
    assert {"reports", "others"} <= {each["name"] for each in call(client, "GET", limit=500)["items"]}
    call(client, "DELETE", "/reports", status=204)
    assert call(client, "GET", "/reports", status=404)["code"] == "schedule-not-found"


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"cron": "61 * * * *"}, "/cron"),
        ({"cron": "* * * * * *"}, "/cron"),
        ({"every_seconds": 60}, ""),
        ({"cron": None, "every_seconds": 9}, "/every_seconds"),
        ({"timezone": "Europe/Atlantis"}, "/timezone"),
        ({"target": {"task": {"actor": "nobody"}}}, "/target/task/actor"),
        ({"target": {"task": {"actor": "probe", "payload": {"seconds": "x"}}}}, "/target/task/payload/seconds"),
        ({"target": {"task": {"actor": "probe", "dedupe_key": "x"}}}, "/target/task/dedupe_key"),
        ({"target": {"workflow": {"name": "w", "tasks": [{"key": "a"}]}}}, "/target/workflow/tasks/0/actor"),
        ({"target": {"project": {"project_id": "01a1ea49-0758-75d5-b5f1-debd92bc374b"}}}, "/target/project/project_id"),
        ({"target": {}}, "/target"),
        ({"overlap": "perhaps"}, "/overlap"),
        ({"name": "preview"}, "/name"),
    ],
)
def test_what_is_wrong_is_named(client: Client, change: dict[str, Any], pointer: str) -> None:
    problem = call(client, "POST", body={"name": "wrong", **HOURLY, **change}, status=422)
    assert pointer in [each["pointer"] for each in problem["errors"]]


def test_times_are_looked_ahead_at(client: Client) -> None:
    seen = call(client, "POST", "/preview", {"cron": "0 9 * * *", "timezone": "America/New_York", "count": 3})
    assert len(seen["times"]) == 3
    assert seen["words"] == "At 09:00 every day (America/New_York)"
    assert call(client, "POST", "/preview", {"cron": "99 * * * *"}, status=422)["code"] == "invalid-schedule"


def test_a_trigger_starts_a_task_a_workflow_and_a_project_and_their_ends_are_written_down(client: Client) -> None:
    project = client.http.post("/api/v1/projects", json={"name": "site"}).json()["project_id"]
    client.http.post(f"/api/v1/projects/{project}/items", json=SHORT["task"])
    workflow = {"name": "report", "tasks": [{"key": "a", **SHORT["task"]}, {"key": "b", **SHORT["task"]}]}
    for kind, target, end in [
        ("task", SHORT, "completed"),
        ("workflow", {"workflow": workflow}, "completed"),
        ("project", {"project": {"project_id": project}}, "finished"),
    ]:
        make(client, f"by {kind}", target=target)
        run = call(client, "POST", f"/by {kind}/trigger", status=202)
        assert (run["outcome"], run["cause"]) == ("started", "trigger")
        assert wait_until("its end", partial(ended_as, client, f"by {kind}")) == end


def test_a_backfill_starts_each_due_time_of_a_past_time_once(client: Client) -> None:
    make(client, "backfilled")
    noon = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=1)
    body = {"from": noon.isoformat(), "to": (noon + timedelta(hours=3)).isoformat()}
    first = call(client, "POST", "/backfilled/backfill", body, status=202)["items"]
    assert [each["outcome"] for each in first] == ["started"] * 4
    again = call(client, "POST", "/backfilled/backfill", body, status=202)["items"]
    assert [each["task_id"] for each in again] == [each["task_id"] for each in first]
    body["from"] = (noon - timedelta(days=30)).isoformat()
    assert call(client, "POST", "/backfilled/backfill", body, status=422)["errors"][0]["pointer"] == "/from"


def test_paused_it_starts_nothing_but_what_is_asked_for(client: Client) -> None:
    make(client, "sleeping")
    paused = call(client, "POST", "/sleeping/pause", {"reason": "holiday"})
    assert (paused["state"], paused["pause_reason"], paused["next_at"]) == ("paused", "asked-for", None)
    assert call(client, "GET", "/sleeping")["pause_note"] == "holiday"
    assert "sleeping" in {each["name"] for each in call(client, "GET", state="paused")["items"]}
    assert call(client, "POST", "/sleeping/trigger", status=202)["outcome"] == "started"
    resumed = call(client, "POST", "/sleeping/resume")
    assert (resumed["state"], resumed["pause_note"]) == ("active", None)


def test_the_reason_of_a_pause_is_shown_and_audited(
    windlass: Windlass, client: Client, environment: dict[str, str], run: Run
) -> None:
    make(client, "on-holiday")
    paused = run("schedules", "pause", "on-holiday", "--reason", "closed until Monday").out
    assert "state\tpaused: closed until Monday\n" in paused
    assert "; closed until Monday\n" in run("schedules").out
    assert "closed until Monday" in run("audit", "--action", "schedule.pause", "--limit", "1").out


def test_the_revoked_key_of_its_owner_pauses_it(client: Client) -> None:
    key = client.http.post("/api/v1/keys", json={"role": "user", "user_id": "bob"}).json()
    make(client.with_key(key["key"]), "bobs")
    assert call(client, "GET", "/bobs")["user_id"] == "bob", "an admin sees it by its name"
    assert client.http.delete(f"/api/v1/keys/{key['key_id']}").status_code == 200
    seen = call(client, "GET", "/bobs")
    assert (seen["state"], seen["pause_reason"]) == ("paused", "owner-has-no-key")


@pytest.fixture
def environment(windlass: Windlass, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("WINDLASS_URL", windlass.url)
    monkeypatch.setenv("WINDLASS_API_KEY", KEY)
    return {**os.environ, "KEY": KEY, "PATH": f"{WINDLASS.parent}:{os.environ['PATH']}"}


def test_the_client_makes_changes_starts_and_reads(windlass: Windlass) -> None:
    with library.Client(windlass.url, KEY) as client:
        schedules = client.schedules
        probe: library.Target = {"task": {"actor": "probe"}}
        made = schedules.create("by the client", probe, cron="0 9 * * *", timezone="Europe/Berlin")
        assert (made.words, made.state, made.overlap) == ("At 09:00 every day (Europe/Berlin)", "active", "skip")
        assert made.next_times[0] == made.next_due_at
        with pytest.raises(library.NameTaken):
            schedules.create("by the client", probe, every_seconds=60)
        with pytest.raises(library.InvalidSchedule) as refused:
            schedules.create("wrong", probe, cron="61 * * * *")
        assert refused.value.errors[0].pointer == "/cron"
        assert schedules.change(made.schedule_id, every_seconds=60, overlap="allow").words == "Every minute"
        put = schedules.put("by the client", probe, cron="0 9 * * *")
        assert (put.schedule_id, put.timezone, put.overlap) == (made.schedule_id, "UTC", "skip")
        started = schedules.trigger("by the client", reason="to see it")
        assert (started.outcome, started.cause) == ("started", "trigger")
        task = client.wait(started.task_id or "")
        assert task.schedule_id == made.schedule_id
        assert [run.outcome for run in schedules.backfill("by the client", *DAY)] == ["started"]
        assert schedules.backfill("by the client", *DAY)[0].due_at == DAY[0].replace(hour=9)
        assert len(list(schedules.runs("by the client", outcome="started", page_size=1))) == 2
        assert list(schedules.runs("by the client", outcome=["missed", "refused"])) == []
        assert schedules.pause("by the client").pause_reason == "asked-for"
        assert "by the client" in [each.name for each in schedules.list(state="paused", page_size=1)]
        assert schedules.resume("by the client").state == "active"
        assert len(schedules.preview(every_seconds=90, count=3).times) == 3
        schedules.delete("by the client", reason="enough")
        with pytest.raises(library.ScheduleNotFound):
            schedules.get(made.schedule_id)


def test_the_same_with_await(windlass: Windlass) -> None:
    async def use() -> None:
        async with library.AsyncClient(windlass.url, KEY) as client:
            schedules = client.schedules
            made = await schedules.put("awaited", {"task": {"actor": "probe"}}, every_seconds=3600)
            assert (await schedules.get("awaited")).schedule_id == made.schedule_id
            assert (await schedules.trigger("awaited")).outcome == "started"
            assert [run.cause async for run in schedules.runs("awaited")] == ["trigger"]
            assert "awaited" in [each.name async for each in schedules.list()]
            await schedules.delete("awaited")

    asyncio.run(use())


@pytest.mark.usefixtures("environment")
def test_the_command_line_says_it_in_words_and_shows_what_became_of_each(run: Run, tmp_path: Path) -> None:
    seen = run("schedules", "preview", *WEEKDAYS).rows
    assert seen[0] == ["when", "At 02:30 every weekday (Europe/Berlin)"]
    assert [name for name, _ in seen[1:]] == ["next"] * 5
    assert all(re.fullmatch(r"(Mon|Tue|Wed|Thu|Fri) \S+ 02:30:00 \+0[12]00", text) for _, text in seen[1:])
    made = run("schedules", "create", "typed", *WEEKDAYS, "--actor", "probe", "steps=2", "--overlap", "queue-one")
    assert made.code == 0, made.err
    facts = dict(made.rows)
    assert (facts["when"], facts["starts"], facts["overlap"]) == (seen[0][1], "task probe", "queue-one")
    assert "[name-taken]" in run("schedules", "create", "typed", *WEEKDAYS, "--actor", "probe").err
    assert run("schedules", "put", "typed", "--every", "7200", "--actor", "probe").rows[1] == ["when", "Every 2 hours"]
    report = tmp_path / "report.yaml"
    report.write_text("name: report\ntasks: [{key: draft, actor: probe}]\n")
    assert run("schedules", "create", "report", *WEEKDAYS, "--workflow", str(report)).code == 0
    project = run("projects", "create", "scheduled", "--actor", "probe").out.strip()
    assert run("schedules", "create", "site", *WEEKDAYS, "--project", project, "--mode", "loop").code == 0
    listed = {row[0]: row for row in run("schedules").rows[1:]}
    assert [listed[name][4] for name in ("typed", "report", "site")] == [
        "task probe", "workflow report", f"project {project}",
    ]  # fmt: skip
    left_out = run("schedules", "trigger", "site")
    assert (left_out.code, dict(left_out.rows)["why"]) == (1, "backlog-empty")
    begun = run("schedules", "trigger", "report")
    assert (begun.code, dict(begun.rows)["made"].split()[0]) == (0, "workflow")
    assert [row[1:3] for row in run("schedules", "runs", "report").rows] == [
        ["OUTCOME", "CAUSE"],
        ["started", "trigger"],
    ]
    filled = run("schedules", "backfill", "report", "2025-06-02T00:00Z", "2025-06-03T00:00Z")
    assert (filled.code, filled.rows[1][:2]) == (0, ["2025-06-02 00:30:00Z", "started"])
    assert dict(run("schedules", "pause", "site", "--reason", "holiday").rows)["state"] == "paused: holiday"
    assert run("schedules", "list", "--state", "paused").rows[1][0] == "site"
    assert run("schedules", "resume", "site", "-o", "json").document["state"] == "active"
    for name in ("typed", "report", "site"):
        assert run("schedules", "delete", name).code == 0
    assert run("schedules", "show", "typed").code == 3


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("create", "x", "--actor", "probe"), "one of the arguments --cron --every is required"),
        (("create", "x", "--every", "60"), "say what it starts"),
        (("create", "x", "--every", "60", "steps=2"), "--actor is missing"),
        (("create", "x", "--every", "60", "--actor", "probe", "--project", str(NOBODY)), "say what it starts"),
        (("create", "x", "--every", "60", "--actor", "probe", "--mode", "loop"), "--mode is of a project"),
        (("create", "x", "--every", "60", "--workflow", "nowhere.yaml"), "cannot read nowhere.yaml"),
        (("triger", "x"), "did you mean `trigger`?"),
    ],
)
def test_what_is_typed_wrong_is_one_sentence(run: Run, words: tuple[str, ...], sentence: str) -> None:
    refused = run("schedules", *words)
    assert (refused.code, refused.out, len(refused.err.splitlines())) == (2, "", 1)
    assert sentence in refused.err


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page calls curl, which is not installed")
def test_the_page_does_what_it_says(
    windlass: Windlass, environment: dict[str, str], run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    text = page("schedules.md")
    typed = [line.replace("http://127.0.0.1:8800", windlass.url) for line in lines_typed("schedules.md")]
    typed_by_hand(typed, environment, run)
    assert {"nightly", "weekly"} <= {row[0] for row in run("schedules").rows[1:]}
    assert len(run("schedules", "runs", "nightly").rows) == 4, "one that was asked for, and two that were made up for"
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(program, {})
    assert capsys.readouterr().out.splitlines()[-1] == "At 02:30 every weekday (Europe/Berlin)"


def test_orchestrators_killed_and_frozen_while_times_come_due_double_nothing_and_leave_nothing_out(
    windlass: Windlass, client: Client
) -> None:
    """Two more orchestrators; one is frozen and one killed as soon as the first due time has come."""
    others = [windlass.start("orchestrator") for _ in range(2)]
    names = [f"often {number}" for number in range(5)]
    for name in names:
        make(client, name, cron=None, every_seconds=10, overlap="allow", catch_up="all")
    wait_until("the first due time", lambda: runs(client, names[0]), seconds=90)
    os.kill(others[0].pid, signal.SIGSTOP)
    others[1].kill()
    wait_until("the second", lambda: all(len(runs(client, name)) >= 2 for name in names), seconds=90)
    os.kill(others[0].pid, signal.SIGCONT)
    wait_until("the third", lambda: all(len(runs(client, name)) >= 3 for name in names), seconds=90)
    for name in names:
        call(client, "POST", f"/{name}/pause")
        told = runs(client, name)
        times = [datetime.fromisoformat(each["due_at"]) for each in reversed(told)]
        assert {after - before for before, after in pairwise(times)} == {timedelta(seconds=10)}
        begun = [each["task_id"] for each in told if each["outcome"] == "started"]
        assert len(set(begun)) == len(begun) == len(told)


@pytest.fixture
def without_orchestrator(windlass: Windlass) -> Iterator[None]:
    windlass.orchestrator.kill()
    windlass.orchestrator.wait()
    yield
    windlass.orchestrator = windlass.start("orchestrator")


@pytest.mark.usefixtures("without_orchestrator")
def test_a_trigger_and_a_read_need_no_orchestrator(client: Client) -> None:
    make(client, "alone", overlap="queue-one")
    run = call(client, "POST", "/alone/trigger", status=202)
    assert run["outcome"] == "started"
    wait_until("its task's end", lambda: client.get(run["task_id"])["status"] == "completed")
    assert ended_as(client, "alone") == "completed"
    payload = {"fail_times": 1, "error_type": "ServiceUnavailable"}
    bad = {"task": {"actor": "probe", "payload": payload, "max_retries": 0}}
    make(client, "failing", target=bad, pause_after_failures=1)
    run = call(client, "POST", "/failing/trigger", status=202)
    wait_until("its task's end", lambda: client.get(run["task_id"])["status"] == "dead")
    seen = call(client, "GET", "/failing")
    assert (seen["failures"], seen["state"], seen["pause_reason"]) == (1, "paused", "failures")


DUE_NOW = """
UPDATE schedules SET
    anchor_at = anchor_at - interval '1 hour', last_due_at = last_due_at - interval '1 hour',
    next_due_at = next_due_at - interval '1 hour', next_at = next_at - interval '1 hour'
WHERE name = 'killed'
"""
IS_WAITING = """
SELECT 1 FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'windlass-orchestrator%' AND wait_event_type = 'Lock'
"""
MADE = "SELECT count(*) FROM tasks WHERE payload ->> 'seconds' = '0.0123'"


@pytest.mark.usefixtures("without_orchestrator")
def test_an_orchestrator_killed_between_start_and_commit_has_started_nothing(
    windlass: Windlass, client: Client
) -> None:
    url = windlass.environment["WINDLASS_DATABASE_URL"]
    target = {"task": {"actor": "probe", "payload": {"seconds": 0.0123}}}
    make(client, "killed", cron=None, every_seconds=3600, target=target)

    async def kill_in_the_middle() -> None:
        connection = await asyncpg.connect(url)
        try:
            async with connection.transaction():
                # The start comes before the row of the due time.
                await connection.execute("LOCK TABLE schedule_runs IN SHARE ROW EXCLUSIVE MODE")
                orchestrator = await asyncio.to_thread(windlass.start, "orchestrator")
                await asyncio.to_thread(wait_until, "it waits for the row", lambda: ask(url, IS_WAITING), every=0.005)
                orchestrator.kill()
                orchestrator.wait()
        finally:
            await connection.close()

    ask(url, DUE_NOW)
    asyncio.run(kill_in_the_middle())
    wait_until("its transaction is over", lambda: not ask(url, IS_WAITING))
    assert (runs(client, "killed"), ask(url, MADE)[0][0]) == ([], 0)
    orchestrator = windlass.start("orchestrator")
    wait_until("another one starts it", lambda: runs(client, "killed"))
    assert [each["outcome"] for each in runs(client, "killed")] == ["started"]
    assert ask(url, MADE)[0][0] == 1
    orchestrator.kill()
