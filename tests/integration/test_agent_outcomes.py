"""How a real agent process ends, and what its task hears of it."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.support.agents_at_work import (
    LONG_ENOUGH_TO_LISTEN,
    Attempt,
    at_work,
    finished,
    settings_for,
    wait_until_said,
)
from tests.support.waiting import wait_until
from windlass.services.actors.subprocess.run import REST_SECONDS
from windlass.services.actors.worker.context.context import Context
from windlass.shared.errors import InvalidInput, SubprocessFailed, TaskError, TimedOut


def error_of(attempt_error: BaseException) -> TaskError:
    assert isinstance(attempt_error, TaskError), attempt_error
    return attempt_error


def let_its_time_run_out(attempt: Attempt) -> None:
    attempt.context.deadline = time.monotonic()


def test_it_is_given_its_order_a_private_directory_and_nothing_else(
    open_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET_OF_THE_WORKER", "hidden")
    settings = settings_for(open_path, env={"MODEL_KEY": "k1", "LANG": "de_DE.UTF-8"})
    attempt = finished(settings, do="tell", number=3)
    told = attempt.result
    task_id = str(attempt.context.task_id)
    assert told["order"] == {
        "task_id": task_id,
        "attempt": 1,
        "prompt": "Behave.",
        "system_prompt": None,
        "model": None,
        "params": {"do": "tell", "number": 3},
    }
    home = told["directory"]
    environment = told["environment"]
    assert environment.pop("LC_CTYPE", "C.UTF-8") == "C.UTF-8", "Python sets it by itself"
    assert environment == {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": home,
        "TMPDIR": f"{home}/tmp",
        "LANG": "de_DE.UTF-8",
        "MODEL_KEY": "k1",
        "WINDLASS_TASK_ID": task_id,
    }
    assert Path(home).is_relative_to(open_path / "data" / "agents")
    assert told["session"] == attempt.pids()[0] != os.getsid(0), "a session of its own"
    assert (attempt.context.exit_code, attempt.context.proof) == (0, None)
    wait_until("its directory is removed", lambda: not Path(home).exists())


def test_its_lines_stream_and_its_last_object_is_the_result(open_path: Path) -> None:
    attempt = finished(settings_for(open_path), do="print", text='one\n{"a": 1}\n{"b": 2}\nbye')
    assert attempt.result == {"b": 2}
    assert attempt.output.endswith('one\n{"a": 1}\n{"b": 2}\nbye')


LINES = 500


def test_lines_that_come_quickly_are_read_together_although_each_was_flushed_by_itself(
    open_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To be woken costs many times what a line does. A machine that is too busy to print quickly is read as slowly."""
    readings: list[str] = []
    output = Context.output

    def counted(context: Context, text: str, *, stream: str | None = None) -> None:
        readings.append(text)
        output(context, text, stream=stream)

    monkeypatch.setattr(Context, "output", counted)
    began = time.monotonic()
    attempt = finished(settings_for(open_path), do="drip", lines=LINES, pause=0.001)
    assert attempt.output.split()[-LINES:] == [str(number) for number in range(LINES)]
    assert len(readings) <= (time.monotonic() - began) / REST_SECONDS + 2, "more often than it should have rested"


def test_its_lines_on_stderr_stream_too_while_it_works(open_path: Path) -> None:
    script = "echo thinking; echo 'cannot see' >&2; read -r more < gate; echo '{\"a\": 1}'"
    settings = settings_for(open_path, command=("/bin/sh", "-c", f"mkfifo -m 666 gate; {script}"))
    with at_work(settings) as attempt:
        wait_until("both are heard", lambda: (attempt.heard("thinking\n") and attempt.stderr) or attempt.error)
        assert (attempt.said, attempt.stderr) == (["thinking\n"], ["cannot see\n"])
        (gate,) = (open_path / "data" / "agents").glob("*/*/gate")
        gate.write_text("go on\n")
    assert attempt.result == {"a": 1}


