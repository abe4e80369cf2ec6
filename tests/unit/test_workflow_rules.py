"""What follows from the tasks of a workflow: rules that need no database."""

from collections import Counter
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.shared.features.workflows import rules
from windlass.shared.features.workflows.rules import Node, Page, Step, Tally
from windlass.shared.states import LIVE, TERMINAL, State
from windlass.shared.workflow_states import CHANGES, WorkflowStatus

few = st.integers(0, 3)
STATUSES: st.SearchStrategy[dict[str, int]] = st.dictionaries(st.sampled_from(list(map(str, State))), few)
ENDS: st.SearchStrategy[dict[str, int]] = st.dictionaries(st.sampled_from(sorted(map(str, TERMINAL))), few)
TALLIES = st.lists(
    st.builds(
        Tally,
        node=st.sampled_from([None, "pages", "more"]),
        status=st.sampled_from(State),
        tasks=few,
        to_cancel=few,
        to_hold=few,
        to_release=few,
    )
)
WHAT_AN_UNEXPANDED_NODE_CAN_BE = st.sampled_from(
    [
        (State.BLOCKED, None),
        (State.DEAD, "DependencyFailed"),
        (State.DEAD, "InvalidInput"),
        (State.CANCELLED, None),
    ]
)


def a_node(status: str, *, members: int | None = None, source: str | None = None, error: str | None = None) -> Node:
    return Node(
        node_id=UUID(int=1),
        key="pages",
        status=status,
        members=members,
        path="",
        source=UUID(int=2),
        source_status=source,
        error_type=error,
        actor="probe",
        provider="probe",
    )


NODES = st.lists(st.builds(a_node, st.sampled_from(State)), max_size=3)


@given(STATUSES)
def test_an_expanded_node_runs_until_its_last_task_ends(statuses: dict[str, int]) -> None:
    is_live = any(statuses.get(status) for status in LIVE)
    assert (rules.status_of_tasks(statuses) == State.RUNNING) == is_live


@given(ENDS)
def test_a_node_is_dead_if_one_of_its_tasks_is_and_completed_only_if_all_are(statuses: dict[str, int]) -> None:
    status = rules.status_of_tasks(statuses)
    assert (status == State.DEAD) == bool(statuses.get(State.DEAD))
    others = statuses.get(State.DEAD) or statuses.get(State.CANCELLED)
    assert (status == State.COMPLETED) == (not others)


@given(st.sampled_from(State), STATUSES)
def test_an_expanded_node_follows_its_tasks_and_then_rests(status: State, statuses: dict[str, int]) -> None:
    step = rules.step_of_node(a_node(status, members=3), statuses)
    assert (step is None) == (status == rules.status_of_tasks(statuses))
    assert step in {None, Step.FOLLOW}
    settled = a_node(rules.status_of_tasks(statuses), members=3)
    assert rules.step_of_node(settled, statuses) is None


@given(WHAT_AN_UNEXPANDED_NODE_CAN_BE, st.sampled_from(State))
def test_a_node_that_was_cancelled_or_whose_list_cannot_be_used_stays_so(
    node: tuple[State, str | None], source: State
) -> None:
    status, error = node
    step = rules.step_of_node(a_node(status, source=source, error=error), {})
    if status == State.CANCELLED or error == "InvalidInput":
        assert step is None
    elif source == State.COMPLETED:
        assert step == Step.EXPAND
    elif source in TERMINAL:
        assert step == (None if status == State.DEAD else Step.BURY)
    else:
        assert step == (None if status == State.BLOCKED else Step.WAIT)


@given(WHAT_AN_UNEXPANDED_NODE_CAN_BE, st.sampled_from(State))
def test_a_node_needs_at_most_one_step_until_its_source_moves(node: tuple[State, str | None], source: State) -> None:
    """Else a turn, which repeats the steps until there is none, would not end."""
    status, error = node
    after: dict[Step | None, Node] = {
        None: a_node(status, source=source, error=error),
        Step.EXPAND: a_node(State.RUNNING, members=1, source=source),
        Step.BURY: a_node(State.DEAD, source=source, error=str(rules.error_of_source(UUID(int=2))["type"])),
        Step.WAIT: a_node(State.BLOCKED, source=source),
    }
    step = rules.step_of_node(after[None], {})
    assert rules.step_of_node(after[step], {State.QUEUED: 1}) is None


