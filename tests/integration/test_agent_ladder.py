"""Told to stop, an agent is gone with everything that it ever started, and only then does its attempt end."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents_at_work import (
    LONG_ENOUGH_TO_LISTEN,
    Attempt,
    alive,
    at_work,
    finished,
    identities,
    settings_for,
    skip_without_a_sandbox,
    wait_until_said,
)
from tests.support.installation import PROJECT, leash
from tests.support.waiting import wait_until
from windlass.services.actors.worker.context.context import Stopped
from windlass.shared.process.procfs import descendants, direct_children


def signals_in(attempt: Attempt) -> dict[str, set[int]]:
    proof: Any = attempt.context.proof
    assert proof["none_left_at"] > max(each["at"] for each in proof["signals"])
    return {
        name: {pid for each in proof["signals"] if each["signal"] == name for pid in each["pids"]}
        for name in {each["signal"] for each in proof["signals"]}
    }


def test_one_that_listens_gets_no_more_than_a_term(open_path: Path) -> None:
    with at_work(settings_for(open_path, grace_seconds=LONG_ENOUGH_TO_LISTEN), do="sleep") as attempt:
        wait_until_said(attempt, "ready")
        attempt.context.stop("cancelled")
    assert isinstance(attempt.failed, Stopped)
    assert attempt.output.endswith("good-bye\n")
    assert signals_in(attempt) == {"SIGTERM": set(attempt.pids())}
    assert attempt.context.exit_code == 7


def test_children_that_ignore_term_and_daemons_that_have_left_are_killed(open_path: Path) -> None:
    children = ["stubborn", "daemon", "daemon"]
    with at_work(settings_for(open_path), do="sleep", stubborn=True, children=children) as attempt:
        wait_until_said(attempt, "ready")
        everyone = identities(attempt.pids())
        assert len(everyone) == 4
        began = time.monotonic()
        attempt.context.stop("cancelled")
    assert time.monotonic() - began > 0.4, "the grace"
    assert alive(everyone) == []
    told = signals_in(attempt)
    assert told["SIGTERM"] == told["SIGKILL"] == set(attempt.pids())


def test_what_it_leaves_behind_when_it_ends_by_itself_is_ended_too(open_path: Path) -> None:
    attempt = finished(settings_for(open_path), do="leave", children=["daemon"])
    assert attempt.result == {"left": True}
    assert alive_numbers(attempt) == []
    assert signals_in(attempt)["SIGKILL"] == set(attempt.pids()[1:])
    proof: Any = attempt.context.proof
    assert proof["reason"] == "ended by itself and left processes behind"


def test_a_sandbox_takes_everything_in_it_along_and_the_agent_hears_the_term_first(open_path: Path) -> None:
    skip_without_a_sandbox(open_path)
    settings = settings_for(open_path, grace_seconds=LONG_ENOUGH_TO_LISTEN, sandbox="required")
    with at_work(settings, do="sleep", children=["stubborn", "daemon"]) as attempt:
        wait_until_said(attempt, "ready")
        attempt.context.stop("cancelled")
    assert attempt.output.endswith("good-bye\n")
    assert attempt.context.exit_code == 7
    told = signals_in(attempt)
    assert len(told["SIGTERM"]) >= 3
    assert [pid for pids in told.values() for pid in pids if Path(f"/proc/{pid}").exists()] == []


def test_a_stubborn_agent_in_a_sandbox_is_killed(open_path: Path) -> None:
    skip_without_a_sandbox(open_path)
    with at_work(settings_for(open_path, sandbox="required"), do="sleep", stubborn=True) as attempt:
        wait_until_said(attempt, "ready")
        attempt.context.stop("cancelled")
    assert attempt.context.exit_code == 137
    assert "SIGKILL" in signals_in(attempt)


def test_one_that_has_frozen_its_keeper_is_ended_all_the_same(open_path: Path) -> None:
    with at_work(settings_for(open_path), do="sleep") as attempt:
        wait_until_said(attempt, "ready")
        os.kill(keeper_of(attempt), signal.SIGSTOP)  # as it can itself where root does not run it
        attempt.context.stop("cancelled")
    assert isinstance(attempt.failed, Stopped)
    assert alive_numbers(attempt) == []


def test_several_are_stopped_side_by_side_without_harming_each_other(open_path: Path) -> None:
    settings = settings_for(open_path)
    with at_work(settings, do="sleep", seconds=1.5) as bystander, at_work(settings, do="sleep") as attempt:
        wait_until_said(attempt, "ready")
        attempt.context.stop("cancelled")
    assert isinstance(attempt.failed, Stopped)
    assert bystander.result == {"slept": True}


def test_a_stop_that_comes_before_it_has_begun_is_heard(open_path: Path) -> None:
    with at_work(settings_for(open_path), do="sleep", stubborn=True) as attempt:
        attempt.context.stop("stopping")
    assert isinstance(attempt.failed, Stopped)


WORKER = """
import sys
from pathlib import Path
from tests.support.agents_at_work import finished, settings_for
finished(settings_for(Path(sys.argv[1]), sandbox=sys.argv[2]), do="sleep", children=["stubborn", "daemon"])
"""


@pytest.mark.parametrize(("sandbox", "number"), [("required", 6), ("off", 4)])
def test_nothing_outlives_a_worker_that_is_killed_even_where_no_guardian_is_left(
    open_path: Path, sandbox: str, number: int
) -> None:
    """A keeper, bubblewrap's two where there is a sandbox, and the agent with its two."""
    if sandbox == "required":
        skip_without_a_sandbox(open_path)
    with subprocess.Popen([*leash(), sys.executable, "-c", WORKER, str(open_path), sandbox], cwd=PROJECT) as worker:
        wait_until("all of them run", lambda: len(alive(descendants(worker.pid))) == number)
        below = descendants(worker.pid)
        worker.kill()
    wait_until("nothing of them runs", lambda: alive(below) == [])


def keeper_of(attempt: Attempt) -> int:
    (keeper,) = [each.pid for each in direct_children(os.getpid()) if attempt.pids()[0] in below(each.pid)]
    return keeper


def below(pid: int) -> list[int]:
    return [each.pid for each in descendants(pid)]


def alive_numbers(attempt: Attempt) -> list[int]:
    return [pid for pid in attempt.pids() if Path(f"/proc/{pid}").exists()]
