"""The judge of projects is judged: a history that is right, and histories that are wrong in one thing."""

import random
from collections import Counter
from dataclasses import replace
from typing import Any

from tests.chaos.judge.violation import LEFT_ALIVE, RUN_AFTER_A_STOP, RUN_TWICE, TWO_OPEN_RUNS, UNTRUE
from tests.chaos.projects.deeds import KINDS, plan
from tests.chaos.projects.judge import judge_projects
from tests.chaos.projects.record import Call, ProjectsRecord
from tests.chaos.projects.rows import ItemRow, ProjectRow, ProjectRows, RunRow
from tests.chaos.record import Fault, Record, Sighting
from tests.support.chaos_stories import LEASE, events, rows_of

RUN = RunRow("r1", "p", "i1", "t1", "loop", "completed", 100.0, 104.0)
NEXT = RunRow("r2", "p", "i2", "t2", "loop", "completed", 104.0, 108.0)
ITEMS = (ItemRow("i1", "p", "done", "r1"), ItemRow("i2", "p", "done", "r2"))
BEGIN = Call("p", "loop", 99.9, 100.1, 202)
STORY = ("submit", "dispatch", "claim", "progress", "complete")


def wrong(
    *calls: Call,
    runs: tuple[RunRow, ...] = (RUN, NEXT),
    items: tuple[ItemRow, ...] = ITEMS,
    project: ProjectRow | None = None,
    record: Record | None = None,
    parents: dict[str, str] | None = None,
    second: tuple[str, ...] = STORY,
    second_at: float = 104.0,
) -> set[int]:
    """Which criteria are found broken."""
    record = record or Record()
    record.projects = ProjectsRecord(list(calls))
    rows = replace(rows_of(), events={"t1": events(*STORY, start=100), "t2": events(*second, start=second_at)})
    tasks = {"t1": "p", "t2": "p"} if not parents else {"t1": "p"}
    projects = ProjectRows([project or ProjectRow("p", "idle", 9, 9)], list(runs), items, tasks, parents or {})
    return {violation.criterion for violation in judge_projects(record, rows, projects, LEASE)}


def test_a_history_that_is_right_is_called_right() -> None:
    idle = {"state": "idle"}
    assert wrong(BEGIN) == set()
    assert wrong(BEGIN, Call("p", "stop", 105, 106, 200), Call("p", "look", 108.5, 109, 200, said=idle)) == set()


def test_two_runs_or_two_attempts_at_once_are_found() -> None:
    assert TWO_OPEN_RUNS in wrong(BEGIN, runs=(replace(RUN, ended_at=104.5), NEXT))
    assert TWO_OPEN_RUNS in wrong(BEGIN, runs=(replace(RUN, ended_at=None), NEXT))
    assert wrong(BEGIN, second_at=101.0) == {TWO_OPEN_RUNS}


def test_a_run_after_a_stop_has_answered_is_found() -> None:
    assert wrong(BEGIN, Call("p", "stop", 102, 103, 200)) == {RUN_AFTER_A_STOP}
    assert wrong(BEGIN, Call("p", "force-stop", 102, 103, 202)) == {RUN_AFTER_A_STOP}
    assert wrong(BEGIN, Call("p", "stop", 102, 104.5, 200)) == set(), "the run may have come before the stop was heard"
    assert wrong(BEGIN, Call("p", "stop", 102, 103, 200), Call("p", "run", 103.5, 104.5, 202)) == set()
    assert wrong(BEGIN, Call("p", "stop", 102, 103, 200), Call("p", "run", 103.5, 104.5, 409)) == {RUN_AFTER_A_STOP}
    assert wrong(BEGIN, Call("p", "stop", 102, 103, 200), Call("p", "run", 101, 101.5)) == set(), "it was heard late"


def test_a_run_that_nobody_asked_for_is_found() -> None:
    assert wrong() == {RUN_AFTER_A_STOP}
    assert wrong(BEGIN, runs=(RUN, replace(NEXT, mode="single"))) == {RUN_AFTER_A_STOP}


def test_an_item_that_is_run_twice_is_found_unless_somebody_requeued_it() -> None:
    again: dict[str, Any] = {"runs": (RUN, replace(NEXT, item_id="i1")), "items": (ItemRow("i1", "p", "done", "r2"),)}
    assert wrong(BEGIN, **again) == {RUN_TWICE}
    assert wrong(BEGIN, Call("p", "requeue", 104, 104.5, 200, about="i1"), **again) == set()
    assert wrong(BEGIN, Call("p", "requeue", 104, 104.5, 409, about="i1"), **again) == {RUN_TWICE}
    assert wrong(BEGIN, Call("p", "requeue", 104, 104.5, 200, about="i2"), **again) == {RUN_TWICE}
    assert wrong(BEGIN, Call("p", "bulk", 90, 91, 202), **again) == set(), "it is done later"
    late = Call("p", "requeue", 105, 105.5, 200, about="i1")
    assert wrong(BEGIN, late, **again) == {RUN_TWICE}
    assert wrong(BEGIN, late, second_at=106.0, **again) == set(), "it took the place of another that nobody had claimed"
    withdrawn = (replace(RUN, state="withdrawn"), again["runs"][1])
    assert wrong(BEGIN, runs=withdrawn, items=again["items"]) == set()


def test_words_that_are_not_so_are_found() -> None:
    assert wrong(BEGIN, Call("p", "look", 102, 103, 200, said={"state": "idle"})) == {UNTRUE}
    assert wrong(BEGIN, Call("p", "look", 102, 103, 200, said={"state": "running"})) == set()


def test_what_came_of_a_run_is_found_after_a_force_stop_that_succeeded() -> None:
    killed = {"state": "idle", "success": True, "killed_runs": [{"task_id": "t1"}]}
    forced = Call("p", "force-stop", 105, 105.5, 200, said=killed)
    only: dict[str, Any] = {"runs": (RUN,), "parents": {"t2": "t1"}, "items": ITEMS[:1]}
    assert wrong(BEGIN, forced, second=("submit",), **only) == {UNTRUE}
    assert wrong(BEGIN, forced, second=("submit", "cancel"), **only) == set()
    seen = Record(sightings=[Sighting(7, "t1", 101, 109)])
    assert wrong(BEGIN, forced, second=("submit", "cancel"), record=seen, **only) == {LEFT_ALIVE}
    seen.faults.append(Fault(1, "a host was frozen", 104, 108, is_host_wide=True))
    assert wrong(BEGIN, forced, second=("submit", "cancel"), record=seen, **only) == set()


def test_rows_that_do_not_agree_are_found() -> None:
    assert wrong(BEGIN, project=ProjectRow("p", "running", 9, 9)) == {UNTRUE}
    assert wrong(BEGIN, project=ProjectRow("p", "idle", 9, 8)) == {UNTRUE}
    assert wrong(BEGIN, items=(replace(ITEMS[0], state="waiting"), ITEMS[1])) == {UNTRUE}
    assert wrong(BEGIN, runs=(RUN, replace(NEXT, state="running", ended_at=None))) == {UNTRUE}


def test_the_same_dice_throw_the_same_deeds_and_every_kind_comes() -> None:
    deeds = plan(random.Random(3), deeds=200, seconds=60, projects=20)
    assert deeds == plan(random.Random(3), deeds=200, seconds=60, projects=20)
    assert {deed.kind for deed in deeds} == set(KINDS)
    assert min(Counter(deed.project for deed in deeds).values()) == 10
