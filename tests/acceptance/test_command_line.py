"""The `windlass` command itself."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.servers.databases import execute
from tests.support.up import WINDLASS


def windlass(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [WINDLASS, *arguments], env={**os.environ, **settings}, capture_output=True, text=True, timeout=60, check=False
    )


def test_its_help_names_the_commands() -> None:
    words = windlass("--help").stdout.split()
    assert {"up", "api", "dispatcher", "actors", "janitor", "migrate"} <= set(words)


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
    assert refused.returncode == 1
    assert refused.stderr.startswith("windlass: WINDLASS_PORT: ")


@pytest.mark.parametrize("command", ["up", "api", "dispatcher", "actors", "janitor", "migrate"])
def test_every_process_says_what_is_wrong_with_its_settings_and_does_not_start(command: str, tmp_path: Path) -> None:
    file = tmp_path / "windlass.toml"
    file.write_text("[providers.probe]\nlimits = 3\n")
    refused = windlass(command, WINDLASS_CONFIG=str(file), WINDLASS_PROT="8800")
    assert refused.returncode == 1
    assert refused.stderr.splitlines() == [
        "windlass: WINDLASS_PROT: there is no such setting; did you mean `WINDLASS_PORT`?",
        f"windlass: {file}: [providers.probe] limits: there is no such key; did you mean `limit`?",
    ]


def test_a_command_becomes_the_process_that_it_names(empty_database_url: str) -> None:
    migrated = windlass("migrate", WINDLASS_DATABASE_URL=empty_database_url)
    assert migrated.returncode == 0, migrated.stderr
    execute(empty_database_url, "SELECT task_id FROM tasks")
