"""An agent that takes more than it may, by itself or with all of its processes together, is ended for it."""

from pathlib import Path
from typing import Any

import pytest

from shared.errors import OutOfMemory, SubprocessFailed, TaskError
from shared.process_table import initial_environment, running_processes
from tests.agents_at_work import Attempt, finished, settings_for, skip_without_a_sandbox


def error_of(attempt: Attempt) -> TaskError:
    assert isinstance(attempt.failed, TaskError), attempt.failed
    return attempt.failed


def nothing_is_left_of(attempt: Attempt) -> bool:
    mark = f"WINDLASS_TASK_ID={attempt.context.task_id}".encode()
    return not any(mark in initial_environment(process.pid) for process in running_processes())


def test_one_process_that_wants_more_memory_than_it_may_have_is_refused_it(tmp_path: Path) -> None:
    attempt = finished(settings_for(tmp_path, limits={"memory_mb": 200}), do="hog", megabytes=1000)
    error = error_of(attempt)
    assert isinstance(error, OutOfMemory)
    assert error.message.startswith("agent unruly ran out of memory (its limit is 200 MB): Traceback")
    assert error.message.endswith("MemoryError")
    assert (error.details["limit"], error.details["exit_code"]) == ("memory_mb", 1)


def test_many_processes_that_have_too_much_together_are_ended(tmp_path: Path) -> None:
    attempt = finished(settings_for(tmp_path, limits={"memory_mb": 200}), do="hog", megabytes=100, processes=4)
    error = error_of(attempt)
    assert isinstance(error, OutOfMemory)
    proof = attempt.context.proof
    assert proof is not None
    assert (proof["reason"], {each["signal"] for each in proof["signals"]}) == ("memory_mb", {"SIGKILL"})
    assert nothing_is_left_of(attempt)


def test_memory_that_processes_share_is_counted_once(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, limits={"memory_mb": 250})
    attempt = finished(settings, do="share", megabytes=120, processes=4, seconds=0.6)
    assert attempt.result == {"shared": 120 * 2**20}


def test_who_fails_with_nearly_all_of_its_memory_used_has_run_out_of_it(tmp_path: Path) -> None:
    settings = settings_for(
        tmp_path,
        command=("/bin/sh", "-c", "head -c 95000000 /dev/zero | tail -c 95000000 >/dev/null; exit 3"),
        limits={"memory_mb": 100},
    )
    assert isinstance(error_of(finished(settings)), OutOfMemory)


def test_a_client_can_lower_a_limit(tmp_path: Path) -> None:
    attempt = finished(settings_for(tmp_path), limits={"memory_mb": 150}, do="hog", megabytes=1000)
    assert error_of(attempt).details["limit_value"] == 150


def test_cpu_time_is_limited_for_one_process_and_for_all_together(tmp_path: Path) -> None:
    for processes, ended_by in ((1, "SIGXCPU"), (3, "SIGKILL")):
        attempt = finished(settings_for(tmp_path, limits={"cpu_seconds": 1}), do="spin", processes=processes)
        error = error_of(attempt)
        assert isinstance(error, SubprocessFailed)
        assert error.message == "agent unruly used more than its cpu_seconds of 1"
        assert (error.details["signal"], error.details["limit"]) == (ended_by, "cpu_seconds")
        assert nothing_is_left_of(attempt)


def test_a_file_may_not_grow_beyond_its_limit(tmp_path: Path) -> None:
    attempt = finished(settings_for(tmp_path, limits={"file_mb": 2}), do="write_file", megabytes=5)
    assert isinstance(error_of(attempt), SubprocessFailed)
    assert attempt.context.exit_code != 0


@pytest.mark.parametrize("sandbox", ["off", "required"])
@pytest.mark.parametrize("sessions", [False, True])
def test_a_fork_bomb_is_ended_whole(tmp_path: Path, sandbox: str, sessions: bool) -> None:
    if sandbox == "required":
        skip_without_a_sandbox(tmp_path)
    settings = settings_for(tmp_path, limits={"processes": 20}, sandbox=sandbox)
    attempt = finished(settings, do="bomb", sessions=sessions)
    error: Any = error_of(attempt)
    assert isinstance(error, SubprocessFailed)
    assert error.message == "agent unruly used more than its processes of 20"
    assert nothing_is_left_of(attempt)
