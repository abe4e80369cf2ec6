"""An older edition of Windlass, this one and bare Dramatiq drain the same no-ops in turns, on the same servers.

`python -m bench.editions REVISION [--rounds 5]`: a line of JSON for each round as it ends, then a table with the
medians; nothing is written. Each edition is driven by its own bench in an environment of its own, with the threads
that its own `bench/engine.py` has found best; `THREADS=64` gives both the same. With `--costs` the two editions take
turns at what a task costs them: write-ahead log, CPU at limit 3, a POST, a parent with 10,000 dependents.
"""

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench import engine
from bench.deployment import on_a_virtual_host
from bench.drains import Stages, drain_bare, fill_bare
from bench.figures import told
from bench.surroundings import commit, surroundings
from tests.support.servers.databases import PROJECT, execute
from tests.support.servers.private_servers import Servers, open_directory, throw_away_servers

PROCESSES = (2, 1)
"""How many workers each has, one number after the other in every round."""
STOP_SECONDS = 60
LAST_LINES = 20

DRAIN = """
import json
import signal
import sys
from pathlib import Path

from bench.deployment import a_windlass, new_database
from bench.drains import drain_windlass, fill_windlass
from bench.engine import THREADS
from tests.support.servers.private_servers import Servers

signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
asked = json.load(sys.stdin)
servers = Servers(**asked["servers"])
url = new_database(servers, asked["database"])
with a_windlass(url, servers, Path(asked["directory"]), WINDLASS_ACTOR_THREADS=str(THREADS)) as windlass:
    fill_windlass(windlass, asked["tasks"])
    per_second, stages = drain_windlass(windlass, servers, asked["tasks"], workers=asked["processes"])
print(json.dumps({"per_second": per_second, "stages": stages, "threads": THREADS}))
"""
"""What an edition is told to do, in its own words: what it imports has to be there in all that are compared."""

COSTS = """
import json
import signal
import statistics
import sys
from pathlib import Path

from bench import api, fan, flow, footprint, narrow
from bench.deployment import a_windlass, new_database, start_all
from tests.support.servers.private_servers import Servers
from tests.support.waiting import wait_until

POSTS, TIMES = 1000, 5
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
asked = json.load(sys.stdin)
servers, directory = Servers(**asked["servers"]), Path(asked["directory"])
config = directory / "windlass.toml"
config.write_text(flow.PROVIDERS + fan.PROVIDERS)
url = new_database(servers, asked["database"])
with a_windlass(url, servers, directory, WINDLASS_CONFIG=str(config), WINDLASS_ACTOR_THREADS=fan.THREADS) as windlass:
    start_all(windlass)
    wait_until("a worker", windlass.client.workers)
    wal = footprint.grow(windlass, url)["wal"]
    drain = narrow.Narrow(windlass, servers).drain(3)
    family = fan.Fan(windlass).family("complete", "ok", "completed")
    windlass.client.change_provider("probe", limit=0)
    post = api.request("POST", "/api/v1/tasks", api.TASK)
    posts = [api.per_second(windlass.port, [post], count=POSTS) for _ in range(TIMES)]
print(json.dumps({
    "wal_bytes": wal,
    "limit_3_cpu_ms": sum(drain.stages.values()),
    "posts_per_second": statistics.median(posts),
    "parent_ended_seconds": family.parent_ended,
    "dependents_ended_seconds": family.last,
}))
"""
"""The same for what a task costs."""

Numbers = Mapping[str, float]
"""Of one drain, or the medians of several, by names that end in their units."""


@dataclass(frozen=True)
class Edition:
    """Where one lies, and who runs it."""

    name: str
    place: Path
    python: Path


@dataclass(frozen=True)
class Drain:
    per_second: float
    stages: Stages
    threads: int


@dataclass(frozen=True)
class Turn:
    """One after the other, so that a busy moment hits all of them alike."""

    before: Drain
    after: Drain
    bare: Drain

    def numbers(self) -> dict[str, Numbers]:
        """Ratios are those of this turn; nobody has counted what bare Dramatiq takes."""
        return {
            name: {
                "threads": drain.threads,
                "tasks_per_second": drain.per_second,
                "of_bare": drain.per_second / self.bare.per_second,
                "of_before": drain.per_second / self.before.per_second,
                **({"cpu_ms": sum(drain.stages.values())} if drain.stages else {}),
                **{f"{stage}_ms": milliseconds for stage, milliseconds in drain.stages.items()},
            }
            for name, drain in (("before", self.before), ("after", self.after), ("bare", self.bare))
        }


