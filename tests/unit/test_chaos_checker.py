"""The judge of storms is judged: for each criterion a run that is right, and runs that are wrong in one thing."""

import ast
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.checker import CRITERIA, judge_rows
from tests.chaos.record import Accepted, Fault, LimitChange, ManyRead, Record, Revived, Sighting, StreamRead
from tests.chaos.rows import EventRow, Rows, TaskRow, WorkerRow
from tests.chaos.violation import Violation

LEASE = 4.0
BOUND = 60.0
NOW = 1000.0
NOBODY_HAS_THIS_PID = 2**22 + 1


def events(*names: str, start: float = 100.0, attempt: int = 0) -> list[EventRow]:
    """One a second; each claim is a new attempt, by a worker that is named after it."""
    story = []
    for seq, name in enumerate(names, start=1):
        attempt += name == "claim"
        worker_id = f"worker-{attempt}" if name == "claim" else None
        story.append(EventRow(seq, name, start + seq - 1, attempt, xid=10 * seq, worker_id=worker_id))
    return story


HAPPY = ("submit", "dispatch", "claim", "progress", "complete")


def a_task(task_id: str = "a", *names: str, **fields: Any) -> tuple[TaskRow, list[EventRow]]:
    story = events(*(names or HAPPY))
    attempt = max(event.attempt for event in story)
    result = {"echo": f"mark-{task_id}", "attempt": attempt, "worker_id": f"worker-{attempt}"}
    row = TaskRow(
        task_id, "probe", "probe", "completed", attempt, len(story), job_open=False, result=result,
        completed_at=story[-1].at,
    )  # fmt: skip
    return replace(row, **fields), story


def rows_of(*tasks: tuple[TaskRow, list[EventRow]], **more: Any) -> Rows:
    return Rows(
        NOW, {row.task_id: row for row, _ in tasks}, {row.task_id: story for row, story in tasks}, **more
    )  # fmt: skip


def record_of(*task_ids: str, **more: Any) -> Record:
    accepted = {each: Accepted(each, "probe", "probe", 100.0, f"mark-{each}") for each in task_ids}
    return Record(accepted=accepted, **more)


def judged(record: Record, rows: Rows, processes: Any = ()) -> list[Violation]:
    return judge_rows(record, rows, processes, bound_seconds=BOUND, lease_seconds=LEASE)


def wrong(record: Record, rows: Rows, processes: Any = ()) -> set[int]:
    return {violation.criterion for violation in judged(record, rows, processes)}


def test_a_run_that_is_right_is_called_right() -> None:
    record = record_of("a", "b", faults=[Fault(1, "a worker was killed", 101, 103)])
    story = ("submit", "dispatch", "claim", "stall", "dispatch", "claim", "output", "interrupt", "claim", "complete")
    assert judged(record, rows_of(a_task("a"), a_task("b", *story))) == []
    assert len(CRITERIA) == 7


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


# 6: streams without gaps and repeats


def read(*seqs: int, types: tuple[str, ...] | None = None, is_whole: bool = True) -> StreamRead:
    names = types or (*["progress"] * (len(seqs) - 1), "complete")
    return StreamRead("a", seqs, names, 2, is_whole=is_whole)


def test_a_stream_that_has_everything_once_is_right() -> None:
    """The row that says `dispatch` is not told."""
    assert wrong(record_of("a", streams=[read(1, 3, 4, 5)]), rows_of(a_task("a"))) == set()


@pytest.mark.parametrize(
    "seen",
    [
        read(1, 3, 5),
        read(1, 3, 4, 4, 5),
        read(1, 4, 3, 5),
        read(3, 4, 5),
        read(1, 2, 3, 4, 5),
        read(1, 3, 4, 5, 6),
        read(1, 3, 4, types=("progress", "progress", "progress")),
        read(1, 3, 4, 5, is_whole=False),
        read(1, 3, 4, 5, types=("progress", "complete", "progress", "complete")),
        read(1, 3, 4, 5, types=("progress", "progress", "output", "complete")),
    ],
)
def test_a_stream_that_is_wrong_in_one_thing_is_found(seen: StreamRead) -> None:
    assert wrong(record_of("a", streams=[seen]), rows_of(a_task("a"))) == {6}


def test_a_stream_may_end_with_an_earlier_life() -> None:
    revived = a_task("a", "submit", "claim", "bury", "revive", "claim", "complete")
    seen = read(1, 2, 3, types=("progress", "progress", "error"))
    assert wrong(record_of("a", streams=[seen]), rows_of(revived)) == set()


def test_a_history_with_a_gap_is_found() -> None:
    row, story = a_task("a")
    del story[3]
    assert wrong(record_of("a"), rows_of((row, story))) == {6}


def test_the_many_task_stream_has_everything_between_its_marks() -> None:
    first, last, other = a_task("first"), a_task("last"), a_task("other")
    for number, (_, story) in enumerate((first, other, last)):
        story[:] = [replace(event, xid=1000 * number + event.xid) for event in story]
    rows = rows_of(first, other, last)
    everything = [(task, seq) for task in ("first", "other", "last") for seq in (1, 3, 4, 5)]

    def seen(*told: tuple[str, int]) -> Record:
        return record_of("first", "other", "last", many_streams=[ManyRead("first", "last", told, 3)])

    assert wrong(seen(*everything), rows) == set()
    assert wrong(seen(*[each for each in everything if each != ("other", 4)]), rows) == {6}
    assert wrong(seen(*everything, ("other", 4)), rows) == {6}
    assert wrong(seen(*everything, ("unheard-of", 1)), rows) == {6}


def test_what_was_committed_with_the_last_mark_may_come_after_it() -> None:
    """In one commit the order is by task: this client has left before the later one's turn."""
    first, (later_row, _), (last_row, _) = a_task("a"), a_task("z"), a_task("m")
    ended = [replace(event, xid=5000) for event in events(*HAPPY)]
    rows = rows_of(first, (later_row, ended), (last_row, ended))
    told = tuple((task, seq) for task in ("a", "m") for seq in (1, 3, 4, 5))
    record = record_of("a", "m", "z", many_streams=[ManyRead("a", "m", told, 1)])
    assert wrong(record, rows) == set()
    record.many_streams = [ManyRead("a", "m", told, 1, is_whole=False)]
    assert wrong(record, rows) == {6}
    record.many_streams = [ManyRead("a", "z", told, 1)]
    assert wrong(record, rows) == {6}


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
    judge = ("checker", "lives", "owners", "processes", "provider_books", "record", "rows", "stream_reads", "violation")
    for name in judge:
        for node in ast.walk(ast.parse((folder / f"{name}.py").read_text())):
            imported = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            imported += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for module in imported:
                assert module.partition(".")[0] not in {"services", "shared", "windlass"}, f"{name} imports {module}"
                if module.startswith("tests"):
                    assert module in {f"tests.chaos.{each}" for each in judge}, f"{name} imports {module}"
