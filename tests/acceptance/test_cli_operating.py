"""The commands for whoever runs a Windlass: health, audit, stats, save, top, doctor and drill."""

import asyncio
import hashlib
import os
import re
import shlex
import subprocess
import time
import webbrowser
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from tests.acceptance.conftest import a_windlass_apart
from tests.support.command_line import Run, run
from tests.support.installation import KEY, NOBODY, Windlass
from tests.support.providers.fake_providers import fake_providers
from tests.support.servers.private_servers import Servers
from tests.support.shown_commands import blocks_of
from tests.support.terminal import Terminal
from tests.support.up import WINDLASS
from tests.support.waiting import wait_until
from windlass.services.laptop.ports import free_port
from windlass.shared import db
from windlass.shared.settings import Settings
from windlass.shared.store.operating import statistics

__all__ = ["run"]

CONFIG = """
[providers.leonardo]
poll_seconds = 0.1

[providers.nobodys]
actor = "probe"
limit = 3
rate = {limit = 5, per_seconds = 2}
"""


@pytest.fixture(scope="module")
def installed(
    servers: Servers, migrated_template: str, management: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Windlass]:
    """Probes, pictures and what is remembered of them; one queue is nobody's."""
    directory = tmp_path_factory.mktemp("operating")
    with (
        fake_providers(directory) as fake,
        a_windlass_apart(
            servers, migrated_template, management, directory, config=CONFIG,
            WINDLASS_QUEUES="probe.probe,media.leonardo,embed.hash", WINDLASS_FAKE_PROVIDERS_URL=fake.url,
        ) as windlass,
    ):  # fmt: skip
        windlass.start_all()
        yield windlass


