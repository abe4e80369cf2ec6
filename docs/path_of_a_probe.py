"""Counts the files and lines that one probe passes, from its POST to the last event of its stream.

`python -m docs.path_of_a_probe` runs a real installation, notes in which files functions are called while probes run
one after the other, and prints the files that every one of them passed. `--keep` writes them into `life_of_a_task.md`.
"""

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.deployment import a_windlass, new_database, start_all
from tests.support.installation import Windlass
from tests.support.servers.databases import PROJECT, ask, execute
from tests.support.servers.private_servers import throw_away_servers
from tests.support.waiting import wait_until
from windlass.shared.store.functions import files, schema

PROBES = 8
STATISTICS_SECONDS = 12.0
"""A connection of Postgres passes on what it has counted after ten idle seconds at the latest."""
CALM = {"WINDLASS_HEARTBEAT_SECONDS": "60", "WINDLASS_LEASE_SECONDS": "300", "WINDLASS_SAFETY_POLL_SECONDS": "60"}
PAGE = PROJECT / "docs/life_of_a_task.md"
BEGIN, END = "<!-- path of a probe -->", "<!-- end of the path -->"

CALLED = "SELECT DISTINCT funcname FROM pg_stat_user_functions WHERE schemaname = $1 AND calls > 0"


def run_a_probe(windlass: Windlass) -> tuple[int, int]:
    """When it began and when its stream ended, in milliseconds."""
    began = int(time.time() * 1000)
    with windlass.client.stream(windlass.client.submit()["task_id"]) as stream:
        assert list(stream)[-1][1] == "complete"
    return began, int(time.time() * 1000)


def called_in_postgres(windlass: Windlass, url: str) -> set[str]:
    """The names of the functions that one probe calls."""
    execute(url, "SELECT pg_stat_reset()")
    run_a_probe(windlass)
    time.sleep(STATISTICS_SECONDS)
    return {row["funcname"] for row in ask(url, CALLED, schema())}


def measure() -> tuple[set[Path], set[Path]]:
    """The files of Python, and those of SQL."""
    notes = Path(tempfile.mkdtemp())
    traced = {
        "TRACED_PROJECT": f"{PROJECT}/",
        "TRACED_NOTES": str(notes),
        "PYTHONPATH": os.pathsep.join([str(PROJECT / "docs/tracing"), str(PROJECT)]),
    }
    try:
        with throw_away_servers() as servers, tempfile.TemporaryDirectory() as directory:
            url = new_database(servers, "path")
            execute(servers.database_url, "ALTER SYSTEM SET track_functions = 'all'")
            execute(servers.database_url, "SELECT pg_reload_conf()")
            with a_windlass(url, servers, Path(directory), **CALM, **traced) as windlass:
                start_all(windlass)
                wait_until("a worker", windlass.client.workers)
                run_a_probe(windlass)
                windows = [run_a_probe(windlass) for _ in range(PROBES)]
                functions = set.intersection(*(called_in_postgres(windlass, url) for _ in range(PROBES // 4)))
        passed = [line for each in notes.iterdir() for line in each.read_text().splitlines()]
    finally:
        shutil.rmtree(notes)
    found = [(int(moment), Path(name)) for moment, name in (line.split(" ", 1) for line in passed)]
    python = set.intersection(*({name for at, name in found if begin <= at <= end} for begin, end in windows))
    return {name.resolve() for name in python if "tests" not in name.parts}, set(files_of(functions))


def files_of(functions: set[str]) -> Iterator[Path]:
    for path in files():
        if any(f"CREATE FUNCTION {name}(" in path.read_text() for name in functions):
            yield path.resolve()


def told(python: set[Path], sql: set[Path]) -> str:
    lines = {path: len(path.read_text().splitlines()) for path in python | sql}
    total, of_sql = sum(lines.values()), sum(lines[path] for path in sql)
    rooms: dict[str, list[Path]] = {}
    for path in sorted(lines):
        rooms.setdefault(str(path.parent.relative_to(PROJECT)), []).append(path)
    head = (
        f"A probe passes **{len(lines)} files with {total:,} lines** from its POST to the last event of its stream; "
        f"{len(sql)} of them are SQL, with {of_sql:,} lines.\n`python -m docs.path_of_a_probe --keep` counts them in a "
        "running installation and writes this section."
    )
    rows = [
        f"| `{room}` | {', '.join(f'`{path.name}` {lines[path]}' for path in paths)} |" for room, paths in rooms.items()
    ]
    return "\n".join([head, "", "| folder | files, with their lines |", "|---|---|", *rows])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m docs.path_of_a_probe", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="write the result into life_of_a_task.md")
    keep = parser.parse_args().keep
    text = told(*measure())
    print(text)
    if keep:
        before, rest = PAGE.read_text().split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
