"""Pieces of SQL that the tables and the statements must write alike, lest an index be passed over.

Apart from the tables, because whoever runs a statement need not build them: that takes half a second.
"""

from enum import StrEnum

from windlass.shared.states import TERMINAL, WAITING


def words(values: tuple[str, ...] | type[StrEnum]) -> str:
    """`('queued', 'retrying')`: a list of words as SQL writes it."""
    return "(" + ", ".join(f"'{value}'" for value in values) + ")"


FINISHED = f"status IN {words(TERMINAL)}"


def due(moment: str) -> str:
    """That task `t` may start at a moment: it waits, its time has come and it is not too old.

    Written out where it is asked, not called: the planner finds an index by the condition's own words.
    """
    return f"""t.status IN {words(WAITING)} AND t.available_at <= {moment}
    AND (t.expires_at IS NULL OR t.expires_at > {moment})"""


def floor(floors: str, queue: str, lane: str, priority: str) -> str:
    """The age at which a probe begins: as it is remembered (`floors.sql`), and mostly from the beginning."""
    return f"""CASE WHEN {floors} IS NULL THEN '-infinity' ELSE coalesce(
              ({floors} -> {queue} ->> ({lane} || {priority}))::timestamptz,
              ({floors} -> {queue} ->> 'else')::timestamptz, '-infinity') END"""


def stopped(task: str) -> str:
    """The group of a task keeps it from starting: it is closed, or as many of its tasks have failed as its limit says.
    The group's tasks are held or cancelled then, in pages; until its page comes, a task must not start either. A task
    with an open job at its provider continues.

    Written out where it is used: a call for each task takes longer.
    """
    return f"""EXISTS (
        SELECT 1 FROM task_groups g WHERE g.group_id = {task}.group_id AND (g.is_closed OR g.failure_limit <= (
            SELECT count(*) FROM (
                SELECT 1 FROM group_failures f WHERE f.group_id = g.group_id LIMIT g.failure_limit) AS failed)))"""  # noqa: S608 - the name is written by us


def startable_since(task: str) -> str:
    """What had to wait for others could not start before the last of them had completed."""
    return f"""CASE WHEN {task}.depends_on = '{{}}' THEN {task}.available_at ELSE greatest({task}.available_at, (
        SELECT max(e.at) FROM task_events e WHERE e.task_id = {task}.task_id AND e.type = 'unblock')) END"""  # noqa: S608 - the same


SEARCHED_TEXT = (
    "left(coalesce(payload ->> 'prompt', payload ->> 'content', ''), 300)"
    " || ' ' || left(coalesce(error ->> 'message', ''), 300)"
)
"""What `q` looks through: the beginning of the prompt or content, and the error message."""

HAS_TEXT = f"({SEARCHED_TEXT}) <> ' '"
"""Whether there is anything to look through: a probe, for one, has nothing, and costs the index of it nothing."""