@pytest.fixture(autouse=True)
def environment(installed: Windlass, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("WINDLASS_URL", installed.url)
    monkeypatch.setenv("WINDLASS_API_KEY", KEY)
    return dict(os.environ)


@pytest.fixture(scope="module")
def picture(installed: Windlass) -> str:
    payload = {"action": "txt2img", "prompt": "a windlass at dawn"}
    task_id: str = installed.client.submit(actor="media", provider="leonardo", payload=payload)["task_id"]
    assert installed.client.finished(task_id)["status"] == "completed"
    return task_id


def test_health_tells_how_each_part_is(run: Run, installed: Windlass) -> None:
    installed.wait_until_healthy()
    shown = run("health")
    assert (shown.code, shown.err) == (0, "windlass is healthy\n")
    assert {row[0]: row[1] for row in shown.rows[1:]} == dict.fromkeys(
        ("postgres", "broker", "dispatcher", "orchestrator", "janitor", "workers", "breakers"), "healthy"
    )
    installed.client.change_provider("nobodys", breaker="open")
    try:
        degraded = run("health", "-o", "json")
    finally:
        installed.client.change_provider("nobodys", breaker="auto")
    assert (degraded.code, degraded.document["status"]) == (1, "degraded")


def test_the_audit_log_is_shown_and_filtered(run: Run, installed: Windlass) -> None:
    for limit in (2, 3):
        installed.client.change_provider("nobodys", limit=limit)
    shown = run("audit", "--action", "provider.change", "--limit", "1")
    assert shown.rows[0] == ["AT", "ACTION", "BY", "TARGET", "DETAILS"]
    assert shown.rows[1][1:] == ["provider.change", "admin", "nobodys", '{"limit": 3}']
    assert (len(shown.rows), "--limit shows more" in shown.err) == (2, True)
    nothing = run("audit", "--user", "nobody")
    assert (nothing.out, nothing.err) == ("", "no operator has done anything like that\n")


def test_open_makes_a_link_that_signs_in(run: Run, installed: Windlass, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setenv("BROWSER", "a-browser")
    url = run("open", "-o", "json").document["url"]
    assert opened == [url]
    assert run("open", "--no-browser").rows[0][1].startswith(f"{installed.url}/sign-in#link_token=")
    assert opened == [url]
    token = {"link_token": url.partition("#link_token=")[2]}
    assert httpx.post(f"{installed.url}/api/v1/session", json=token, trust_env=False).status_code == 201


def test_everything_is_paused_and_goes_on_with_a_reason(run: Run, installed: Windlass) -> None:
    for command, paused in (("pause", "yes"), ("resume", "")):
        shown = run("providers", command, "--reason", "the invoice")
        assert {row[4] for row in shown.rows[1:]} == {paused}
        (entry,) = installed.client.http.get("/api/v1/audit", params={"limit": 1}).json()["items"]
        assert (entry["action"], entry["target"]) == ("providers.change", None)
        assert entry["details"] == {"paused": command == "pause", "reason": "the invoice"}
    run("providers", "set", "nobodys", "--limit", "4", "--reason", "their new quota")
    assert run("audit", "--limit", "1").rows[1][4] == '{"limit": 4, "reason": "their new quota"}'
    run("providers", "set", "nobodys", "--limit", "3")
    assert "say what to change" in run("providers", "set", "nobodys", "--reason", "none").err


def test_the_page_s_commands_do_what_they_say(
    run: Run, installed: Windlass, picture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but the drill, which has a test of its own, with something in the place of each word in capitals."""
    monkeypatch.chdir(tmp_path)
    Path("flow.json").write_text('{"name": "one", "tasks": [{"key": "only", "actor": "probe"}]}')
    waiting = [run("submit", "probe", "--delay", "3600").out.strip() for _ in range(2)]
    project = run("projects", "create", "of the page", "--actor", "probe").out.strip()
    run("projects", "add", project, "--title", "one")
    words = {
        "projects loop ID": f"projects loop {project}",
        "save ID": f"save {picture}",
        "cancel ID ID": f"cancel {' '.join(waiting)}",
        "FILE": "flow.json",
        "NAME": "of-the-page",
        "URL": "https://receiver.example/hook",
        "ID": picture,
    }
    _, block = blocks_of("command_line.md")
    for line in block.splitlines():
        command = line
        for shown, meant in words.items():
            command = re.sub(rf"\b{shown}\b", meant, command)
        _, *arguments = shlex.split(command, comments=True)
        if arguments != ["drill"]:
            done = run(*arguments)
            # What the doctor finds to mend depends on the machine, and is no fault of the command.
            is_fine = done.code == 0 or (arguments == ["doctor"] and "to mend" in done.err)
            assert is_fine, (line, done)
            assert "Traceback" not in done.err, (line, done)
    assert {installed.client.get(each)["status"] for each in waiting} == {"cancelled"}
    assert list(Path("pictures").iterdir())
    run("providers", "set", "probe", "--limit", "default")


def test_limits_are_changed_as_the_operators_book_says(run: Run, installed: Windlass) -> None:
    (block,) = [each for each in blocks_of("operating.md") if "providers set" in each]
    try:
        done = [run(*shlex.split(line, comments=True)[1:]) for line in block.splitlines()]
        leonardo = installed.client.http.get("/api/v1/providers/leonardo").json()
    finally:
        run("providers", "resume")
        run("providers", "set", "leonardo", "--rate", "default", "--breaker", "auto")
    assert {each.code for each in done} == {0}, done
    assert leonardo["rate"]["effective"] == {"limit": 10, "per_seconds": 60}
    assert (leonardo["paused"], leonardo["breaker"]["mode"]) == (True, "open")


def test_a_worker_is_drained(run: Run, installed: Windlass) -> None:
    (worker,) = installed.workers()
    shown = run("workers", "drain", worker["worker_id"])
    assert shown.rows[0] == ["worker", worker["worker_id"]]
    wait_until(
        "another", lambda: [each["worker_id"] for each in installed.workers()] not in ([], [worker["worker_id"]])
    )
    assert run("workers", "drain", "nobody").code == 3


def test_stats_are_the_janitor_s_figures(run: Run, installed: Windlass) -> None:
    installed.client.finished(installed.client.submit()["task_id"])

    async def write_figures() -> None:
        """As the janitor does every hour; of yesterday, too, for midnight may have passed meanwhile."""
        pool = await db.open_pool(Settings(database_url=installed.environment["WINDLASS_DATABASE_URL"]), "test", most=1)
        try:
            today = datetime.now(UTC).date()
            for day in (today - timedelta(days=1), today):
                await statistics.keep_figures(pool, day)
        finally:
            await pool.close()

    asyncio.run(write_figures())
    heading, *days = run("stats", "--days", "2").rows
    probes = [row for row in days if row[1] == "probe"]
    assert heading[:5] == ["DAY", "ACTOR", "CREATED", "COMPLETED", "DEAD"]
    assert sum(int(row[3]) for row in probes) >= 1


def test_files_are_saved_and_none_is_overwritten(run: Run, installed: Windlass, picture: str, tmp_path: Path) -> None:
    ids = installed.client.get(picture)["result"]["content_ids"]
    served = [installed.client.http.get(f"/api/v1/media/{each}") for each in ids]
    directory = tmp_path / "pictures"
    saved = run("save", picture, str(directory))
    assert saved.code == 0, saved.err
    paths = [Path(row[0]) for row in saved.rows]
    assert [path.read_bytes() for path in paths] == [answer.content for answer in served]
    assert [path.name for path in paths] == [f"{picture}-{number}.png" for number in range(1, len(ids) + 1)]
    assert sorted(directory.iterdir()) == sorted(paths), "nothing half saved is left"

    assert {row[1] for row in run("save", picture, str(directory)).rows} == {"was there already"}
    paths[0].write_bytes(b"mine")
    refused = run("save", picture, str(directory))
    assert (refused.code, paths[0].read_bytes()) == (1, b"mine")
    assert "is there and holds something else; --overwrite replaces it" in refused.err
    assert run("save", picture, str(directory), "--overwrite").code == 0
    assert hashlib.sha256(paths[0].read_bytes()).hexdigest() == served[0].headers["etag"].strip('"')


def test_what_has_no_files_says_so(run: Run, installed: Windlass, tmp_path: Path) -> None:
    task_id = installed.client.submit(delay_seconds=600)["task_id"]
    none = run("save", task_id, str(tmp_path / "none"))
    assert (none.code, none.err) == (1, f"windlass: task {task_id} has no files: it is queued\n")
    assert not (tmp_path / "none").exists()
    assert run("save", str(NOBODY)).code == 3


def test_top_is_drawn_anew_until_q(installed: Windlass, environment: dict[str, str]) -> None:
    with Terminal([WINDLASS, "top"], environment) as terminal:
        terminal.wait_for("QUEUE")
        task_id = installed.client.submit(payload={"seconds": 60})["task_id"]
        terminal.wait_for("1 running")
        installed.kill_api()
        terminal.wait_for("cannot reach")
        installed.start_api_again()
        installed.client.cancel(task_id)
        installed.client.finished(task_id)
        terminal.wait_for("ended/s")
        assert re.search(r"probe\.probe .* (\d+) +1 *\r?\n", terminal.text), "with its ends in a minute, and one worker"
        terminal.press(b"q")
        assert terminal.end() == 0, terminal.text
    assert b"\x1b[?1049l" in terminal.raw, "the screen from before is back"


def test_top_in_a_pipe_is_one_look(run: Run) -> None:
    shown = run("top")
    assert shown.rows[0][:8] == ["QUEUE", "LIMIT", "RUNNING", "WAITING", "OLDEST", "RATE", "ENDED/MIN", "WORKERS"]
    (row,) = [row for row in shown.rows if row[0] == "probe.nobodys"]
    assert (row[1], row[5], row[6], row[7]) == ("3", "5/2s", "0", "0")
    assert {"queues", "providers"} <= set(run("top", "-o", "json").document)


def verdicts(run: Run, *arguments: str) -> tuple[int, dict[str, dict[str, str]]]:
    result = run("doctor", "-o", "json", *arguments)
    return result.code, {each["name"]: each for each in result.document["items"]}


def test_a_doctor_finds_nothing_wrong_with_what_is_well(
    run: Run, installed: Windlass, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDLASS_AGENT_SANDBOX", "best-effort")
    monkeypatch.setenv("WINDLASS_DATA_DIR", str(tmp_path))
    for name in ("WINDLASS_DATABASE_URL", "WINDLASS_AMQP_URL"):
        monkeypatch.setenv(name, installed.environment[name])
    installed.wait_until_healthy()
    code, found = verdicts(run)
    wrong = [each for each in found.values() if each["state"] == "bad"]
    assert (code, wrong) == (0, [])
    for name in ("postgres", "rabbitmq", "disk", "api", "clock", "migration", "key", "its broker", "its workers"):
        assert found[name]["state"] == "ok", found[name]
    for name in ("Postgres version", "RabbitMQ version"):
        assert (found[name]["state"], found[name]["detail"][0].isdigit()) == ("ok", True), found[name]
    assert "probe.nobodys" in found["queues"]["detail"], "nobody serves it, and nothing waits there"
    assert all(each["remedy"] for each in found.values() if each["state"] != "ok")

    installed.client.submit(provider="nobodys")
    code, found = verdicts(run)
    assert (code, found["queues"]["state"]) == (1, "bad")
    assert "probe.nobodys" in found["queues"]["detail"]
    installed.client.cancel(installed.client.tasks(provider="nobodys", status="queued")[0]["task_id"])


def test_a_doctor_helps_where_nothing_runs(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WINDLASS_URL")
    monkeypatch.setenv("WINDLASS_DATA_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("WINDLASS_AMQP_URL", f"amqp://127.0.0.1:{free_port()}")
    code, found = verdicts(run)
    assert (code, found["api"]["state"], found["rabbitmq"]["state"]) == (1, "bad", "bad")
    assert "make up" in found["api"]["remedy"]
    assert "WINDLASS_AMQP_URL" in found["rabbitmq"]["remedy"]
    assert not (tmp_path / "nowhere").exists(), "a doctor changes nothing"

    monkeypatch.setenv("WINDLASS_PROT", "1")
    code, found = verdicts(run, "--url", f"http://127.0.0.1:{free_port()}")
    assert "did you mean `WINDLASS_PORT`" in found["settings"]["detail"]
    assert "cannot reach" in found["api"]["detail"]


def test_a_doctor_knows_a_stranger_s_key(run: Run) -> None:
    code, found = verdicts(run, "--key", "wl_nobody_abcdefghijklmnopqrstuvwxyz")
    assert (code, found["key"]["state"], found["api"]["state"]) == (1, "bad", "ok")


def test_a_clock_that_is_wrong_is_noticed(installed: Windlass, environment: dict[str, str], tmp_path: Path) -> None:
    """The command's own: a process cannot set another clock, but it can be told another one."""
    (tmp_path / "sitecustomize.py").write_text(
        "import datetime as d\n"
        "class Late(d.datetime):\n"
        "    @classmethod\n"
        "    def now(cls, tz=None):\n"
        "        return d.datetime.fromtimestamp(__import__('time').time() - 600, tz)\n"
        "import windlass.services.cli.doctor.there as there\n"
        "there.datetime = Late\n"
    )
    told = {**environment, "PYTHONPATH": str(tmp_path), "WINDLASS_DATA_DIR": str(tmp_path)}
    done = subprocess.run([WINDLASS, "doctor"], env=told, capture_output=True, text=True, check=False)
    (clock,) = [line.split("\t") for line in done.stdout.splitlines() if line.startswith("clock\t")]
    ahead = re.fullmatch(r"the server's is ([\d.]+) s ahead of this one", clock[2])
    assert (clock[1], ahead is not None) == ("bad", True), clock
    assert ahead
    assert 500 < float(ahead[1]) <= 600, "less what the answer took to come: it may have been written at its beginning"


def test_a_drill_is_survived(run: Run, installed: Windlass) -> None:
    began = time.monotonic()
    done = run("drill", "-o", "json")
    assert done.code == 0, (done.out, done.err)
    report = done.document
    assert (report["accepted"], report["finished"], report["doubled"]) == (20, 20, 0)
    assert 0 <= report["longest_wait_seconds"] <= time.monotonic() - began
    tasks = installed.client.tasks(tag=report["tag"])
    assert sorted(task["status"] for task in tasks) == ["completed"] * 19 + ["dead"]
    stalls = [event for task in tasks for event in installed.client.events(task["task_id"]) if event["type"] == "stall"]
    assert stalls, "a worker was killed"


def test_a_drill_that_does_not_end_in_time_fails(run: Run, installed: Windlass) -> None:
    installed.client.change_provider("probe", paused=True)
    try:
        done = run("drill", "--within", "0.2")
    finally:
        installed.client.change_provider("probe", paused=False)
    assert done.code == 1
    assert dict(done.rows)["finished"] == "0"
    for task in installed.client.tasks(tag=dict(done.rows)["tag"]):
        installed.client.cancel(task["task_id"])


def test_a_drill_is_an_admin_s(run: Run) -> None:
    key = run("keys", "create", "--user", "ann", "-o", "json").document["key"]
    refused = run("drill", "--key", key)
    assert refused.code == 5
    assert "a drill is for admins" in refused.err
