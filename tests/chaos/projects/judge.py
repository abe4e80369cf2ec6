"""Criteria 8 to 11: what a project promises, judged by rows, by what people were told, and by /proc."""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence

from tests.chaos.judge.owners import GRACE_SECONDS, was_frozen
from tests.chaos.judge.rows import EventRow, Rows
from tests.chaos.judge.violation import LEFT_ALIVE, RUN_AFTER_A_STOP, RUN_TWICE, TWO_OPEN_RUNS, UNTRUE, Violation
from tests.chaos.projects.record import Call
from tests.chaos.projects.rows import ProjectRows, RunRow
from tests.chaos.record import Record

STARTS = ("run", "loop", "revive")
STOPS = ("stop", "force-stop")
AGAIN = ("requeue", "revive", "bulk")
"""What lets an item run that has been run."""
ENDS = {"complete", "bury", "cancel"}
ENDS_OF_AN_ATTEMPT = {*ENDS, "retry", "stall", "interrupt"}
STATE_AFTER = {"completed": "done", "dead": "failed", "cancelled": "failed", "lost": "failed", "withdrawn": "waiting"}


def judge_projects(record: Record, rows: Rows, projects: ProjectRows, lease_seconds: float) -> Iterator[Violation]:
    runs: dict[str, list[RunRow]] = defaultdict(list)
    for run in projects.runs:
        runs[run.project_id].append(run)
    for project_id, of_project in runs.items():
        yield from two_open_runs(of_project, rows, projects)
        yield from run_after_a_stop(record, project_id, of_project)
        yield from run_twice(record, project_id, of_project, rows)
    yield from untrue_words(record, rows, projects, lease_seconds)
    yield from untrue_rows(record, rows, projects, runs)


# 8


def two_open_runs(runs: Sequence[RunRow], rows: Rows, projects: ProjectRows) -> Iterator[Violation]:
    """By their own rows, and by the attempts at their tasks, also of those that were exchanged for others."""
    for earlier, later in itertools.pairwise(runs):
        if earlier.ended_at is None or earlier.ended_at > later.started_at:
            words = f"run {later.run_id} of project {later.project_id} began while run {earlier.run_id} was open"
            yield Violation(TWO_OPEN_RUNS, words, later.task_id, later.started_at)
    project_id = runs[0].project_id
    attempts = sorted(
        (began, ended, task_id)
        for task_id, whose in projects.tasks.items()
        if whose == project_id
        for began, ended in _spans(rows.events.get(task_id, ()), {"claim"}, ENDS_OF_AN_ATTEMPT)
    )
    for (_, ended, first), (began, _, second) in itertools.pairwise(attempts):
        if first != second and ended > began:
            words = f"tasks {first} and {second} of project {project_id} were at work together"
            yield Violation(TWO_OPEN_RUNS, words, second, began)


# 9


def run_after_a_stop(record: Record, project_id: str, runs: Sequence[RunRow]) -> Iterator[Violation]:
    """A run began by a call or a schedule, or followed another in its chain: then no stop may have been asked and
    answered since the chain began. No word of the engine's is believed about which of the two it was."""
    starts = record.projects.of(project_id, *STARTS)
    stops = [call for call in record.projects.of(project_id, *STOPS) if call.status in {200, 202}]
    chain_began: float | None = None
    for run in runs:
        if run.is_scheduled or any(call.may_be_behind(run.started_at) for call in starts):
            chain_began = run.started_at
            continue
        if chain_began is None or run.mode != "loop":
            words = f"run {run.run_id} of project {project_id} began, and nobody had asked for it"
            yield Violation(RUN_AFTER_A_STOP, words, run.task_id, run.started_at)
            continue
        for stop in stops:
            if chain_began <= stop.asked_at and stop.done_at < run.started_at:
                late = run.started_at - stop.done_at
                words = f"run {run.run_id} of project {project_id} began {late:.2f} s after a {stop.kind} was answered"
                yield Violation(RUN_AFTER_A_STOP, words, run.task_id, run.started_at)
                break


# 10


def run_twice(record: Record, project_id: str, runs: Sequence[RunRow], rows: Rows) -> Iterator[Violation]:
    """A run that was withdrawn was none: its item waits on."""
    again = record.projects.of(project_id, *AGAIN)
    last: dict[str, RunRow] = {}
    for run in runs:
        before = last.get(run.item_id)
        if before is not None and before.ended_at is not None and not _may_run_again(again, before, run, rows):
            words = f"item {run.item_id} was {before.state} by run {before.run_id}, and was run again by {run.run_id}"
            yield Violation(RUN_TWICE, words, run.task_id, run.started_at)
        if run.state != "withdrawn":
            last[run.item_id] = run