def medians(turns: Sequence[Turn]) -> dict[str, Numbers]:
    """Each number's own: that of a ratio is the median of each turn's ratio."""
    each = [turn.numbers() for turn in turns]
    return {
        name: {key: statistics.median(numbers[name][key] for numbers in each) for key in first}
        for name, first in each[0].items()
    }


def table(turns: Mapping[int, Sequence[Turn]]) -> str:
    """By the number of processes: every turn, and the medians below them."""
    rows = [
        (str(processes), label, name, numbers)
        for processes, each in turns.items()
        for label, found in [
            *((f"{number}", turn.numbers()) for number, turn in enumerate(each, 1)),
            (f"median of {len(each)}", medians(each)),
        ]
        for name, numbers in found.items()
    ]
    keys = list(dict.fromkeys(key for *_, numbers in rows for key in numbers))
    head = ["processes", "round", "edition", *(_heading(key) for key in keys)]
    lines = [[*words, *(_cell(key, numbers) for key in keys)] for *words, numbers in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *lines])


def _heading(key: str) -> str:
    names = {"tasks_per_second": "tasks/s", "of_bare": "x bare", "of_before": "x before", "cpu_ms": "CPU ms a task"}
    return names.get(key, key.removesuffix("_ms"))


def _cell(key: str, numbers: Numbers) -> str:
    if key not in numbers:
        return ""
    if key.startswith("of_"):
        return f"{numbers[key]:.2f}"
    return f"{numbers[key]:.3f}" if key.endswith("_ms") else told(numbers[key])


