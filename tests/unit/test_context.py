"""What an actor is given: a way to report that coalesces, and a way to learn that it should end."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from windlass.services.actors.worker.attempts import Attempts
from windlass.services.actors.worker.context.context import Context, Stopped
from windlass.services.actors.worker.context.unreported_output import MOST_STRETCHES
from windlass.services.actors.worker.ending.results import fitting
from windlass.services.actors.worker.ending.retries import ending_of_failure
from windlass.shared.db import as_json
from windlass.shared.errors import InvalidInput, ResultTooDeep, ResultTooLarge, TimedOut
from windlass.shared.settings import Settings
from windlass.shared.store.tasks import Claimed

TASK = Claimed(
    task_id=UUID(int=1),
    claim_token=UUID(int=2),
    actor="probe",
    provider="probe",
    payload={},
    checkpoint={"page": 3},
    attempt=2,
    retry_count=0,
    max_retries=3,
    interrupt_count=0,
    stall_count=0,
    rate_limited_count=0,
    timeout_seconds=300,
)


def context_of(task: Claimed = TASK) -> Context:
    return Context(task, "worker-1", on_report=lambda _: None)


def test_who_said_nothing_has_nothing_to_report() -> None:
    assert context_of().take_report() is None


def test_only_the_latest_progress_is_reported() -> None:
    context = context_of()
    for step in range(1, 6):
        context.progress(f"Step {step}", percent=20.0 * step)
    report = context.take_report()
    assert report is not None
    assert report.progress is not None
    assert (report.progress["message"], report.progress["percent"]) == ("Step 5", 100)
    assert [event["type"] for event in report.events] == ["progress"]
    assert report.events[0]["data"] == {"status": "running", "progress": report.progress}


def test_pieces_of_output_are_joined_in_order() -> None:
    context = context_of()
    for piece in ("one ", "two ", "three"):
        context.output(piece)
    report = context.take_report()
    assert report is not None
    assert report.events == [{"type": "output", "data": {"text": "one two three"}}]
    assert report.progress is None


def test_only_the_latest_checkpoint_is_kept_and_makes_no_event() -> None:
    context = context_of()
    context.save({"page": 4})
    context.save({"page": 5})
    report = context.take_report()
    assert report is not None
    assert (report.checkpoint, report.events) == ({"page": 5}, [])


def test_a_report_has_what_was_spent_since_the_one_before() -> None:
    context = context_of()
    context.usage(cost_usd=0.1, prompt_tokens=3)
    context.usage(cost_usd=0.2)
    first = context.take_report()
    assert first is not None
    assert (first.usage, first.events, context.spent) == ({"cost_usd": 0.3, "prompt_tokens": 3}, [], None)
    context.usage(completion_tokens=4)
    assert context.spent == {"completion_tokens": 4}


def test_taking_the_report_empties_it() -> None:
    context = context_of()
    context.progress("half way", percent=50)
    context.output("text")
    context.save(1)
    assert context.take_report() is not None
    assert context.take_report() is None


def test_a_report_names_the_attempt_that_it_comes_from() -> None:
    context = context_of()
    context.output("text")
    report = context.take_report()
    assert report is not None
    assert (report.task_id, report.attempt, report.claim_token) == (UUID(int=1), 2, UUID(int=2))


def test_nothing_that_threads_say_while_it_is_being_taken_is_lost() -> None:
    context = context_of()

    def speak() -> None:
        for number in range(3000):
            context.output(f"{number} ")

    speaker = threading.Thread(target=speak)
    speaker.start()
    heard = ""
    speaking = True
    while speaking:
        speaking = speaker.is_alive()
        if report := context.take_report():
            heard += report.events[0]["data"]["text"]
    assert heard.split() == [str(number) for number in range(3000)]


def test_reports_are_numbered_so_that_one_that_is_written_again_is_known() -> None:
    context = context_of()
    numbers = []
    for _ in range(3):
        context.output("text")
        report = context.take_report()
        assert report is not None
        numbers.append(report.number)
    assert numbers == [1, 2, 3]


LINES = 10_000


def test_ten_thousand_lines_wake_the_writer_once_for_each_report() -> None:
    woken: list[Context] = []
    context = Context(TASK, "worker-1", on_report=woken.append)
    for report in range(1, 4):
        for number in range(LINES):
            context.output(f"{number}\n")
        assert woken == [context] * report
        assert context.take_report() is not None


@pytest.mark.parametrize(
    "say",
    [
        lambda context: context.progress("half way"),
        lambda context: context.output("text"),
        lambda context: context.usage(cost_usd=0.1),
        lambda context: context.save(1),
    ],
    ids=["progress", "output", "usage", "save"],
)
def test_every_kind_of_word_wakes_the_writer(say: Callable[[Context], None]) -> None:
    woken: list[Context] = []
    context = Context(TASK, "worker-1", on_report=woken.append)
    say(context)
    assert woken == [context]


def test_what_is_dropped_wakes_nobody() -> None:
    woken: list[Context] = []
    context = Context(TASK, "worker-1", on_report=woken.append, largest_output_bytes=10)
    context.output("more than ten bytes")
    assert context.take_report() is not None, "the marker"
    context.output("still more")
    assert woken == [context]


def test_what_an_earlier_attempt_saved_is_there() -> None:
    assert context_of().checkpoint == {"page": 3}


def test_who_is_told_to_stop_stops() -> None:
    context = context_of()
    context.check()
    context.stop()
    with pytest.raises(Stopped):
        context.check()
    with pytest.raises(Stopped):
        context.sleep(60)


def test_a_stop_ends_a_sleep_at_once() -> None:
    context = context_of()
    threading.Timer(0.02, context.stop).start()
    began = time.monotonic()
    with pytest.raises(Stopped):
        context.sleep(600)
    assert time.monotonic() - began < 60


def test_a_stop_is_no_exception_that_an_actor_could_swallow_by_mistake() -> None:
    assert not issubclass(Stopped, Exception)


def test_past_its_deadline_an_attempt_has_timed_out() -> None:
    context = context_of(replace(TASK, timeout_seconds=0.01))
    context.begin()
    with pytest.raises(TimedOut, match=r"0\.01 s"):
        context.sleep(60)
    with pytest.raises(TimedOut):
        context.check()


def test_the_time_runs_from_the_beginning_of_the_work_not_from_the_claim() -> None:
    context = context_of(replace(TASK, timeout_seconds=0.001))
    time.sleep(0.002)
    context.check()


def test_a_sleep_that_ends_in_time_returns() -> None:
    context = context_of()
    context.begin()
    began = time.monotonic()
    context.sleep(0.03)
    assert time.monotonic() - began >= 0.03


def test_a_stop_reaches_the_attempt_that_is_meant() -> None:
    attempts = Attempts()
    one, other = context_of(), context_of(replace(TASK, claim_token=UUID(int=9)))
    attempts.add(one)
    attempts.add(other)
    attempts.stop(other.task.claim_token)
    one.check()
    with pytest.raises(Stopped):
        other.check()


def test_an_attempt_is_deaf_once_it_has_ignored_a_stop_for_longer_than_the_grace() -> None:
    attempts = Attempts()
    context = context_of()
    attempts.add(context)
    assert attempts.deaf(0) == [], "nobody has asked it yet"
    attempts.stop(context.task.claim_token)
    assert attempts.deaf(60) == []
    time.sleep(0.001)
    assert attempts.deaf(0) == [context]
    attempts.remove(context)
    assert attempts.deaf(0) == []


def test_an_attempt_that_only_waits_for_its_end_to_be_written_is_not_deaf() -> None:
    attempts = Attempts()
    context = context_of()
    attempts.add(context)
    attempts.stop(context.task.claim_token)
    context.is_over = True
    time.sleep(0.001)
    assert attempts.deaf(0) == []
    assert not attempts.any_work()


def test_an_attempt_is_deaf_once_it_has_ignored_its_deadline_for_longer_than_the_grace() -> None:
    attempts = Attempts()
    context = context_of(replace(TASK, timeout_seconds=0.001))
    attempts.add(context)
    context.begin()
    time.sleep(0.002)
    assert attempts.deaf(60) == []
    assert attempts.deaf(0) == [context]


def test_the_leases_to_renew_are_those_of_the_attempts_that_are_here() -> None:
    attempts = Attempts()
    context = context_of()
    attempts.add(context)
    assert attempts.leases() == {UUID(int=2): UUID(int=1)}
    attempts.remove(context)
    assert attempts.leases() == {}
    assert len(attempts) == 0


def test_output_past_the_cap_is_dropped_and_marked_once() -> None:
    context = Context(TASK, "worker-1", on_report=lambda _context: None, largest_output_bytes=10)
    context.output("12345")
    context.output("äöü")  # six bytes
    context.output("x")
    report = context.take_report()
    assert report is not None
    marker = {"output_cut_off": True, "limit_bytes": 10}
    assert [event["data"] for event in report.events] == [{"text": "12345"}, {"data": marker}]
    context.output("more")
    assert context.take_report() is None


def test_output_up_to_the_cap_is_kept_whole() -> None:
    context = Context(TASK, "worker-1", on_report=lambda _context: None, largest_output_bytes=10)
    context.output("12345")
    context.output("67890")
    report = context.take_report()
    assert report is not None
    assert [event["data"] for event in report.events] == [{"text": "1234567890"}]


class Page(BaseModel):
    number: int


def test_a_result_may_be_as_large_as_the_cap_and_no_larger() -> None:
    settings = Settings(largest_result_bytes=1000)
    assert fitting("x" * 998, settings) == "x" * 998
    assert fitting([Page(number=1)], settings) == [{"number": 1}]
    with pytest.raises(ResultTooLarge, match="1,001 bytes"):
        fitting("x" * 999, settings)


@pytest.mark.parametrize("innermost", ["x", "\0", "\ud800"])
def test_a_result_may_be_nested_as_deep_as_the_cap_and_no_deeper(innermost: str) -> None:
    settings = Settings(deepest_json=64)
    assert fitting(nested(innermost, 64), settings) == nested("x" if innermost == "x" else "\ufffd", 64)
    for levels in (65, 100_000):
        with pytest.raises(ResultTooDeep, match="more than 64 levels"):
            fitting(nested(innermost, levels), settings)


def nested(value: Any, levels: int) -> Any:
    for level in range(levels):
        value = [value] if level % 2 else {"in": value}
    return value


def test_what_postgres_cannot_keep_of_a_report_is_replaced() -> None:
    context = context_of()
    context.progress("a\0b")
    context.output("c\ud800d")
    context.output("e\0", stream="stderr")
    context.save({"f\udfff": ["\0"]})
    report = context.take_report()
    assert report is not None
    assert report.progress is not None
    assert report.progress["message"] == "a\ufffdb"
    assert [event["data"].get("text") for event in report.events] == ["c\ufffdd", "e\ufffd", None]
    assert report.checkpoint == {"f\ufffd": ["\ufffd"]}


def test_what_postgres_cannot_keep_of_an_error_is_replaced() -> None:
    ending = ending_of_failure(TASK, InvalidInput("no \ud800", stderr="\0"))
    assert ending.error is not None
    assert (ending.error["message"], ending.error["details"]) == ("no \ufffd", {"stderr": "\ufffd"})
    assert as_json(ending.error)


def test_streams_are_told_apart_in_the_order_in_which_they_spoke() -> None:
    context = context_of()
    for piece in ("one\n", "two\n"):
        context.output(piece)
    context.output("oops\n", stream="stderr")
    context.output("three\n")
    report = context.take_report()
    assert report is not None
    assert [event["data"] for event in report.events] == [
        {"text": "one\ntwo\n"},
        {"text": "oops\n", "stream": "stderr"},
        {"text": "three\n"},
    ]


def test_streams_that_take_turns_quickly_make_few_events_and_lose_nothing() -> None:
    context = context_of()
    for number in range(1000):
        context.output(f"{number}\n", stream="stderr" if number % 2 else None)
    report = context.take_report()
    assert report is not None
    assert len(report.events) == MOST_STRETCHES
    said = "".join(event["data"]["text"] for event in report.events if "stream" not in event["data"])
    assert said.split() == [str(number) for number in range(0, 1000, 2)]