def test_an_unusable_list_is_told_from_a_source_that_failed() -> None:
    dead = a_node(State.DEAD, source=State.COMPLETED, error=rules.error_of_list("it is none")["type"])
    assert rules.step_of_node(dead, {}) is None


@given(TALLIES, NODES, few, st.none() | st.integers(1, 3), st.booleans())
def test_each_task_and_each_node_is_counted_once(
    tallies: list[Tally], nodes: list[Node], failures: int, threshold: int | None, cancel_requested: bool
) -> None:
    counts = rules.counts_of(
        tallies, nodes, failures=failures, failure_threshold=threshold, cancel_requested=cancel_requested
    )
    total = counts.live + counts.completed + counts.dead + counts.cancelled
    assert total == sum(each.tasks for each in tallies) + len(nodes)
    dead = sum(each.tasks for each in tallies if each.status == State.DEAD)
    assert counts.dead == dead + sum(node.status == State.DEAD for node in nodes)
    assert (counts.failures, counts.failure_threshold, counts.cancel_requested) == (
        failures, threshold, cancel_requested,
    )  # fmt: skip


@given(TALLIES)
def test_tallies_are_summed_by_node(tallies: list[Tally]) -> None:
    found = rules.by_node(tallies)
    assert found.keys() == {each.node for each in tallies}
    assert sum(found.values(), Counter()).total() == sum(each.tasks for each in tallies)


@given(st.sampled_from(WorkflowStatus), TALLIES, st.booleans())
def test_a_page_is_what_the_status_asks_for_and_never_empty(
    status: WorkflowStatus, tallies: list[Tally], cancel_requested: bool
) -> None:
    page = rules.page_of(status, tallies, cancel_requested=cancel_requested)
    wanted = Page.CANCEL if cancel_requested else Page.HOLD if status == WorkflowStatus.ESCALATED else Page.RELEASE
    left = sum(getattr(each, f"to_{wanted}") for each in tallies)
    assert page == (wanted if left else None)


@given(st.integers(0, rules.MOST_ELEMENTS), st.lists(st.none() | st.text(max_size=rules.LONGEST_KEY), max_size=5))
def test_a_list_with_short_keys_can_be_used(length: int, keys: list[str | None]) -> None:
    assert rules.fault_of_list("array", length, "/parts", keys) is None
    assert rules.fault_of_list("array", length, "/parts", None) is None


@pytest.mark.parametrize(
    ("kind", "length", "keys", "fault"),
    [
        (None, None, None, "there is nothing at /parts in the result that it is for each of"),
        ("object", None, None, "a list is wanted, and object is there"),
        ("array", rules.MOST_ELEMENTS + 1, None, "the list has 1001 elements, and 1000 are the most"),
        ("array", 2, [None, "k" * 256], "the concurrency key of element 1 has 256 characters, and 255 are the most"),
    ],
)
def test_why_a_list_cannot_be_used(
    kind: str | None, length: int | None, keys: list[str | None] | None, fault: str
) -> None:
    assert rules.fault_of_list(kind, length, "/parts", keys) == fault


@given(st.sampled_from(WorkflowStatus), st.sampled_from(WorkflowStatus))
def test_a_change_of_the_status_has_a_name_that_leads_to_it(was: WorkflowStatus, now: WorkflowStatus) -> None:
    name = rules.change_of(was, now)
    assert now in next(change for change in CHANGES if change.name == name).targets


def test_only_a_resume_leads_from_escalated_back_to_running() -> None:
    running = {was: rules.change_of(was, WorkflowStatus.RUNNING) for was in WorkflowStatus}
    assert [was for was, name in running.items() if name == "resume"] == [WorkflowStatus.ESCALATED]