class Contest:
    """The editions, each with a virtual host of its own: they may declare the same queue in different ways."""

    def __init__(self, before: Edition, after: Edition, servers: Servers, tasks: int) -> None:
        self.before = before
        self.after = after
        self.servers = servers
        self.hosts = {edition.name: on_a_virtual_host(servers, edition.name) for edition in (before, after)}
        self.tasks = tasks
        self.databases = 0

    def best_bare_threads(self, processes: int) -> int:
        rates = {threads: self.bare(processes, threads).per_second for threads in engine.BARE_THREADS}
        return max(rates, key=rates.__getitem__)

    def turn(self, processes: int, bare_threads: int) -> Turn:
        before, after = (self.drain(edition, processes) for edition in (self.before, self.after))
        return Turn(before, after, self.bare(processes, bare_threads))

    def bare(self, processes: int, threads: int) -> Drain:
        fill_bare(self.servers, self.tasks)
        rate = drain_bare(self.servers, self.tasks, [threads] * processes)
        _say(f"bare Dramatiq, {engine.NUMBERS[processes]}, {threads} threads: {told(rate)} tasks/s")
        return Drain(rate, {}, threads)

    def costs(self) -> dict[str, Numbers]:
        """Of both editions, and what the later one has of the earlier."""
        before, after = (self._told(edition, COSTS) for edition in (self.before, self.after))
        return {"before": before, "after": after, "ratio": {name: after[name] / before[name] for name in before}}

    def drain(self, edition: Edition, processes: int) -> Drain:
        drain = Drain(**self._told(edition, DRAIN, tasks=self.tasks, processes=processes))
        _say(f"{edition.name}, {engine.NUMBERS[processes]}, {drain.threads} threads: {told(drain.per_second)} tasks/s")
        return drain

    def _told(self, edition: Edition, what: str, **asked: int) -> dict[str, Any]:
        """On a database that goes with it: vacuuming it later would fall into somebody else's turn."""
        self.databases += 1
        database = f"{edition.name}_{self.databases}"
        servers = asdict(self.hosts[edition.name])
        try:
            return answer_of(edition, what, {"servers": servers, "database": database, **asked})
        finally:
            execute(self.servers.database_url, f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")


def answer_of(edition: Edition, what: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """In a session of its own: a Ctrl-C is for us, who then tell it to take down what it has started."""
    with (
        tempfile.TemporaryDirectory() as directory,
        subprocess.Popen(
            [edition.python, "-c", what],
            cwd=edition.place,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            output, _ = process.communicate(json.dumps({**asked, "directory": directory}))
        except BaseException:
            process.terminate()
            process.wait(STOP_SECONDS)
            raise
        if process.returncode:
            log = Path(directory) / "log"
            lines = log.read_text(errors="replace").splitlines()[-LAST_LINES:] if log.exists() else []
            failed = f"{edition.name} ended with {process.returncode}: see above"
            raise SystemExit("\n".join([*lines, failed]))
    found: dict[str, Any] = json.loads(output.splitlines()[-1])  # its processes may have said something before
    return found


@contextlib.contextmanager
def an_edition(revision: str, keep: Path | None) -> Iterator[Edition]:
    """The files of a commit, with the environment that its own Makefile makes; kept only where somebody says so."""
    with open_directory() if keep is None else contextlib.nullcontext(keep) as directory:
        place = directory.absolute() / revision
        if not place.exists():
            unpack(revision, place)
        make_environment(place)
        yield Edition("before", place, place / ".venv/bin/python")


def make_environment(place: Path) -> None:
    """Does nothing where it is there already. What pip leaves behind when it is stopped goes with the directory."""
    command = ["make", "--silent", ".venv/.dev", f"PYTHON={sys.executable}"]
    environment = {**os.environ, "TMPDIR": str(place.parent)}
    with subprocess.Popen(command, cwd=place, env=environment, stdout=sys.stderr, start_new_session=True) as process:
        try:
            process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)  # pip, too
            process.wait()
            raise
    if process.returncode:
        raise SystemExit(f"no environment in {place}: see above")


def unpack(revision: str, place: Path) -> None:
    """Without a trace in the repository. The files are as old as now: make would think what it made before older."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as name:
        archive, files = Path(name) / "archive.tar", Path(name) / "files"
        files.mkdir()
        subprocess.run(["git", "archive", f"--output={archive}", revision], cwd=PROJECT, check=True)
        subprocess.run(["tar", "--extract", "--touch", f"--file={archive}", f"--directory={files}"], check=True)
        files.rename(place)


def main() -> None:
    asked = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    with an_edition(asked.revision, asked.keep) as before, throw_away_servers() as servers:
        after = Edition("after", PROJECT, Path(sys.executable))
        head = {"before": asked.revision, "after": commit(), "tasks": asked.tasks, "load": os.getloadavg()[0]}
        print(json.dumps({**head, **surroundings(servers)}), flush=True)
        contest = Contest(before, after, servers, asked.tasks)
        if asked.costs:
            print_costs(contest, asked.rounds)
            return
        bare_threads = {processes: contest.best_bare_threads(processes) for processes in PROCESSES}
        turns: dict[int, list[Turn]] = {processes: [] for processes in PROCESSES}
        for number in range(1, asked.rounds + 1):
            for processes, each in turns.items():
                each.append(contest.turn(processes, bare_threads[processes]))
                print(json.dumps({"round": number, "processes": processes, **each[-1].numbers()}), flush=True)
    for processes, each in turns.items():
        print(json.dumps({"median_of": len(each), "processes": processes, **medians(each)}))
    print(f"\n{table(turns)}")


def print_costs(contest: Contest, rounds: int) -> None:
    found = []
    for number in range(1, rounds + 1):
        found.append(contest.costs())
        print(json.dumps({"round": number, **found[-1]}), flush=True)
    print("\n| medians | before | after | after / before |\n| --- | --- | --- | --- |")
    for name in found[0]["ratio"]:
        cells = (statistics.median(each[column][name] for each in found) for column in ("before", "after", "ratio"))
        print(f"| {name} | {' | '.join(f'{cell:,.2f}' for cell in cells)} |")


def _say(what: str) -> None:
    """Beside what is printed, for who waits."""
    print(what, file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.editions", description=__doc__)
    parser.add_argument("revision", help="what this one is compared with: a commit, as git understands it")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tasks", type=int, default=engine.TASKS, help="in each drain")
    parser.add_argument("--costs", action="store_true", help="what a task costs both editions, without bare Dramatiq")
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY", help="leave its environment here, or find it here")
    asked = parser.parse_args()
    found = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", f"{asked.revision}^{{commit}}"],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if found.returncode:
        parser.error(f"{asked.revision} is no commit of this repository")
    if asked.rounds < 1:
        parser.error("at least one round")
    asked.revision = found.stdout.strip()
    return asked


if __name__ == "__main__":
    main()
