"""The judge of workflows is judged: a history that is right, and histories that are wrong in one thing."""

import random
from dataclasses import replace
from typing import Any

from tests.chaos.judge.rows import EventRow
from tests.chaos.judge.violation import (
    DECIDED_TWICE,
    EXPANDED_WRONGLY,
    NOT_WHAT_TASKS_SAY,
    RUN_AFTER_COMPLETION,
    STARTED_STANDING,
)
from tests.chaos.record import Record
from tests.chaos.workflows.deeds import KINDS, plan
from tests.chaos.workflows.graphs import TASKS, Graph
from tests.chaos.workflows.judge import judge_workflows
from tests.chaos.workflows.record import Call, WorkflowsRecord
from tests.chaos.workflows.rows import Claim, Failure, NodeRow, Stand, TaskOfAWorkflow, WorkflowRow, WorkflowRows
from tests.support.chaos_stories import events, rows_of

STORY = ("submit", "claim", "complete")
ASKED = ("submit", "ask", "approve", "claim", "complete")


def a_task(task_id: str, key: str, echo: Any, said: Any = None, **fields: Any) -> TaskOfAWorkflow:
    payload = {"result": echo if said is None else said}
    return TaskOfAWorkflow(task_id, "w", key, "probe", "completed", payload, {"echo": echo}, **fields)


FIRST, SECOND = a_task("c0", "pages[0]", "a", {"$item": True}), a_task("c1", "pages[1]", "b", {"$item": True})
TOLD = (
    a_task("list", "list", ["a", "b"]),
    FIRST,
    SECOND,
    a_task("join", "join", [{"echo": "a"}, {"echo": "b"}], {"$from": "pages"}),
    a_task("asked", "asked", "yes", is_asked_about=True),
)
NODE = NodeRow("w", "pages", "completed", 2, "list", "/echo")
RIGHT = WorkflowRows([WorkflowRow("w", "completed")], [NODE], {task.task_id: task for task in TOLD})


def story(*names: str, start: float = 100.0, xid: int = 7) -> list[EventRow]:
    """Of one transaction, as the submits of a list's tasks are; what else is in it does not matter here."""
    return [replace(event, xid=xid) for event in events(*names, start=start)]


STORIES = {
    "list": story(*STORY),
    "c0": story(*STORY, start=110),
    "c1": story(*STORY, start=112),
    "join": story(*STORY, start=120),
    "asked": story(*ASKED),
}
CALLS = (Call("approve", "asked", 101, 102, 200), Call("reject", "asked", 101, 102, 409))


def wrong(rows: WorkflowRows = RIGHT, *calls: Call, **stories: list[EventRow]) -> set[int]:
    """Which criteria are found broken."""
    record = Record(workflows=WorkflowsRecord(list(calls or CALLS), ["w"]))
    told = replace(rows_of(), events={**STORIES, **stories})
    return {violation.criterion for violation in judge_workflows(record, told, rows)}


def with_tasks(*tasks: TaskOfAWorkflow, **fields: Any) -> WorkflowRows:
    return replace(RIGHT, tasks={**RIGHT.tasks, **{task.task_id: task for task in tasks}}, **fields)


def test_a_history_that_is_right_is_called_right() -> None:
    assert wrong() == set()


def test_a_claim_that_could_see_that_its_workflow_stood_is_found() -> None:
    stands = {"w": [Stand(2, stands=True, xid=50), Stand(3, stands=False, xid=60)]}

    def saw(snapshot: str, actor: str = "probe", attempt: int = 1) -> set[int]:
        rows = with_tasks(replace(FIRST, actor=actor), stands=stands, claims=[Claim("c0", 2, 111, attempt, snapshot)])
        return wrong(rows)

    assert saw("40:45:") == set(), "nobody had escalated it"
    assert saw("48:55:50,53") == set(), "who did was not done"
    assert saw("53:55:53") == {STARTED_STANDING}
    assert saw("53:62:60") == {STARTED_STANDING}, "who resumed it was not done"
    assert saw("70:70:") == set()
    assert saw("53:55:53", actor="media", attempt=2) == set(), "it waits for what it has ordered"


def test_a_claim_that_could_see_as_many_failures_as_the_threshold_is_found() -> None:
    failures = {"w": [Failure(1, 50), Failure(1, 60), Failure(-1, 70), Failure(-1, 70)]}

    def saw(snapshot: str, threshold: int | None = 2) -> set[int]:
        workflow = WorkflowRow("w", "completed", threshold)
        claim = Claim("c0", 2, 111, 1, snapshot)
        return wrong(replace(RIGHT, workflows=[workflow], failures=failures, claims=[claim]))

    assert saw("55:55:") == set(), "one failure"
    assert saw("65:65:") == {STARTED_STANDING}, "no orchestrator needs to have counted them"
    assert saw("65:65:", threshold=None) == set()
    assert saw("75:75:") == set(), "a resume forgave them"


