"""Log lines: one JSON object each whatever is said, about the task that is handled, and with no secret in any."""

import json
import logging
import os
import pty
import re
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.installation import PROJECT
from windlass.services.actors.worker.calls import Calls
from windlass.shared import scrubbing
from windlass.shared.errors import words_of
from windlass.shared.process import log_context
from windlass.shared.process.log_lines import LONGEST_TEXT, JsonLines, TextLines

SECRET = "correct-horse-battery-staple"
TASK_ID = "01890000-0000-7000-8000-000000000000"


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError("no words")


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.fixture
def secret() -> Iterator[str]:
    scrubbing.learn([SECRET])
    yield SECRET
    scrubbing.learn([])


def record(message: object, *arguments: object, error: BaseException | None = None) -> logging.LogRecord:
    failure = None if error is None else (type(error), error, error.__traceback__)
    return logging.LogRecord("actors.media", logging.WARNING, __file__, 1, message, arguments, failure)


def line(message: object, *arguments: object, error: BaseException | None = None) -> dict[str, Any]:
    written = JsonLines("actors").format(record(message, *arguments, error=error))
    assert written.isascii()
    assert written.isprintable()
    assert len(written.splitlines()) == 1
    found: dict[str, Any] = json.loads(written)
    return found


def raised(error: Exception) -> Exception:
    def fail() -> None:
        raise error

    try:
        fail()
    except Exception as caught:  # noqa: BLE001 - whatever the test wants
        return caught
    raise AssertionError


def test_a_line_says_when_who_and_what() -> None:
    said = line("task %s: %d polls", TASK_ID, 3)
    assert said.pop("time").endswith("+00:00")
    assert said == {
        "level": "warning",
        "service": "actors",
        "logger": "actors.media",
        "message": f"task {TASK_ID}: 3 polls",
    }


@pytest.mark.parametrize("text", ['two\nlines\r\nand a "quote"', "\u2028\u2029\x85\x0b\x1c", "\x00\x1b[31m", "é…漢🙂"])
def test_whatever_a_message_holds_it_is_one_line_and_comes_back_as_it_was(text: str) -> None:
    assert line("said: %s", text)["message"] == f"said: {text}"


@settings(max_examples=50, deadline=None)
@given(st.text())
def test_any_text_is_one_line(text: str) -> None:
    line(text.replace("%", ""))
    line("said %r", text, error=raised(ValueError(text)))


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("half a character \udc80", ()),
        ("%s", (Unspeakable(),)),
        ("%d", ("no number",)),
        (Unspeakable(), ()),
        (b"x", ()),
    ],
)
def test_what_cannot_be_said_is_a_line_all_the_same(message: object, arguments: tuple[object, ...]) -> None:
    assert line(message, *arguments)["message"]


def test_a_message_without_end_is_cut_in_the_middle() -> None:
    said = line("begin" + "x" * 1_000_000 + "end")["message"]
    assert len(said) < LONGEST_TEXT + 100
    assert (said[:5], said[-3:]) == ("begin", "end")


def test_an_error_is_one_field_with_its_type_its_message_and_its_stack() -> None:
    error = line("it failed", error=raised(ValueError("no such\npicture")))["error"]
    assert (error["type"], error["message"]) == ("ValueError", "no such\npicture")
    assert error["stack"].startswith("Traceback")
    assert "in fail" in error["stack"]
    assert line("it failed", error=raised(UnspeakableError()))["error"]["type"] == "UnspeakableError"


def test_an_error_that_says_nothing_is_called_by_its_name() -> None:
    """An exception is true also when it is empty, and prints as "()" or as nothing."""
    assert [words_of(each) for each in (TimeoutError(), OSError("no room"))] == ["TimeoutError", "no room"]
    sources = [path for room in ("services", "shared", "windlass") for path in (PROJECT / room).rglob("*.py")]
    assert [path for path in sources if re.search(r"\berror or type\(", path.read_text())] == []


def test_no_field_has_a_secret(secret: str) -> None:
    error = raised(ConnectionError(f"cannot reach amqp://windlass:{secret}@10.0.0.1"))
    with log_context.about(worker=secret):
        written = JsonLines("actors").format(record(f"asked with {secret}\n%s", "Bearer abcdefgh1234", error=error))
    assert secret not in written
    assert "abcdefgh1234" not in written
    assert json.loads(written)["error"]["message"] == "cannot reach amqp://[scrubbed]@10.0.0.1"


def test_a_secret_at_the_cut_is_not_halved(secret: str) -> None:
    half = LONGEST_TEXT // 2
    said = line("x" * (half - 10) + secret + "y" * half)["message"]
    assert secret[:8] not in said


