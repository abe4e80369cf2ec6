"""A build before this one, as processes of its own: what is given to them in their environment, and its set's name."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).parents[2]
OLDER_BUILD = {"PYTHONPATH": str(Path(__file__).parent / "older_build")}


@cache
def older_schema() -> str:
    asked = "from windlass.shared.store import functions; print(functions.schema())"
    return _run("-c", asked).strip()


def migrate_as_the_older_build(database_url: str) -> None:
    _run("-m", "windlass.services.admin.migrate", WINDLASS_DATABASE_URL=database_url)


def _run(*arguments: str, **settings: str) -> str:
    environment = {**os.environ, **OLDER_BUILD, **settings}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=PROJECT, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
