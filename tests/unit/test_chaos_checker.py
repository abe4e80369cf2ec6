"""The judge of storms is judged: for each criterion a run that is right, and runs that are wrong in one thing."""

import ast
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.judge.checker import CRITERIA
from tests.chaos.judge.rows import Rows, WorkerRow
from tests.chaos.record import Fault, LimitChange, Record, Revived, Sighting
from tests.support.chaos_stories import NOBODY_HAS_THIS_PID, NOW, a_task, judged, record_of, rows_of, wrong


def test_a_run_that_is_right_is_called_right() -> None:
    record = record_of("a", "b", faults=[Fault(1, "a worker was killed", 101, 103)])
    story = ("submit", "dispatch", "claim", "stall", "dispatch", "claim", "output", "interrupt", "claim", "complete")
    assert judged(record, rows_of(a_task("a"), a_task("b", *story))) == []
    assert len(CRITERIA) == 22


# 1: accepted, and ended within the bound


def test_an_accepted_task_without_a_row_is_found() -> None:
    assert wrong(record_of("a", "lost"), rows_of(a_task("a"))) == {1}


@pytest.mark.parametrize("status", ["blocked", "queued", "retrying"])
def test_a_task_that_has_not_ended_is_found(status: str) -> None:
    waiting = a_task("a", "submit", status=status, result=None, completed_at=None)
    assert wrong(record_of("a"), rows_of(waiting)) == {1}


def test_a_task_that_ended_after_the_bound_is_found() -> None:
    late = a_task("a", completed_at=170.5)
    faults = [Fault(1, "the last one", 101, 110)]
    assert wrong(record_of("a", faults=faults), rows_of(late)) == {1}
    assert wrong(record_of("a", faults=[Fault(1, "the last one", 101, 111)]), rows_of(late)) == set()


def test_a_later_life_has_its_own_time() -> None:
    row, story = a_task("a", "submit", "claim", "bury", "revive", "claim", "complete", completed_at=300.0)
    story[3:] = [replace(event, at=event.at + 190) for event in story[3:]]
    assert wrong(record_of("a", revived=[Revived("a", 293)]), rows_of((row, story))) == set()
    assert wrong(record_of("a"), rows_of((row, story))) == set(), "it was revived with its parent, unasked"
    assert wrong(record_of("a"), rows_of((replace(row, completed_at=400.0), story))) == {1}


def test_who_is_buried_because_of_its_parent_has_ended() -> None:
    buried = a_task("a", "submit", "bury", status="dead", result=None)
    assert wrong(record_of("a"), rows_of(buried)) == set()


# 2: one completion in a life, by whoever holds the lease


@pytest.mark.parametrize(
    "story",
    [
        ("submit", "claim", "complete", "complete"),
        ("submit", "claim", "complete", "claim", "complete"),
        ("submit", "claim", "stall", "complete"),
        ("submit", "claim", "interrupt", "complete"),
        ("submit", "claim", "complete", "retry"),
        ("submit", "claim", "claim", "complete"),
        ("submit", "claim", "stall", "output", "claim", "complete"),
        ("submit", "complete"),
    ],
)
def test_an_end_or_a_word_by_who_holds_no_lease_is_found(story: tuple[str, ...]) -> None:
    assert 2 in wrong(record_of("a"), rows_of(a_task("a", *story)))


def test_a_result_of_another_attempt_is_found() -> None:
    row, story = a_task("a", "submit", "claim", "stall", "claim", "complete")
    stale = {"echo": "mark-a", "attempt": 1, "worker_id": "worker-1"}
    assert wrong(record_of("a"), rows_of((replace(row, result=stale), story))) == {2}
    strange = {"echo": "mark-a", "attempt": 2, "worker_id": "worker-1"}
    assert wrong(record_of("a"), rows_of((replace(row, result=strange), story))) == {2}


def test_a_result_of_another_task_is_found() -> None:
    other = {"echo": "mark-b", "attempt": 1, "worker_id": "worker-1"}
    assert wrong(record_of("a"), rows_of(a_task("a", result=other))) == {2}


def test_two_tasks_for_one_key_are_found() -> None:
    record = record_of("a", broken_words=[("a", "key k gave task a first and then b")])
    assert wrong(record, rows_of(a_task("a"))) == {2}


# 3: never more than the limit at a provider


def order(mark: str, at: float, ends_at: float | None, *, state: str = "complete", kind: str = "image") -> Any:
    return {"kind": kind, "prompt": f"{mark} a boat", "at": at, "ends_at": ends_at, "state": state}


def at_the_provider(*orders: Any, **more: Any) -> Record:
    return record_of("a", "b", "c", books={"leonardo": {"orders": list(orders)}}, **more)