def test_every_line_is_about_what_is_handled_until_it_is_laid_down() -> None:
    try:
        log_context.of_this_process(worker="host-1-abc")
        log_context.take_up(task_id=TASK_ID, attempt=2, traceparent=f"00-{'a' * 32}-{'b' * 16}-01")
        said = line("polling")
        assert {name: said[name] for name in ("task_id", "attempt", "worker", "trace_id", "span_id")} == {
            "task_id": TASK_ID,
            "attempt": 2,
            "worker": "host-1-abc",
            "trace_id": "a" * 32,
            "span_id": "b" * 16,
        }
        with log_context.about(attempt=3, request_id="r"):
            assert (line("x")["task_id"], line("x")["attempt"], line("x")["request_id"]) == (TASK_ID, 3, "r")
        log_context.lay_down()
        assert line("x").keys() & {"task_id", "attempt", "trace_id", "request_id"} == set()
        assert line("x")["worker"] == "host-1-abc"
    finally:
        log_context.lay_down()
        log_context.of_this_process()


def test_a_call_that_runs_on_another_thread_s_loop_is_about_the_same_task() -> None:
    said: dict[str, Any] = {}

    async def request(name: str) -> None:
        said[name] = line("asking")

    calls = Calls(patience_seconds=60)
    calls.start()

    def attempt(task_id: str) -> None:
        log_context.take_up(task_id=task_id)
        calls.begin(request(task_id), on_end=lambda: None).wait(60)

    threads = [threading.Thread(target=attempt, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    calls.begin(request("none"), on_end=lambda: None).wait(60)
    calls.close()
    assert {name: line.get("task_id") for name, line in said.items()} == {"one": "one", "two": "two", "none": None}


def test_a_readable_line_names_the_task_or_the_request_unless_it_does_so_already() -> None:
    with log_context.about(task_id=TASK_ID, request_id="r-1"):
        silent = TextLines().format(record("polling", error=raised(ValueError("x"))))
        telling = TextLines().format(record("task %s: polling of r-1", TASK_ID))
    assert silent.splitlines()[0].endswith(f"WARNING actors.media: polling [task_id={TASK_ID}] [request_id=r-1]")
    assert telling.count(TASK_ID) == 1
    assert TextLines().format(record("polling")).endswith("actors.media: polling")


FORGED = "done\n12:00:00 INFO    api: all is well\r\x1b[2K\x1b[1A\x07\x9b2J\x85\u2028\u202ex"


def test_what_moves_a_cursor_is_escaped_in_json_and_not_lost() -> None:
    assert line("%s", f"{FORGED}\x7f")["message"] == f"{FORGED}\x7f"


def test_nobody_can_write_a_readable_line_of_his_own_or_move_the_cursor() -> None:
    (said,) = TextLines().format(record("agent said %s", FORGED)).splitlines()
    assert said.endswith(
        r"agent said done\n12:00:00 INFO    api: all is well\r\x1b[2K\x1b[1A\x07\x9b2J\x85\u2028\u202ex"
    )
    first, *others = TextLines().format(record("failed", error=raised(ValueError(FORGED)))).splitlines()
    assert first.endswith("actors.media: failed")
    assert all(other.startswith("  ") and other.isprintable() for other in others)
    assert any("all is well" in other for other in others), "it is told all the same"


@given(st.text())
def test_whatever_is_said_a_readable_line_is_one_line_that_can_be_printed(text: str) -> None:
    with log_context.about(request_id=text):
        written = TextLines().format(record("%s", text))
    assert len(written.splitlines()) == 1
    assert not any(unicodedata.category(each) == "Cc" for each in written)


TROUBLE = """
import sys, threading, warnings
from windlass.shared.process import logs
from windlass.shared.settings import Settings

class Fragile:
    def __del__(self):
        raise ValueError("in a destructor")

log = logs.start(Settings(), "api")
log.info("listening")
warnings.warn("old words")
thread = threading.Thread(target=lambda: 1 / 0)
thread.start()
thread.join()
Fragile()
raise KeyError("two\\nlines")
"""


def test_what_nobody_catches_is_told_as_every_other_line_where_it_is_collected() -> None:
    done = subprocess.run([sys.executable, "-c", TROUBLE], capture_output=True, text=True, check=False)
    lines = [json.loads(each) for each in done.stderr.splitlines()]
    assert done.returncode == 1
    assert [each["level"] for each in lines] == ["info", "warning", "critical", "error", "critical"]
    assert [each["error"]["type"] for each in lines[2:]] == ["ZeroDivisionError", "ValueError", "KeyError"]
    assert {each["service"] for each in lines} == {"api"}


@pytest.mark.parametrize("wanted", ["auto", "json"])
def test_on_a_terminal_lines_are_readable_unless_asked_otherwise(wanted: str) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "WINDLASS_LOG_FORMAT": wanted}
    command = [sys.executable, "-c", TROUBLE.partition("warnings.warn")[0]]
    subprocess.run(command, stderr=theirs, check=True, env=environment)
    os.close(theirs)
    said = os.read(ours, 10_000).decode()
    os.close(ours)
    assert said.startswith("{") == (wanted == "json")
    assert "listening" in said
