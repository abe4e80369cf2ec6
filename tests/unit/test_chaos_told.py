"""The judge of webhooks, schedules and memory is judged: a run that is right, and runs that are wrong in one thing."""

from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.judge.checker import judge_told
from tests.chaos.judge.rows import Rows
from tests.chaos.memory.rows import AgentEventRow, HandledRow, MemoryRows
from tests.chaos.record import Fault, Record
from tests.chaos.schedules.record import Call as ScheduleCall
from tests.chaos.schedules.rows import Rule, RunRow, ScheduleRow, ScheduleRows
from tests.chaos.webhooks.record import Call
from tests.chaos.webhooks.rows import DeliveryRow, Entry, Release, Subscribed, WebhookRows
from tests.support.chaos_stories import a_task, rows_of

NOTHING = rows_of()
MOVE = Subscribed("endpoint", "a", 3, 1, "task.completed", 100.0)
DELIVERY = DeliveryRow("d1", "endpoint", "task.completed", "a", 1, 3, "delivered", None, "carrier", 1, "{}")
ENTRY = Entry(101.0, "/steady-0", "d1", 200, "{}")
TWICE = {"deliveries": [DELIVERY, replace(DELIVERY, delivery_id="d2")], "entries": [ENTRY, replace(ENTRY, id="d2")]}
TOLD = WebhookRows([MOVE], frozenset({("endpoint", "a", 3)}), [DELIVERY], [ENTRY])


def wrong(record: Record | None = None, rows: Rows = NOTHING, **told: Any) -> set[int]:
    return {violation.criterion for violation in judge_told(record or Record(), rows, **told)}


def test_a_delivery_that_came_is_right() -> None:
    assert wrong(webhooks=TOLD) == set()


@pytest.mark.parametrize(
    ("changed", "criterion"),
    [
        ({"deliveries": (), "entries": ()}, 17),
        (TWICE, 17),
        ({"deliveries": [replace(DELIVERY, life=2)]}, 17),
        ({"entries": [replace(ENTRY, status=500)]}, 17),
        ({"deliveries": [replace(DELIVERY, state="failed")]}, 17),
        ({"deliveries": [replace(DELIVERY, state="waiting")]}, 17),
        ({"entries": [ENTRY, replace(ENTRY, status=401)]}, 18),
        ({"entries": [ENTRY, replace(ENTRY, raw="{ }")]}, 18),
        ({"entries": [ENTRY, replace(ENTRY, id="unknown")]}, 18),
        ({"subscribed": (), "surmised": frozenset()}, 18),
    ],
)  # fmt: skip
def test_a_delivery_that_is_missing_or_came_wrongly_is_found(changed: dict[str, Any], criterion: int) -> None:
    assert wrong(webhooks=replace(TOLD, **changed)) == {criterion}


def test_what_failed_says_why_and_what_is_held_waits_at_no_enabled_endpoint() -> None:
    failed = replace(DELIVERY, state="failed", reason="deleted")
    held = replace(DELIVERY, state="waiting", endpoint="disabled")
    for delivery in (failed, held):
        assert wrong(webhooks=replace(TOLD, deliveries=[delivery], entries=())) == set()


def test_nobody_knows_a_secret_whose_answer_was_lost() -> None:
    unverified = replace(TOLD, entries=[ENTRY, replace(ENTRY, status=401)])
    record = Record()
    record.webhooks.calls.append(Call("rotate", "endpoint", 100.5, 102.0, 200, lost=1))
    assert wrong(record, webhooks=unverified) == set()


@pytest.mark.parametrize(("order", "found"), [("0123", set()), ("1032", set()), ("2013", {18})])
def test_what_was_released_is_begun_in_order_two_at_once(order: str, found: set[int]) -> None:
    releases = [Release(f"d{each}", "endpoint", 100.0, 101.0 + place, True) for place, each in enumerate(order)]
    record = Record()
    record.webhooks.calls.append(Call("enable", "endpoint", 99.0, 100.5, 200))
    assert wrong(record, webhooks=WebhookRows(releases=releases)) == found
    record.faults.append(Fault(1, "a worker was killed", 101, 102))
    assert wrong(record, webhooks=WebhookRows(releases=releases)) == set(), "nobody promises it then"