def three_tasks(limit: int | None) -> Rows:
    return rows_of(a_task("a"), a_task("b"), a_task("c"), limits={"leonardo": limit})


def test_more_orders_at_once_than_the_limit_are_found() -> None:
    overlapping = (order("mark-a", 110, 120), order("mark-b", 111, 121), order("mark-c", 120.5, 125))
    assert wrong(at_the_provider(*overlapping), three_tasks(2)) == set()
    assert wrong(at_the_provider(*overlapping), three_tasks(1)) == {3}
    assert wrong(at_the_provider(*overlapping), three_tasks(None)) == set()


def test_an_order_that_never_ends_stays_in_the_count() -> None:
    record = at_the_provider(order("mark-a", 110, None, state="running"), order("mark-b", 500, 501))
    assert wrong(record, three_tasks(1)) == {3}


def test_the_limit_at_the_latest_claim_decides() -> None:
    """All three tasks are claimed at 102; a limit lowered later takes nothing back, and one raised later allows
    nothing then."""
    orders = order("mark-a", 110, 120), order("mark-b", 111, 121)
    lowered = [LimitChange("leonardo", 1, 105, 105.5)]
    assert wrong(at_the_provider(*orders, limit_changes=lowered), three_tasks(2)) == set()
    raised = [LimitChange("leonardo", 2, 105, 105.5)]
    assert wrong(at_the_provider(*orders, limit_changes=raised), three_tasks(1)) == {3}
    meanwhile = [LimitChange("leonardo", 2, 101.5, 102.5)]
    assert wrong(at_the_provider(*orders, limit_changes=meanwhile), three_tasks(1)) == set()
    before = [LimitChange("leonardo", 1, 90, 91)]
    assert wrong(at_the_provider(*orders, limit_changes=before), three_tasks(2)) == {3}


def test_a_host_that_stood_still_is_excepted_for_a_lease() -> None:
    orders = order("mark-a", 110, 120), order("mark-b", 115, 121)
    frozen = Fault(1, "frozen whole", 108, 112, is_host_wide=True)
    assert wrong(at_the_provider(*orders, faults=[frozen]), three_tasks(1)) == set()
    assert wrong(at_the_provider(*orders, faults=[replace(frozen, ended_at=110)]), three_tasks(1)) == {3}
    assert wrong(at_the_provider(*orders, faults=[replace(frozen, is_host_wide=False)]), three_tasks(1)) == {3}


def test_a_chat_counts_until_its_client_has_let_go() -> None:
    def chats(left_at: float, state: str = "left") -> tuple[Any, Any]:
        return order("mark-a", 110, left_at, state=state, kind="chat"), order("mark-b", 115, 121, kind="chat")

    assert wrong(at_the_provider(*chats(115.5)), three_tasks(1)) == set()
    assert wrong(at_the_provider(*chats(115.5, "complete")), three_tasks(1)) == {3}
    assert wrong(at_the_provider(*chats(118)), three_tasks(1)) == {3}
    hidden = Fault(1, "black hole", 112, 117, hides_hang_ups=True)
    assert wrong(at_the_provider(*chats(118), faults=[hidden]), three_tasks(1)) == set()


def test_more_agents_at_once_than_the_limit_are_found() -> None:
    """By their processes, of which one agent may have several; each attempt here runs from 102 to 104."""
    seen = [Sighting(7, "a", 102.5, 103.5), Sighting(8, "a", 102.5, 103.5), Sighting(9, "b", 103, 103.9)]
    rows = rows_of(a_task("a"), a_task("b"), limits={"local": 1})
    assert wrong(record_of("a", "b", sightings=seen[:2]), rows) == set()
    assert wrong(record_of("a", "b", sightings=seen), rows) == {3}
    assert wrong(record_of("a", "b", sightings=seen), replace(rows, limits={"local": 2})) == set()
    elsewhere = [Sighting(9, "another's", 103, 103.9)]
    assert wrong(record_of("a", "b", sightings=[*seen[:2], *elsewhere]), rows) == set(), "of another installation"


# 4: nothing is ordered twice


def test_a_second_order_in_one_life_is_found() -> None:
    twice = order("mark-a", 110, 111), order("mark-a", 112, 113)
    assert wrong(at_the_provider(*twice), three_tasks(3)) == {4}


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_what_the_provider_failed_may_be_ordered_again(state: str) -> None:
    failed = order("mark-a", 110, 111, state=state)
    assert wrong(at_the_provider(failed, order("mark-a", 112, 113)), three_tasks(3)) == set()
    assert wrong(at_the_provider(failed, order("mark-a", 110.5, 113)), three_tasks(3)) == {4}


