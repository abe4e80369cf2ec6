"""The commands that speak to the API, as people and scripts use them."""

import io
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.support.command_line import Run, run
from tests.support.installation import KEY, NOBODY, Windlass
from tests.support.pages import page
from tests.support.terminal import Terminal
from tests.support.up import WINDLASS
from windlass.services.cli.exit_codes import MEANINGS
from windlass.services.laptop.ports import free_port

UNKNOWN = str(NOBODY)


__all__ = ["run"]


@pytest.fixture(autouse=True)
def environment(running_windlass: Windlass, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("WINDLASS_URL", running_windlass.url)
    monkeypatch.setenv("WINDLASS_API_KEY", KEY)
    return dict(os.environ)


@contextmanager
def held_back(windlass: Windlass) -> Iterator[tuple[str, str]]:
    """The options of a task that does not begin before whoever watches it is there."""
    windlass.client.change_provider("one-by-one", paused=True)
    try:
        yield "--provider", "one-by-one"
    finally:
        windlass.client.change_provider("one-by-one", paused=False)


def submitted(run: Run, *arguments: str) -> str:
    result = run("submit", "probe", *arguments)
    assert result.code == 0, result.err
    return result.out.strip()


def test_a_task_is_submitted_and_read(run: Run, running_windlass: Windlass) -> None:
    result = run("submit", "probe", "seconds=0.1", "steps=2", "result=a hat", "--tag", "first", "--tag", "second")
    assert result.code == 0
    task_id = result.out.strip()
    assert running_windlass.client.get(task_id)["payload"] == {"seconds": 0.1, "steps": 2, "result": "a hat"}
    assert run("get", task_id, "--wait").code == 0
    facts = dict(run("get", task_id).rows)
    assert (facts["task"], facts["status"], facts["tags"]) == (task_id, "completed", "first, second")
    assert json.loads(facts["result"])["echo"] == "a hat"
    assert run("get", task_id, "-o", "json").document == running_windlass.client.get(task_id)


def test_actors_are_checked_registered_and_shown(
    run: Run, running_windlass: Windlass, environment: dict[str, str]
) -> None:
    def command(*words: str) -> subprocess.CompletedProcess[str]:
        said = environment | running_windlass.environment
        return subprocess.run([WINDLASS, "actors", *words], env=said, capture_output=True, text=True, check=False)

    checked = command("check")
    assert checked.returncode == 0, checked.stderr
    built_in = ["agent", "embed", "media", "probe", "summarize", "webhook"]
    assert [line.partition("(")[0] for line in checked.stdout.splitlines()] == built_in
    registered = command("register")
    assert registered.returncode == 0, registered.stderr
    listed = json.loads(run("actors", "-o", "json").out)["items"]
    assert listed == json.loads(run("actors", "list", "-o", "json").out)["items"]
    assert [each["name"] for each in listed] == built_in
    shown = run("actors", "show", "probe")
    assert (shown.code, "seconds" in shown.out, "How long it works." in shown.out) == (0, True, True)
    assert "did you mean `probe`?" in run("actors", "show", "prode").err


def test_every_option_of_a_task_can_be_given(run: Run) -> None:
    first = submitted(run, "--delay", "600")
    in_a_month = (datetime.now(UTC) + timedelta(days=30)).strftime("%Y-%m-%dT%H:%MZ")
    document = run(
        "submit", "probe", "--provider", "one-by-one", "--type", "greeting", "--priority", "low", "--max-retries", "1",
        "--timeout", "9", "--max-age", "7000", "--at", in_a_month, "--project", "p", "--workflow", "w",
        "--parent", first, "--after", first, "--user", "alice", "-o", "json",
    ).document  # fmt: skip
    expected = {
        "provider": "one-by-one", "task_type": "greeting", "priority": 3, "max_retries": 1, "timeout_seconds": 9,
        "project_id": "p", "workflow_id": "w", "parent_task_id": first, "depends_on": [first], "user_id": "alice",
        "status": "blocked",
    }  # fmt: skip
    assert {name: document[name] for name in expected} == expected
    assert document["available_at"].startswith(in_a_month.removesuffix("Z"))


@pytest.mark.parametrize("source", ["text", "file", "standard input"])
def test_a_payload_comes_from(source: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '{"result": "5", "steps": 1}'
    (tmp_path / "payload.json").write_text(text)
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    argument = {"text": text, "file": f"@{tmp_path / 'payload.json'}", "standard input": "-"}[source]
    document = run("submit", "probe", "steps=3", "--payload", argument, "--delay", "600", "-o", "json").document
    assert document["payload"] == {"result": "5", "steps": 3}, "single fields go over the whole"


def test_waiting_tells_by_the_exit_code_how_it_ended(run: Run) -> None:
    assert run("submit", "probe", "--wait").code == 0
    dead = run("submit", "probe", "outcome=permanent", "--wait")
    assert dead.code == 1
    assert dict(dead.rows)["error"].startswith("InvalidInput: the probe was told to fail for good")
    late = run("submit", "probe", "--delay", "600", "--wait-timeout", "0.1")
    assert late.code == 6
    assert "is still queued after 0.1 s; it goes on" in late.err


def test_what_is_refused_names_the_field(run: Run) -> None:
    refused = run("submit", "probe", "seconds=-1")
    assert (refused.code, refused.out) == (1, "")
    assert "[invalid-payload]" in refused.err
    assert refused.err.startswith("windlass: invalid field /payload/seconds: must be")
    assert "no actor is called poet" in run("submit", "poet").err


def test_a_list_is_filtered_and_says_when_there_is_more(run: Run) -> None:
    ids = [submitted(run, "--delay", "600", "--tag", "listed") for _ in range(3)]
    listed = run("list", "--tag", "listed", "--status", "queued", "--status", "running")
    assert [row[0] for row in listed.rows] == ["TASK", *reversed(ids)]
    two = run("list", "--tag", "listed", "--limit", "2")
    assert [row[0] for row in two.rows] == ["TASK", ids[2], ids[1]]
    assert "--limit shows more" in two.err
    document = run("list", "--tag", "listed", "--limit", "2", "-o", "json").document
    assert ([task["task_id"] for task in document["items"]], "next_cursor" in document) == ([ids[2], ids[1]], True)
    assert "payload" in run("list", "--tag", "listed", "--full", "-o", "json").document["items"][0]


def test_an_empty_list_explains_itself(run: Run) -> None:
    empty = run("list", "--tag", "nobody has this one")
    assert (empty.code, empty.out, empty.err) == (0, "", "no task is like that\n")
    assert run("list", "--tag", "nobody has this one", "-o", "json").document == {"items": []}


def test_a_history_is_shown(run: Run) -> None:
    task_id = run("submit", "probe", "outcome=permanent", "--wait", "-o", "json").document["task_id"]
    shown = run("events", task_id).rows
    assert [row[2] for row in shown] == ["TYPE", "submit", "claim", "bury"]
    assert shown[-1][4].startswith("InvalidInput: ")
    document = run("events", task_id, "--type", "claim", "-o", "json").document
    assert [event["type"] for event in document["items"]] == ["claim"]


def test_several_are_cancelled_and_retried_and_one_failure_stops_no_other(run: Run) -> None:
    one, two = (submitted(run, "--delay", "600") for _ in range(2))
    cancelled = run("cancel", one, UNKNOWN, two)
    assert cancelled.code == 3
    assert cancelled.rows == [[one, "cancelled"], [two, "cancelled"]]
    assert UNKNOWN in cancelled.err
    retried = run("retry", one, two, "-o", "json")
    assert retried.code == 0
    assert [task["status"] for task in retried.document["items"]] == ["queued", "queued"]
    done = submitted(run)
    assert run("get", done, "--wait").code == 0
    refused = run("retry", done, "-o", "json")
    assert refused.code == 1
    assert [error["code"] for error in refused.document["errors"]] == ["not-revivable"]


def test_workers_are_shown(run: Run) -> None:
    heading, *workers = run("workers").rows
    assert heading[:2] == ["WORKER", "STATE"]
    assert any(row[1] == "active" and "probe.probe" in row[5] for row in workers)


def test_exit_codes_tell_scripts_what_went_wrong(run: Run, running_windlass: Windlass) -> None:
    missing = run("get", UNKNOWN)
    assert (missing.code, missing.out) == (3, "")
    assert f"there is no task {UNKNOWN}" in missing.err
    stranger = run("list", "--key", "wl_nobody_abcdefghijklmnopqrstuvwxyz")
    assert (stranger.code, "[unauthorized]" in stranger.err) == (5, True)
    nobody = run("--patience", "0", "list", "--url", f"http://127.0.0.1:{free_port()}")
    assert (nobody.code, "cannot reach http://127.0.0.1" in nobody.err) == (4, True)
    assert run("watch", UNKNOWN).code == 3
    assert run("watch", UNKNOWN, "--url", f"http://127.0.0.1:{free_port()}", "--patience", "0").code == 4
    for mistake in (("get", "abc"), ("submit", "probe", "seconds"), ("list", "--status", "lost"), ("fly",)):
        assert run(*mistake).code == 2, mistake
    assert "is not the id of a task" in run("get", "abc").err


def test_each_mistake_is_printed_once(run: Run) -> None:
    unknown = run("submit", "probe", "secnds=5")
    assert unknown.err.count("did you mean `seconds`") == 1
    several = run("submit", "probe", "secnds=5", "stps=2")
    assert several.err.splitlines()[0] == "windlass: 2 fields are wrong [invalid-payload]"
    assert several.err.count("there is no such field") == 2
    assert run("cancel", UNKNOWN).err.count(UNKNOWN) == 1
    assert run("actors", "show", "nobody").code == 3


def test_the_documentation_and_the_help_have_the_same_exit_codes() -> None:
    documented = re.findall(r"^\| (\d+) \| (.+) \|$", page("command_line.md"), re.MULTILINE)
    assert documented == re.findall(r"^  (\d+) +(.+)$", MEANINGS, re.MULTILINE)


def test_the_beginning_of_an_id_and_names_are_enough(run: Run) -> None:
    first, second = (run("submit", "probe", "seconds=0", "--delay", "600").out.strip() for _ in range(2))
    shared = next(place for place, (a, b) in enumerate(zip(first, second, strict=True)) if a != b)
    assert dict(run("get", first[: shared + 1]).rows)["task"] == first
    assert run("cancel", second[: shared + 1].upper()).out == f"{second}\tcancelled\n"

    ambiguous = run("get", first[:4])
    assert (ambiguous.code, ambiguous.out) == (2, "")
    assert "have ids that begin with 01" in ambiguous.err
    assert f"\n  {second}  cancelled  probe.probe\n" in ambiguous.err
    nothing = run("get", "ffff")
    assert (nothing.code, nothing.err) == (3, "windlass: no task has an id that begins with ffff\n")

    project = run("projects", "create", "by its name", "--actor", "probe").out.strip()
    item = run("projects", "add", "by its name", "seconds=0").out.strip()
    assert dict(run("projects", "show", "by its name").rows)["project"] == project
    assert run("projects", "skip", project[:-3], item[:-3]).out == f"{item}\tskipped\n"
    assert run("projects", "show", "website").err == "windlass: no project is called website\n"
    old = run("projects", "create", "no longer used", "--actor", "probe").out.strip()
    run("projects", "archive", "no longer used")
    assert dict(run("projects", "show", "no longer used").rows)["project"] == old, "an archived one, too"
    new = run("projects", "create", "no longer used", "--actor", "probe").out.strip()
    assert dict(run("projects", "show", "no longer used").rows)["project"] == new
    run("projects", "create", "by its name", "--actor", "probe")
    twice = run("projects", "show", "by its name")
    assert (twice.code, "2 projects are called by its name; give the id of one:\n" in twice.err) == (2, True)


def test_a_workflow_is_found_by_its_name(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "flow.json"
    file.write_text(json.dumps({"name": "found by name", "tasks": [{"key": "a", "actor": "probe"}]}))
    workflow = run("workflows", "submit", str(file)).out.strip()
    assert dict(run("workflows", "show", "found by name").rows)["workflow"] == workflow
    assert run("workflows", "show", "no such name").code == 3


def test_filters_and_labels_take_the_names_of_projects_and_workflows(run: Run, tmp_path: Path) -> None:
    project = run("projects", "create", "of the filters", "--actor", "probe").out.strip()
    file = tmp_path / "flow.json"
    file.write_text(json.dumps({"name": "flow of the filters", "tasks": [{"key": "a", "actor": "probe"}]}))
    workflow = run("workflows", "submit", str(file)).out.strip()
    task = run("submit", "probe", "seconds=0", "--project", "of the filters").out.strip()

    def shown(*filters: str) -> set[str]:
        return {row[0] for row in run("list", *filters).rows[1:]}

    assert json.loads(run("get", task, "-o", "json").out)["project_id"] == project
    assert shown("--project", "of the filters") == shown("--project", project[:-3]) == {task}
    of_the_workflow = shown("--workflow", workflow)
    assert len(of_the_workflow) == 1
    assert shown("--workflow", "flow of the filters") == shown("--workflow", workflow[:-3]) == of_the_workflow
    made = run("webhooks", "create", "https://hooks.example/by-name", "--event", "task.*", "--project", project[:-3])
    assert json.loads(run("webhooks", "show", dict(made.rows)["webhook"], "-o", "json").out)["filter"] == {
        "project_id": project
    }

    labelled = run("submit", "probe", "seconds=0", "--project", "only a label").out.strip()
    assert shown("--project", "only a label") == {labelled}
    run("projects", "create", "only a label", "--actor", "probe")
    assert shown("--project", "only a label") == {labelled}, "a label in use stays a label"


def test_the_windlass_that_runs_here_is_found(
    run: Run, running_windlass: Windlass, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WINDLASS_URL")
    monkeypatch.delenv("WINDLASS_API_KEY")
    monkeypatch.setenv("WINDLASS_DATA_DIR", str(tmp_path))
    nothing = run("workers")
    assert (nothing.code, "start one with `make up`" in nothing.err) == (4, True)
    (tmp_path / "run.json").write_text(json.dumps({"api": {"pid": 1, "url": running_windlass.url}}))
    keyless = run("workers")
    assert (keyless.code, "give one with --key" in keyless.err) == (2, True)
    (tmp_path / "admin_key").write_text(f"{KEY}\n")
    assert run("workers").code == 0
    elsewhere = run("workers", "--url", "http://127.0.0.1:1")
    assert "no key for http://127.0.0.1:1" in elsewhere.err, "a key is never sent to somebody else"


def test_watching_in_a_pipe_is_a_line_per_change_and_survives_a_restart(
    run: Run, running_windlass: Windlass, environment: dict[str, str]
) -> None:
    with ExitStack() as holding:
        options = holding.enter_context(held_back(running_windlass))
        task_id = submitted(run, "seconds=8", "steps=40", "result=hello", *options)
        with subprocess.Popen(
            [WINDLASS, "watch", task_id, "--patience", "0"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as watching:
            assert watching.stdout
            first = [watching.stdout.readline()]
            holding.close()
            first += [watching.stdout.readline() for _ in range(2)]
            running_windlass.kill_api()
            running_windlass.start_api_again()
            out, err = watching.communicate(timeout=120)
    assert watching.returncode == 0, err
    assert "reconnecting…" in err
    assert "connected again" in err
    lines = "".join((*first, out)).splitlines()
    told = [line.split(maxsplit=3) for line in lines]
    assert [words[1] for words in told][:2] == ["queued", "running"]
    assert told[-1][1] == "completed"
    assert '"echo": "hello"' in lines[-1]
    assert len(set(lines)) == len(lines), "nothing is told twice"


def test_watching_as_json_is_a_line_per_event(run: Run, running_windlass: Windlass) -> None:
    result = run("submit", "probe", "seconds=0.1", "steps=1", "--watch", "-o", "json")
    told = [json.loads(line) for line in result.out.splitlines()]
    assert [each["event"] for each in told][-1] == "complete"
    task_id = running_windlass.client.tasks(limit=1)[0]["task_id"]
    with running_windlass.client.stream(task_id) as stream:
        assert [(each["seq"], each["event"], each["data"]) for each in told] == list(stream)
    assert run("watch", task_id, "--after", str(told[-1]["seq"])).code == 0, "all is read, and it had completed"
    assert run("submit", "probe", "outcome=permanent", "--watch").code == 1


def test_watching_on_a_terminal_is_a_bar_that_survives_a_restart(
    run: Run, running_windlass: Windlass, environment: dict[str, str]
) -> None:
    with ExitStack() as holding:
        options = holding.enter_context(held_back(running_windlass))
        task_id = submitted(run, "seconds=8", "steps=30", "result=hello", *options)
        terminal = holding.enter_context(Terminal([WINDLASS, "watch", task_id, "--patience", "0"], environment))
        terminal.wait_for("queued")
        running_windlass.client.change_provider("one-by-one", paused=False)
        terminal.wait_for(" of 30")
        running_windlass.kill_api()
        terminal.wait_for("reconnecting…")
        running_windlass.start_api_again()
        assert terminal.end() == 0, terminal.text
    after = terminal.text.rpartition("reconnecting…")[2]
    assert "completed" in after
    assert "100 %" in after
    assert '"echo": "hello"' in after
    assert "attempt 1" in after
    assert b"\x1b[2K" in terminal.raw, "a bar is drawn over itself"


def test_why_an_attempt_failed_stays_on_the_terminal(environment: dict[str, str]) -> None:
    failing = ("outcome=transient", "fail_times=1", "error_type=NetworkTimeout", "seconds=0.1", "steps=1")
    with Terminal([WINDLASS, "submit", "probe", *failing, "--watch"], environment) as terminal:
        assert terminal.end() == 0, terminal.text
    why = "attempt 1 failed: NetworkTimeout: the probe was told to fail with NetworkTimeout"
    assert terminal.text.count(f"{why}\r\n") == 1, "a line of its own, once, and not a bar that is drawn over"


def test_ctrl_c_leaves_the_watched_task_alone(
    run: Run, running_windlass: Windlass, environment: dict[str, str]
) -> None:
    task_id = submitted(run, "seconds=60", "steps=600")
    with Terminal([WINDLASS, "watch", task_id], environment) as terminal:
        terminal.wait_for(" of 600")
        terminal.press(b"\x03")
        assert terminal.end() == 130
    assert f"the task goes on; see how it goes: windlass watch {task_id}" in terminal.text
    task = running_windlass.client.get(task_id)
    assert (task["status"], task["cancel_requested"]) == ("running", False)
    stopping = run("cancel", task_id)
    assert (stopping.code, stopping.rows[0][1] in {"stopping", "cancelled"}) == (0, True)


def test_a_terminal_gets_a_table_with_whole_ids(run: Run, environment: dict[str, str]) -> None:
    task_id = run("submit", "probe", "outcome=permanent", "--tag", "drawn", "--wait", "-o", "json").document["task_id"]
    with Terminal([WINDLASS, "list", "--tag", "drawn"], environment, columns=80) as terminal:
        assert terminal.end() == 0
    heading, row = terminal.text.splitlines()[:2]
    assert heading.split() == ["TASK", "STATUS", "QUEUE", "AGE", "PROGRESS"], "the others have no room"
    assert row.startswith(task_id)
    assert "\t" not in terminal.text
    assert b"\x1b[31mdead" in terminal.raw


TABLES = (
    "actors", "queues", "providers", "workers", "list", "dlq", "dlq --group", "events TASK", "projects",
    "projects items PROJECT", "projects runs PROJECT", "workflows", "workflows show WORKFLOW", "approvals", "schedules",
    "schedules runs wide", "webhooks", "webhooks deliveries WEBHOOK", "memory models", "keys", "audit",
    "health",
)  # fmt: skip


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_of_a_table_is_wider_than_the_terminal(
    width: int, run: Run, environment: dict[str, str], tmp_path: Path
) -> None:
    name = f"a name of {width} columns that is longer than most names are"
    ids = {"PROJECT": run("projects", "create", name, "--actor", "probe").out.strip()}
    for title in ("the header of the page, in three languages", "the footer"):
        run("projects", "add", ids["PROJECT"], "--title", title)
    run("projects", "run", ids["PROJECT"])
    file = tmp_path / "flow.json"
    asks = {"key": "asks", "actor": "probe", "approval": {"message": "Shall it be published, and if so, where? " * 3}}
    file.write_text(json.dumps({"name": name, "tasks": [asks]}))
    ids["WORKFLOW"] = run("workflows", "submit", str(file)).out.strip()
    run("schedules", "put", "wide", "--every", "3600", "--actor", "probe")
    run("schedules", "trigger", "wide")
    hook = run("webhooks", "create", f"https://hooks.example/{width}/of/the/shop", "--event", "task.*")
    ids["WEBHOOK"] = dict(hook.rows)["webhook"]
    run("webhooks", "test", ids["WEBHOOK"])
    ids["TASK"] = run("submit", "probe", "outcome=permanent", "--wait", "-o", "json").document["task_id"]

    def too_wide(command: str) -> list[str]:
        words = [ids.get(word, word) for word in command.split()]
        with Terminal([WINDLASS, *words], environment, columns=width) as terminal:
            assert terminal.end() in {0, 1}, terminal.text
        lines = terminal.text.splitlines()
        assert len(lines) > 1, f"{command}: {lines}"
        return [line for line in lines if cell_len(line) > width]

    with ThreadPoolExecutor(3) as terminals:
        found = dict(zip(TABLES, terminals.map(too_wide, TABLES), strict=True))
    assert {command: lines for command, lines in found.items() if lines} == {}


def test_whoever_stops_reading_sees_no_traceback(environment: dict[str, str]) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    result = subprocess.run(
        [WINDLASS, "workers"], env=environment, stdout=theirs, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(theirs)
    assert (result.returncode, result.stderr) == (128 + signal.SIGPIPE, "")


def test_the_shell_completes_commands_and_actors(tmp_path: Path, run: Run, environment: dict[str, str]) -> None:
    script = tmp_path / "completion.bash"
    script.write_text(run("completion", "bash").out)
    found = {**environment, "PATH": f"{Path(WINDLASS).parent}:{environment['PATH']}"}

    def completed(*typed: str) -> list[str]:
        asked = f"COMP_WORDS=({' '.join(typed)}); COMP_CWORD={len(typed) - 1}; _shtab_windlass; echo ${{COMPREPLY[@]}}"
        program = ["bash", "-c", f"source {script}; {asked}"]
        return subprocess.run(program, capture_output=True, text=True, check=True, env=found).stdout.split()

    assert completed("windlass", "sub") == ["submit"]
    assert completed("windlass", "submit", "su") == ["summarize"], "as they are registered now"
    assert completed("windlass", "actors", "show", "pro") == ["probe"]
    assert completed("windlass", "projects", "force") == ["force-stop"]
    assert completed("windlass", "workflows", "res") == ["resume"]
    project = run("projects", "create", "completed").out.strip()
    assert project in completed("windlass", "projects", "show", project[:4])
    assert "windlass" in run("completion", "zsh").out
    assert "windlass" in run("completion", "tcsh").out
    assert "complete -c windlass" in run("completion", "fish").out


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("windlass prov", ["providers"]),
        ("windlass providers s", ["set", "show"]),
        ("windlass providers set leonardo --br", ["--breaker"]),
        ("windlass providers set leonardo --breaker ", ["auto", "closed", "open"]),
        ("windlass --url http://127.0.0.1:1 keys cre", ["create"]),
        ("windlass completion f", ["fish"]),
    ],
)
def test_fish_completes_commands_options_and_choices(
    tmp_path: Path, run: Run, typed: str, completed: list[str]
) -> None:
    script = tmp_path / "windlass.fish"
    script.write_text(run("completion", "fish").out)
    asked = subprocess.run(
        ["fish", "--no-config", "-c", f"source {script}; complete -C '{typed}'"],
        capture_output=True, text=True, check=True, env={**os.environ, "HOME": str(tmp_path)},
    )  # fmt: skip
    assert (sorted(line.partition("\t")[0] for line in asked.stdout.splitlines()), asked.stderr) == (completed, "")


def test_a_task_s_own_words_cannot_steer_the_terminal(environment: dict[str, str]) -> None:
    steering = r'result="\u001b]0;owned\u0007 \u009b31mred \u202eback"'
    with Terminal([WINDLASS, "submit", "probe", steering, "--watch"], environment) as terminal:
        assert terminal.end() == 0
    for obeyed in ("\x1b]0;", "\x9b", "\u202e"):
        assert obeyed.encode() not in terminal.raw
    assert r"\u001b]0;owned\u0007 \u009b31mred \u202eback" in terminal.text


def test_the_program_on_the_page_does_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", page("command_line.md"), re.DOTALL)
    exec(program.replace('"seconds": 5', '"seconds": 0.5'), {})
    first, *steps, last = capsys.readouterr().out.splitlines()
    assert (first, steps[0]) == ("hello", "queued None Queued")
    assert any(line.startswith("running 100.0") for line in steps)
    assert last.endswith("is dead after attempt 1: InvalidInput: the probe was told to fail for good")