SCHEDULE = ScheduleRow("s", "active", 130.0, None)
RUNS = [RunRow(110, "started", "time", "t1"), RunRow(120, "skipped", "time", None), RunRow(130, "missed", "time", None)]
SCHEDULES = ScheduleRows([SCHEDULE], {"s": [Rule(10, 100, 100)]}, {"s": RUNS}, [("s", "t1")])


def test_a_schedule_whose_times_all_have_their_rows_is_right() -> None:
    assert wrong(schedules=SCHEDULES) == set()
    asked = Record()
    asked.schedules.calls.append(ScheduleCall("delete", "s", 135.0, 136.0, 204))
    deleted = replace(SCHEDULES, schedules=[replace(SCHEDULE, deleted_at=135.5)])
    assert wrong(asked, schedules=deleted) == set()


@pytest.mark.parametrize(
    ("changed", "criterion"),
    [
        ({"runs": {"s": RUNS[::2]}}, 19),
        ({"runs": {"s": [*RUNS, RUNS[2]]}}, 19),
        ({"runs": {"s": [*RUNS, replace(RUNS[2], due_at=133)]}}, 19),
        ({"rules": {"s": [Rule(10, 100, 100), Rule(11, 112, 112)]}}, 19),
        ({"schedules": [replace(SCHEDULE, next_late=40)]}, 19),
        ({"started": [("s", "t1"), ("s", "t2")]}, 20),
        ({"started": ()}, 20),
        ({"runs": {"s": [RUNS[0], replace(RUNS[1], outcome="started", started="t1"), RUNS[2]]}}, 20),
    ],
)
def test_a_due_time_without_a_row_and_a_start_without_a_due_time_are_found(
    changed: dict[str, Any], criterion: int
) -> None:
    assert wrong(schedules=replace(SCHEDULES, **changed)) == {criterion}


ENDED = rows_of(a_task("a", "submit", "claim", "bury", "revive", "claim", "complete"))
EVENTS = [AgentEventRow("e1", "a", 1, "dead", True, 1), AgentEventRow("e2", "a", 2, "completed", True, 1)]
HANDLED = [HandledRow("a", 1, "dead"), HandledRow("a", 2, "completed")]
MEMORY = MemoryRows(frozenset({"a"}), EVENTS, HANDLED, 1)


def test_an_end_in_each_life_is_written_down_once() -> None:
    assert wrong(rows=ENDED, memory=MEMORY) == set()
    failed = replace(MEMORY, events=[EVENTS[0], replace(EVENTS[1], embedded=0)], failed={"e2": "job"})
    assert wrong(rows=ENDED, memory=failed) == set(), "it is listed as failed"


def test_who_has_lost_too_many_workers_has_ended() -> None:
    row, story = a_task("a", "submit", "claim", "stall", "claim", "stall")
    lost = rows_of((row, [*story[:-1], replace(story[-1], status="dead")]))
    memory = MemoryRows(frozenset({"a"}), EVENTS[:1], HANDLED[:1], 1)
    assert wrong(rows=lost, memory=memory) == set()
    assert wrong(rows=rows_of((row, story)), memory=memory) == {21}, "one that is tried again has not"


@pytest.mark.parametrize(
    "changed",
    [
        {"events": EVENTS[:1]},
        {"events": [*EVENTS, replace(EVENTS[1], event_id="e3")]},
        {"events": [replace(EVENTS[0], status="completed"), EVENTS[1]]},
        {"events": [EVENTS[0], replace(EVENTS[1], embedded=0)]},
        {"concerned": frozenset()},
        {"handled": HANDLED[:1]},
        {"handled": [*HANDLED, HANDLED[1]]},
        {"pending": 1},
    ],
)
def test_an_end_that_is_not_written_down_or_not_findable_is_found(changed: dict[str, Any]) -> None:
    assert wrong(rows=ENDED, memory=replace(MEMORY, **changed)) == {21}