def test_another_life_may_order_again() -> None:
    revived = a_task("a", "submit", "claim", "cancel", "revive", "claim", "complete")
    rows = rows_of(revived, a_task("b"), a_task("c"))
    assert wrong(at_the_provider(order("mark-a", 101, 102), order("mark-a", 104, 105)), rows) == set()
    assert wrong(at_the_provider(order("mark-a", 103.5, 104), order("mark-a", 104.2, 105)), rows) == {4}


# 5: nothing is held by nobody


def test_a_running_task_whose_worker_is_dead_is_found() -> None:
    running = a_task(
        "z",
        "submit",
        "claim",
        status="running",
        result=None,
        completed_at=None,
        worker_id="w",
        lease_expires_at=NOW + 2,
    )
    alive = WorkerRow("w", os.getpid(), "active", NOW)
    assert wrong(record_of(), rows_of(running, workers=[alive])) == set()
    assert wrong(record_of(), rows_of(running, workers=[replace(alive, pid=NOBODY_HAS_THIS_PID)])) == {5}
    assert wrong(record_of(), rows_of(running)) == {5}
    expired = (replace(running[0], lease_expires_at=NOW - 1), running[1])
    assert wrong(record_of(), rows_of(expired, workers=[alive])) == {5}


def test_an_open_job_of_a_task_that_has_ended_is_found() -> None:
    assert wrong(record_of(), rows_of(a_task("a", job_open=True))) == {5}
    assert wrong(record_of(), rows_of(a_task("a"), open_jobs=[("a", "intended")])) == {5}


def test_a_dead_worker_that_is_called_active_is_found_once_the_janitor_had_the_time() -> None:
    dead = WorkerRow("w", NOBODY_HAS_THIS_PID, "active", NOW - 100)
    assert wrong(record_of(), rows_of(workers=[dead])) == {5}
    assert wrong(record_of(), rows_of(workers=[replace(dead, state="lost")])) == set()
    assert wrong(record_of(), rows_of(workers=[replace(dead, heartbeat_at=NOW - 10)])) == set()


# 7: no process without a running task


def test_a_process_that_outlives_its_attempt_is_found() -> None:
    """Its attempt runs from 102 to 104."""
    rows = rows_of(a_task("a"))
    assert wrong(record_of("a", sightings=[Sighting(7, "a", 102.5, 104.1)]), rows) == set()
    assert wrong(record_of("a", sightings=[Sighting(7, "a", 102.5, 104.5)]), rows) == {7}
    frozen = [Fault(1, "frozen whole", 101, 103, is_host_wide=True)]
    assert wrong(record_of("a", sightings=[Sighting(7, "a", 102.5, 106.5)], faults=frozen), rows) == set()
    assert wrong(record_of("a", sightings=[Sighting(7, "a", 102.5, 108)], faults=frozen), rows) == {7}


def test_a_process_of_an_attempt_that_was_taken_back_is_found() -> None:
    taken_back = rows_of(a_task("a", "submit", "claim", "stall", "claim", "complete"))
    assert wrong(record_of("a", sightings=[Sighting(7, "a", 101.5, 103.9)]), taken_back) == {7}
    assert wrong(record_of("a", sightings=[Sighting(7, "a", 103.1, 103.9)]), taken_back) == set()


def test_a_process_that_is_there_at_the_end_is_found() -> None:
    assert wrong(record_of("a"), rows_of(a_task("a")), [(7, "a")]) == {7}


def test_the_judge_knows_nothing_of_what_it_judges() -> None:
    """Not even over its own modules: a defect that both sides share would be seen by neither."""
    folder = Path(__file__).parents[1] / "chaos"
    judge = (
        "judge.checker",
        "judge.lives",
        "judge.owners",
        "judge.processes",
        "judge.provider_books",
        "record",
        "judge.rows",
        "judge.stream_reads",
        "judge.violation",
        "projects.judge",
        "projects.record",
        "projects.rows",
        "workflows.judge",
        "workflows.record",
        "workflows.rows",
        "webhooks.books",
        "webhooks.judge",
        "webhooks.record",
        "webhooks.rows",
        "schedules.judge",
        "schedules.record",
        "schedules.rows",
        "steps.judge",
        "steps.rows",
        "memory.judge",
        "memory.rows",
    )
    for name in judge:
        for node in ast.walk(ast.parse((folder / f"{name.replace('.', '/')}.py").read_text())):
            imported = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            imported += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for module in imported:
                assert module.partition(".")[0] not in {"services", "shared", "windlass"}, f"{name} imports {module}"
                if module.startswith("tests"):
                    assert module in {f"tests.chaos.{each}" for each in judge}, f"{name} imports {module}"
