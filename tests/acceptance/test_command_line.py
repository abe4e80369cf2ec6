"""The `windlass` command itself."""

import os
import subprocess

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
    refused = windlass("fly")
    assert refused.returncode == 2
    assert "invalid choice: 'fly'" in refused.stderr


def test_a_setting_that_makes_no_sense_is_named() -> None:
    refused = windlass("up", WINDLASS_PORT="many")
    assert refused.returncode == 1
    assert refused.stderr.startswith("windlass: WINDLASS_PORT: ")


def test_a_command_becomes_the_process_that_it_names(empty_database_url: str) -> None:
    migrated = windlass("migrate", WINDLASS_DATABASE_URL=empty_database_url)
    assert migrated.returncode == 0, migrated.stderr
    execute(empty_database_url, "SELECT task_id FROM tasks")
