"""The `windlass` command itself."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.servers.databases import execute
from tests.support.up import WINDLASS
from windlass.services.cli.main import PROCESSES

DATABASE, BROKER = "WINDLASS_DATABASE_URL", "WINDLASS_AMQP_URL"
NEEDED_BY = {
    "api": [DATABASE],
    "dispatcher": [DATABASE, BROKER],
    "worker": [DATABASE, BROKER],
    "orchestrator": [DATABASE],
    "janitor": [DATABASE, BROKER],
    "migrate": [DATABASE],
    "actors register": [DATABASE],
}


def windlass(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [WINDLASS, *arguments], env={**os.environ, **settings}, capture_output=True, text=True, timeout=60, check=False
    )


def test_its_help_names_the_commands() -> None:
    words = windlass("--help").stdout.split()
    assert {"up", "api", "dispatcher", "worker", "orchestrator", "actors", "janitor", "migrate"} <= set(words)


def test_an_unknown_command_is_refused() -> None:
    refused = windlass("lst")
    assert refused.returncode == 2
    assert refused.stderr == "windlass: there is no command 'lst'; did you mean `list`?\n"


def test_alone_it_is_its_help() -> None:
    alone = windlass()
    assert (alone.returncode, alone.stderr) == (0, "")
    assert alone.stdout == windlass("--help").stdout


def test_a_setting_that_makes_no_sense_is_named() -> None:
    refused = windlass("up", WINDLASS_PORT="many")
    assert refused.returncode == 2
    assert refused.stderr.startswith("windlass: WINDLASS_PORT: ")


@pytest.mark.parametrize("command", ["up", *PROCESSES])
def test_every_process_says_what_is_wrong_with_its_settings_and_does_not_start(command: str, tmp_path: Path) -> None:
    file = tmp_path / "windlass.toml"
    file.write_text("[providers.probe]\nlimits = 3\n")
    refused = windlass(command, WINDLASS_CONFIG=str(file), WINDLASS_PROT="8800")
    assert refused.returncode == 2
    assert refused.stderr.splitlines() == [
        "windlass: WINDLASS_PROT: there is no such setting; did you mean `WINDLASS_PORT`?",
        f"windlass: {file}: [providers.probe] limits: there is no such key; did you mean `limit`?",
    ]


@pytest.mark.parametrize(("command", "needed"), NEEDED_BY.items())
def test_a_missing_setting_is_one_line_and_the_process_exits_with_code_2(
    command: str, needed: list[str], tmp_path: Path
) -> None:
    refused = windlass(*command.split(), WINDLASS_DATA_DIR=str(tmp_path))
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert [line.partition(" is not set")[0] for line in refused.stderr.splitlines()] == [
        f"windlass: {name}" for name in needed
    ]


@pytest.mark.parametrize(
    ("arguments", "settings", "code", "words"),
    [
        (("--url", "http://127.0.0.1:1"), {}, 2, "windlass: no key for http://127.0.0.1:1: give one with --key"),
        ((), {"WINDLASS_PORT": "many"}, 2, "windlass: WINDLASS_PORT: "),
        ((), {}, 4, "windlass: no Windlass runs on "),
    ],
)
def test_a_command_that_does_not_know_where_to_go_prints_one_line(
    arguments: tuple[str, ...], settings: dict[str, str], code: int, words: str, tmp_path: Path
) -> None:
    refused = windlass("list", *arguments, WINDLASS_DATA_DIR=str(tmp_path), **settings)
    assert (refused.returncode, refused.stdout) == (code, "")
    (line,) = refused.stderr.splitlines()
    assert line.startswith(words)


def test_the_needed_settings_of_every_process_are_tested() -> None:
    assert PROCESSES.keys() <= NEEDED_BY.keys()


@pytest.mark.parametrize("command", ["up", *PROCESSES])
def test_a_database_other_than_postgres_is_refused_in_one_line_without_its_password(command: str) -> None:
    refused = windlass(command, WINDLASS_DATABASE_URL="mysql://me:secret@localhost/tasks")
    assert refused.returncode == 2
    assert refused.stderr == "windlass: WINDLASS_DATABASE_URL: must begin with postgresql://, not mysql://\n"


def test_a_worker_that_refuses_its_settings_ends_and_is_not_started_again(tmp_path: Path) -> None:
    """The guardian cannot see this mistake: only the worker that it starts loads the middleware."""
    file = tmp_path / "windlass.toml"
    file.write_text('[worker]\nmiddleware = ["not_there:Class"]\n')
    nowhere = {DATABASE: "postgresql://127.0.0.1:1/none", BROKER: "amqp://127.0.0.1:1/"}
    refused = windlass("worker", WINDLASS_CONFIG=str(file), **nowhere)
    assert refused.returncode == 2
    assert refused.stderr.count("[worker] middleware: ") == 1


def test_a_command_becomes_the_process_that_it_names(empty_database_url: str) -> None:
    migrated = windlass("migrate", WINDLASS_DATABASE_URL=empty_database_url)
    assert migrated.returncode == 0, migrated.stderr
    execute(empty_database_url, "SELECT task_id FROM tasks")


CHECKED = """
[agents.coder]
command = ["not-a-program", "--json"]

[agents.elsewhere]
command = ["/not/there/agent"]

[agents.helper]
command = ["sh", "-ec", "/bin/true or anything"]

[agents.script]
command = ["python3", "-I", "/not/there.py", "/tmp/output"]

[schedules.nightly]
cron = "0 3 * * *"
target = {task = {actor = "sumarize", payload = {content = "x"}}}

[schedules.hourly]
every_seconds = 3600
target = {workflow = {name = "x", tasks = [{key = "a", actor = "nobody"}]}}

[schedules.right]
every_seconds = 3600
target = {task = {actor = "probe"}}
"""


def test_the_check_reports_a_missing_command_and_an_unknown_actor_of_a_schedule(tmp_path: Path) -> None:
    file = tmp_path / "windlass.toml"
    file.write_text(CHECKED)
    checked = windlass("actors", "check", WINDLASS_CONFIG=str(file))
    assert checked.returncode == 1
    coder, elsewhere, script, nightly, hourly = checked.stderr.splitlines()
    assert coder.startswith(f"windlass: {file}: [agents.coder] command: there is no program not-a-program in /")
    assert elsewhere == f"windlass: {file}: [agents.elsewhere] command: there is no program /not/there/agent"
    assert script == f"windlass: {file}: [agents.script] command: there is no file /not/there.py"
    assert nightly.startswith("windlass: [schedules.nightly]: /actor: no actor is called sumarize; did you mean `summ")
    assert hourly.startswith("windlass: [schedules.hourly]: /tasks/0/actor: no actor is called nobody")
