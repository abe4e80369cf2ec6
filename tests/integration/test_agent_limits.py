"""An agent that takes more than it may, by itself or with all of its processes together, is ended for it."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.agents_at_work import Attempt, finished, settings_for, skip_without_a_sandbox
from windlass.shared.errors import OutOfMemory, SubprocessFailed, TaskError
from windlass.shared.process.procfs import initial_environment, running_processes


def error_of(attempt: Attempt) -> TaskError:
    assert isinstance(attempt.failed, TaskError), attempt.failed
    return attempt.failed


def nothing_is_left_of(attempt: Attempt) -> bool:
    mark = f"WINDLASS_TASK_ID={attempt.context.task_id}".encode()
    return not any(mark in initial_environment(process.pid) for process in running_processes())


def test_one_process_that_wants_more_memory_than_it_may_have_is_refused_it(open_path: Path) -> None:
    attempt = finished(settings_for(open_path, limits={"memory_mb": 200}), do="hog", megabytes_at_once=1000)
    error = error_of(attempt)
    assert isinstance(error, OutOfMemory)
    assert error.message.startswith("agent unruly ran out of memory (its limit is 200 MB): Traceback")
    assert error.message.endswith("MemoryError")
    assert (error.details["limit"], error.details["exit_code"]) == ("memory_mb", 1)


def test_many_processes_that_have_too_much_together_are_ended(open_path: Path) -> None:
    attempt = finished(settings_for(open_path, limits={"memory_mb": 200}), do="hog", megabytes=100, processes=4)
    error = error_of(attempt)
    assert isinstance(error, OutOfMemory)
    proof = attempt.context.proof
    assert proof is not None
    assert (proof["reason"], {each["signal"] for each in proof["signals"]}) == ("memory_mb", {"SIGKILL"})
    assert nothing_is_left_of(attempt)


def test_memory_that_processes_share_is_counted_once(open_path: Path) -> None:
    settings = settings_for(open_path, limits={"memory_mb": 250})
    attempt = finished(settings, do="share", megabytes=120, processes=4, seconds=0.6)
    assert attempt.result == {"shared": 120 * 2**20}


@pytest.mark.parametrize("sandbox", ["off", "required"])
def test_shared_memory_counts_while_it_is_mapped(open_path: Path, sandbox: str) -> None:
    if sandbox == "required":
        skip_without_a_sandbox(open_path)
    settings = settings_for(open_path, limits={"memory_mb": 200}, sandbox=sandbox)
    error = error_of(finished(settings, do="give_back_shared_memory", megabytes=300))
    assert isinstance(error, OutOfMemory)
    kept = finished(settings, do="give_back_shared_memory", megabytes=100, seconds=0.5)
    assert kept.result == {"still": ord("x"), "others": 0}, "it was there all the time"


def test_shared_memory_counts_behind_any_number_of_other_mappings(open_path: Path) -> None:
    settings = settings_for(open_path, limits={"memory_mb": 200})
    given_back = finished(settings, do="give_back_shared_memory", megabytes=300, other_mappings=2_000, seconds=5)
    assert isinstance(given_back.failed, OutOfMemory), given_back.result


def test_memory_that_no_process_shows_is_refused_in_a_sandbox(open_path: Path) -> None:
    skip_without_a_sandbox(open_path)
    settings = settings_for(open_path, limits={"memory_mb": 60}, sandbox="required")
    assert finished(settings, do="hide_memory", megabytes=50).result == {"memfd": "ENOSYS", "segment": "ENOSYS"}


def test_who_fails_with_nearly_all_of_its_memory_used_has_run_out_of_it(open_path: Path) -> None:
    settings = settings_for(
        open_path,
        command=("/bin/sh", "-c", "head -c 95000000 /dev/zero | tail -c 95000000 >/dev/null; exit 3"),
        limits={"memory_mb": 100},
    )
    assert isinstance(error_of(finished(settings)), OutOfMemory)


def test_a_client_can_lower_a_limit(open_path: Path) -> None:
    attempt = finished(settings_for(open_path), limits={"memory_mb": 150}, do="hog", megabytes=1000)
    assert error_of(attempt).details["limit_value"] == 150


def test_cpu_time_is_limited_for_one_process_and_for_all_together(open_path: Path) -> None:
    for processes, each, ended_by in ((1, 600, "SIGXCPU"), (3, 0.7, "SIGKILL")):
        settings = settings_for(open_path, limits={"cpu_seconds": 1})
        attempt = finished(settings, do="spin", processes=processes, cpu_seconds_each=each)
        error = error_of(attempt)
        assert isinstance(error, SubprocessFailed)
        assert error.message == "agent unruly used more than its cpu_seconds of 1"
        assert (error.details["signal"], error.details["limit"]) == (ended_by, "cpu_seconds")
        assert nothing_is_left_of(attempt)


def test_a_file_may_not_grow_beyond_its_limit(open_path: Path) -> None:
    attempt = finished(settings_for(open_path, limits={"file_mb": 2}), do="write_file", megabytes=5)
    assert isinstance(error_of(attempt), SubprocessFailed)
    assert attempt.context.exit_code != 0


@pytest.mark.parametrize("sandbox", ["off", "required"])
@pytest.mark.parametrize("seconds", [0, 600], ids=["gone at once", "still there"])
def test_all_files_together_may_not_grow_beyond_the_limit_of_one(open_path: Path, sandbox: str, seconds: float) -> None:
    if sandbox == "required":
        skip_without_a_sandbox(open_path)
    settings = settings_for(open_path, limits={"file_mb": 8}, sandbox=sandbox)
    error = error_of(finished(settings, do="litter", megabytes=20, seconds=seconds))
    assert isinstance(error, SubprocessFailed)
    assert error.message == "agent unruly used more than its file_mb of 8"
    assert (error.details["limit"], error.details["limit_value"]) == ("file_mb", 8)


def test_what_stays_within_the_limit_is_let_be(open_path: Path) -> None:
    attempt = finished(settings_for(open_path, limits={"file_mb": 8}), do="litter", megabytes=6)
    assert (attempt.error, attempt.context.exit_code) == (None, 0)


def test_the_number_of_files_is_limited(open_path: Path) -> None:
    error = error_of(finished(settings_for(open_path, limits={"files": 50}), do="scatter", files=100))
    assert error.message == "agent unruly used more than its files of 50"


@pytest.mark.parametrize("sandbox", ["off", "required"])
@pytest.mark.parametrize("sessions", [False, True])
def test_a_fork_bomb_is_ended_whole(open_path: Path, sandbox: str, sessions: bool) -> None:
    if sandbox == "required":
        skip_without_a_sandbox(open_path)
    settings = settings_for(open_path, limits={"processes": 20}, sandbox=sandbox)
    attempt = finished(settings, do="bomb", sessions=sessions)
    error: Any = error_of(attempt)
    assert isinstance(error, SubprocessFailed)
    assert error.message == "agent unruly used more than its processes of 20"
    assert nothing_is_left_of(attempt)