def test_its_last_words_are_read_although_our_turn_comes_when_the_time_for_them_is_over(
    open_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windlass.services.actors.agent.actor.DRAIN_SECONDS", -1)
    script = "i=0; while [ $i -lt 50 ]; do echo $i; i=$((i + 1)); done; echo '{\"said\": 50}'"
    for _ in range(5):
        attempt = finished(settings_for(open_path, command=("/bin/sh", "-c", script)))
        assert attempt.result == {"said": 50}


def test_what_it_remarks_about_its_work_is_progress_and_neither_output_nor_result(open_path: Path) -> None:
    text = '{"a": 1}\n{"progress": {"percent": 40, "message": "Reading"}}\n{"usage": {"cost_usd": 0.1}}\nbye\n'
    attempt = finished(settings_for(open_path), do="print", text=text)
    assert attempt.result == {"a": 1}
    assert attempt.output.endswith('\n{"a": 1}\nbye\n')
    assert attempt.progress == [(40, "Reading")]


def test_the_task_s_id_is_put_into_its_command(open_path: Path) -> None:
    settings = settings_for(open_path, command=("/bin/echo", "for {task_id}:", "{task_id}", "{other}"))
    attempt = finished(settings)
    task_id = attempt.context.task_id
    assert attempt.result == {"stdout": f"for {task_id}: {task_id} {{other}}\n"}


def test_without_an_object_what_it_printed_is_the_result(open_path: Path) -> None:
    attempt = finished(settings_for(open_path), do="print", text="just words\n")
    assert attempt.result["stdout"].endswith("just words\n")


def test_a_failed_exit_is_worth_another_attempt_and_says_what_it_said_last(open_path: Path) -> None:
    attempt = finished(settings_for(open_path), do="print", text="", exit=3, stderr="disk on fire\n")
    error = error_of(attempt.failed)
    assert isinstance(error, SubprocessFailed)
    assert error.message == "agent unruly ended with exit code 3: disk on fire"
    assert error.details == {"exit_code": 3, "stderr": "disk on fire\n"}
    assert attempt.context.exit_code == 3


def test_of_a_long_stderr_the_end_is_told(open_path: Path) -> None:
    attempt = finished(settings_for(open_path), do="print", text="", exit=1, stderr="noise\n" * 20_000 + "the reason")
    error = error_of(attempt.failed)
    assert error.message.endswith("the reason")
    assert len(error.details["stderr"]) == 8192


def test_a_signal_is_named(open_path: Path) -> None:
    attempt = finished(settings_for(open_path), do="print", text="", signal=signal.SIGSEGV)
    error = error_of(attempt.failed)
    assert isinstance(error, SubprocessFailed)
    assert error.message == "agent unruly was ended by SIGSEGV"
    assert (error.details["signal"], attempt.context.exit_code) == ("SIGSEGV", 128 + signal.SIGSEGV)


def test_an_exit_code_that_the_operator_calls_permanent_is_not_tried_again(open_path: Path) -> None:
    settings = settings_for(open_path, permanent_exit_codes=(64, 65))
    permanent = error_of(finished(settings, do="print", text="", exit=65, stderr="bad prompt").failed)
    assert isinstance(permanent, InvalidInput)
    assert permanent.message == "agent unruly gave up with exit code 65: bad prompt"
    assert isinstance(finished(settings, do="print", text="", exit=66).failed, SubprocessFailed)


@pytest.mark.parametrize("exit_code", [0, 1])
def test_an_agent_can_say_itself_that_trying_again_is_pointless(open_path: Path, exit_code: int) -> None:
    text = '{"error": {"kind": "permanent", "message": "no such book"}}\n'
    error = error_of(finished(settings_for(open_path), do="print", text=text, exit=exit_code).failed)
    assert isinstance(error, InvalidInput)
    assert error.message == "no such book"


def test_an_agent_can_say_itself_that_it_failed_for_now(open_path: Path) -> None:
    text = '{"error": {"kind": "transient", "message": "busy"}}\n'
    assert isinstance(finished(settings_for(open_path), do="print", text=text).failed, SubprocessFailed)


def test_what_has_an_error_of_its_own_kind_is_a_result(open_path: Path) -> None:
    attempt = finished(settings_for(open_path), do="print", text='{"error": "margin", "value": 0.1}\n')
    assert attempt.result == {"error": "margin", "value": 0.1}


def test_out_of_time_it_is_ended_and_its_words_are_kept(open_path: Path) -> None:
    with at_work(settings_for(open_path, grace_seconds=LONG_ENOUGH_TO_LISTEN), timeout=240, do="sleep") as attempt:
        wait_until_said(attempt, "ready")
        let_its_time_run_out(attempt)
    error = error_of(attempt.failed)
    assert isinstance(error, TimedOut)
    assert error.message == "agent unruly took longer than its 240 s"
    assert attempt.output.endswith("ready\ngood-bye\n"), "also what it said after the TERM"
    proof = attempt.context.proof
    assert proof is not None
    assert (proof["reason"], proof["agent"]) == ("timed out", attempt.pids()[0])
    assert [each["signal"] for each in proof["signals"]] == ["SIGTERM"]
    assert attempt.context.exit_code == 7


def test_one_that_does_not_read_its_order_to_the_end_does_not_hold_it_up(open_path: Path) -> None:
    settings = settings_for(open_path, command=("/bin/sh", "-c", "head -c 20000 >/dev/null; echo read; exec sleep 600"))
    with at_work(settings, padding="x" * 1_000_000) as attempt:
        wait_until_said(attempt, "read\n")
        let_its_time_run_out(attempt)
    assert isinstance(attempt.failed, TimedOut)
    assert attempt.output == "read\n"


def test_one_that_closes_its_pipes_and_lives_on_is_waited_for(open_path: Path) -> None:
    attempt = finished(settings_for(open_path), do="mute", seconds=0.4, exit=5)
    assert isinstance(attempt.failed, SubprocessFailed)
    assert attempt.context.exit_code == 5


def test_a_flood_is_read_to_its_end_in_bounded_memory(open_path: Path) -> None:
    before = largest_resident_kb()
    for endless in (False, True):
        attempt = finished(settings_for(open_path), do="flood", megabytes=100, endless=endless)
        assert attempt.result == {"printed": 100}
        assert attempt.said[-1] == "[cut off]\n"
        assert 9_000_000 < len(attempt.output) < 10_100_000
    assert largest_resident_kb() - before < 70_000


def test_a_program_that_is_not_there_is_named(open_path: Path) -> None:
    settings = settings_for(open_path, command=("no-such-agent",))
    error = error_of(finished(settings, do="tell").failed)
    assert isinstance(error, InvalidInput)
    assert error.message == "agent unruly cannot be started: there is no program no-such-agent"


def test_a_program_that_cannot_be_run_says_why(open_path: Path) -> None:
    program = open_path / "nonsense"
    program.write_bytes(b"\x7fELF nonsense")
    program.chmod(0o755)
    error = error_of(finished(settings_for(open_path, command=(str(program),)), do="tell").failed)
    assert isinstance(error, SubprocessFailed)
    assert "could not be started: OSError: [Errno 8] Exec format error" in error.message


def largest_resident_kb() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise AssertionError