def _may_run_again(calls: Sequence[Call], before: RunRow, run: RunRow, rows: Rows) -> bool:
    """A bulk job is done some time after it was accepted. An item is chosen late: it is the run's from when its task
    was submitted, which may be long after the run began with another."""
    chosen_at = max([run.started_at, *(each.at for each in rows.events.get(run.task_id, ()) if each.type == "submit")])
    return any(
        call.may_have_been_heard
        and call.asked_at <= chosen_at
        and (call.kind == "bulk" or call.heard_until >= (before.ended_at or 0.0))
        and call.about in {None, run.item_id, run.task_id}
        for call in calls
    )


# 11, and 7 for those who were told that nothing lives


def untrue_words(record: Record, rows: Rows, projects: ProjectRows, lease_seconds: float) -> Iterator[Violation]:
    """Idle means that no task of a run lives; and a force-stop that succeeded, that nothing that came of it does."""
    of_project: dict[str, list[str]] = defaultdict(list)
    for task_id, project_id in projects.tasks.items():
        of_project[project_id].append(task_id)
    for call in record.projects.calls:
        if call.said.get("state") != "idle":
            continue
        killed = [run["task_id"] for run in call.said.get("killed_runs", ()) if call.said.get("success")]
        family = _family(killed, projects)
        for task_id in {*of_project[call.project_id], *family}:
            lives = _spans(rows.events.get(task_id, ()), {"submit", "revive"}, ENDS)
            if any(began < call.asked_at and ended > call.done_at for began, ended in lives):
                words = f"project {call.project_id} called itself idle to a {call.kind} while task {task_id} lived"
                yield Violation(UNTRUE, words, task_id, call.done_at)
        yield from survivors(record, call, family, lease_seconds)


def survivors(record: Record, call: Call, family: set[str], lease_seconds: float) -> Iterator[Violation]:
    for sighting in record.sightings:
        is_of_before = sighting.task_id in family and sighting.first_at < call.asked_at
        if not is_of_before or sighting.last_at <= call.done_at + GRACE_SECONDS:
            continue
        if not was_frozen(record, call.done_at, sighting.last_at, lease_seconds):
            words = f"process {sighting.pid} was alive after a force-stop had said that nothing of its run was"
            yield Violation(LEFT_ALIVE, words, sighting.task_id, sighting.last_at)


def untrue_rows(
    record: Record, rows: Rows, projects: ProjectRows, runs: dict[str, list[RunRow]]
) -> Iterator[Violation]:
    """When all is settled: everything stands still, and says so."""
    ends = {run.run_id: run.state for run in projects.runs}
    for project in projects.projects:
        if project.state != "idle" or any(run.ended_at is None for run in runs[project.project_id]):
            words = f"project {project.project_id} is still {project.state}, or has an open run"
            yield Violation(UNTRUE, words, None, rows.at)
        if project.events != project.last_seq:
            words = f"project {project.project_id} has {project.events} rows of history, and counts {project.last_seq}"
            yield Violation(UNTRUE, words, None, rows.at)
    for item in projects.items:
        expected = STATE_AFTER.get(ends.get(item.last_run_id or "", ""))
        if expected is not None and item.state != expected:
            words = f"item {item.item_id} is {item.state} after its run was {ends[item.last_run_id or '']}"
            yield Violation(UNTRUE, words, None, rows.at)
        if item.project_id in record.projects.long_loops and item.state == "waiting":
            words = f"item {item.item_id} of the long loop {item.project_id} was never run"
            yield Violation(UNTRUE, words, None, rows.at)


def _family(roots: Sequence[str], projects: ProjectRows) -> set[str]:
    family = set(roots)
    while more := {child for child, parent in projects.parents.items() if parent in family} - family:
        family |= more
    return family


def _spans(events: Sequence[EventRow], begins: set[str], ends: set[str]) -> list[tuple[float, float]]:
    """From each beginning to the end after it; what has not ended lasts for ever."""
    spans, began = [], None
    for event in events:
        if event.type in begins and began is None:
            began = event.at
        elif event.type in ends and began is not None:
            spans.append((began, event.at))
            began = None
    return spans if began is None else [*spans, (began, float("inf"))]