def test_what_had_completed_and_runs_again_is_found() -> None:
    assert wrong(c0=story("submit", "claim", "complete", "revive")) == {RUN_AFTER_COMPLETION}
    assert wrong(c0=story("submit", "claim", "bury", "revive", "claim", "complete")) == set()


def test_a_list_that_became_tasks_twice_or_in_part_is_found() -> None:
    again = replace(SECOND, task_id="c2")
    assert wrong(with_tasks(again), c2=STORIES["c1"]) == {EXPANDED_WRONGLY}
    assert wrong(c1=story(*STORY, start=112, xid=8)) == {EXPANDED_WRONGLY}, "in another transaction"
    fewer = {name: task for name, task in RIGHT.tasks.items() if name != "c1"}
    assert wrong(replace(RIGHT, tasks=fewer)) == {EXPANDED_WRONGLY}
    assert wrong(replace(RIGHT, nodes=[replace(NODE, members=None)])) == {EXPANDED_WRONGLY}


def test_results_that_are_out_of_order_are_found() -> None:
    assert wrong(with_tasks(replace(FIRST, key="pages[1]"), replace(SECOND, key="pages[0]"))) == {EXPANDED_WRONGLY}
    join = RIGHT.tasks["join"]
    assert wrong(with_tasks(replace(join, result={"echo": [{"echo": "b"}, {"echo": "a"}]}))) == {EXPANDED_WRONGLY}
    without = replace(join, result={"echo": [{"echo": "a"}, None]})
    assert wrong(with_tasks(without)) == {EXPANDED_WRONGLY}
    late = story("submit", "claim", "bury", "revive", "claim", "complete", start=118)
    assert wrong(with_tasks(without), c1=late) == set(), "it had failed when the join was claimed, which goes on anyway"
    nothing = replace(join, result={"echo": []})
    assert wrong(with_tasks(nothing)) == {EXPANDED_WRONGLY}
    later = {"c0": story(*STORY, start=130), "c1": story(*STORY, start=130)}
    assert wrong(with_tasks(nothing), **later) == set(), "the list had failed then, and became tasks in its next life"


def test_who_is_decided_about_twice_or_starts_without_is_found() -> None:
    assert wrong(asked=story("submit", "claim", "complete")) == {DECIDED_TWICE}
    twice = story("submit", "ask", "approve", "reject", "claim", "complete")
    assert wrong(asked=twice) == {DECIDED_TWICE}
    again = story("submit", "ask", "reject", "cancel", "revive", "ask", "approve", "claim", "complete")
    assert wrong(asked=again) == set(), "who was not approved is asked about again"
    assert wrong(RIGHT, CALLS[0], replace(CALLS[1], status=200)) == {DECIDED_TWICE}, "both were told that they had"


def test_a_workflow_that_is_not_what_its_tasks_say_is_found() -> None:
    mismatch = ("w", 110.0, "is failed and its tasks say running")
    assert wrong(replace(RIGHT, mismatches=[mismatch])) == {NOT_WHAT_TASKS_SAY}
    assert wrong(replace(RIGHT, workflows=[WorkflowRow("w", "failed", differs="is failed")])) == {NOT_WHAT_TASKS_SAY}
    assert wrong(replace(RIGHT, workflows=[WorkflowRow("w", "escalated")])) == {NOT_WHAT_TASKS_SAY}, "nobody ended it"
    assert wrong(replace(RIGHT, workflows=[])) == {NOT_WHAT_TASKS_SAY}
    assert wrong(replace(RIGHT, pending=1)) == {NOT_WHAT_TASKS_SAY}


def test_the_same_dice_throw_the_same_graphs_and_deeds() -> None:
    bodies = [Graph(random.Random(seed), "mark").body(seed, "elsewhere") for seed in range(30)]
    assert bodies == [Graph(random.Random(seed), "mark").body(seed, "elsewhere") for seed in range(30)]
    assert all(len(body["tasks"]) + 6 >= TASKS for body in bodies)
    deeds = plan(random.Random(3), deeds=100, seconds=60)
    assert deeds == plan(random.Random(3), deeds=100, seconds=60)
    assert {deed.kind for deed in deeds} == set(KINDS)
