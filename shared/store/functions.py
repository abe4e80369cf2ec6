"""The engine's SQL functions: read from the rooms of `sql/`, their guards filled in from the state machine.

All of them together are a set, in a schema of its own whose name is their hash: docs/decisions/0034.
"""

import re
from functools import cache
from hashlib import sha256
from pathlib import Path

from windlass.shared.concerns import (
    LEFT_OUT_ACTORS,
    OWNERS,
    RECEIVES_SUBMITS,
    SUBJECTS,
    SUBSCRIBERS,
    Concern,
)
from windlass.shared.sql_fragments import due, floor, startable_since, stopped, words
from windlass.shared.states import TRANSITIONS
from windlass.shared.store.columns import COLUMNS

FOLDER = Path(__file__).parent / "sql"

ALL_CONCERNS = """(each.concerns | CASE WHEN each.actor IN (:left_out_actors) THEN 0 ELSE coalesce((
    SELECT g.bits FROM global_subscriptions g), 0) END)"""


def files() -> list[Path]:
    """Of all rooms, in the order of their own names: a file that moves to another room leaves the set as it is."""
    return sorted(FOLDER.rglob("*.sql"), key=lambda path: path.name)


def definitions() -> list[str]:
    """Every function's CREATE statements, as they are written but for what is filled in."""
    return [fill_in(path.read_text()) for path in files()]


@cache
def names() -> list[str]:
    return re.findall(r"CREATE FUNCTION (\w+)", "\n".join(definitions()))


@cache
def schema() -> str:
    """Where this build's functions are. Another text or column of a returned table is another schema, so that no build
    ever calls, or changes, the functions of another."""
    return f"windlass_{sha256(str(definitions()).encode()).hexdigest()[:12]}"


@cache
def named(function: str) -> str:
    """A function's name as a statement has to call it: `windlass_ab12cd34ef56.claim_tasks`."""
    if function not in names():
        raise LookupError(f"there is no function {function} in {FOLDER}")
    return f"{schema()}.{function}"


def qualified(definition: str) -> str:
    """With the schema's name before every function of the set, where it is called and where it is made."""
    own = rf"(?<![\w.])({'|'.join(names())})(?=\s*\()"
    return re.sub(own, rf"{schema()}.\1", definition)


def statements() -> list[str]:
    """What makes the set, one statement after the other, as the driver takes them: in these files each one begins with
    CREATE FUNCTION."""
    texts = map(qualified, definitions())
    return ["CREATE FUNCTION" + part for text in texts for part in text.split("CREATE FUNCTION")[1:]]


def fill_in(statement: str) -> str:
    """`:sources_of_claim` becomes `('queued', 'retrying')`, `:target_of_claim` becomes `'running'`,
    `:due_at(moment)` what makes task `t` one that it may start at that moment, `:floor(floors, queue,
    lane, priority)` where a probe for these begins, `:is_stopped(t)` whether its group keeps it from starting,
    `:startable_since(t)` since when it could have started, `:concern_of_key` the bit of a concern, `:owners` the bits
    of features that own their tasks, and `:receives_submits` those of features that count new tasks.
    `:all_concerns_of(m)` are the concerns of a task with the global subscriptions, which leave out the tasks of
    `:left_out_actors`.
    `:subscribers` lists the features that handle moves from the outbox with their bits, `:outbox_bits` is all of these
    bits, and `:subject_of(f.feature, m)` the subject of one of them.

    A function that returns whole rows names their columns, for a table's own row type changes under it:
    `:columns_of_tasks` becomes `task_id uuid, actor varchar, …`, and `:each_of_tasks(t)` `t.task_id, t.actor, …`.
    """

    def sources(match: re.Match[str]) -> str:
        return words(TRANSITIONS[match[1]].sources)

    def target(match: re.Match[str]) -> str:
        (only,) = TRANSITIONS[match[1]].targets
        return f"'{only}'"

    def columns(match: re.Match[str]) -> str:
        return ", ".join(f"{name} {kind}" for name, kind in COLUMNS[match[1]].items())

    def each(match: re.Match[str]) -> str:
        return ", ".join(f"{match[2]}.{name}" for name in COLUMNS[match[1]])

    statement = re.sub(r":columns_of_(\w+)", columns, statement)
    statement = re.sub(r":each_of_(\w+)\((\w+)\)", each, statement)
    statement = re.sub(r":due_at\((\w+(?:\(\))?)\)", lambda match: due(match[1]), statement)
    statement = re.sub(r":floor\(([^,]+), ([^,]+), ([^,]+), ([^)]+)\)", lambda match: floor(*match.groups()), statement)
    statement = re.sub(r":is_stopped\((\w+)\)", lambda match: stopped(match[1]), statement)
    statement = re.sub(r":startable_since\((\w+)\)", lambda match: startable_since(match[1]), statement)
    statement = re.sub(
        r":all_concerns_of\((\w+)\)", lambda match: ALL_CONCERNS.replace("each.", f"{match[1]}."), statement
    )
    statement = re.sub(r":concern_of_(\w+)", lambda match: str(Concern[match[1].upper()].value), statement)
    statement = statement.replace(":left_out_actors", words(LEFT_OUT_ACTORS)[1:-1])
    statement = statement.replace(":owners", str(int(OWNERS)))
    statement = statement.replace(":receives_submits", str(int(RECEIVES_SUBMITS)))
    subscribers = "VALUES " + ", ".join(f"('{each.word}', {each.value})" for each in SUBSCRIBERS)
    statement = statement.replace(":subscribers", subscribers).replace(":outbox_bits", str(int(SUBSCRIBERS)))
    statement = re.sub(r":subject_of\(([\w.]+), (\w+)\)", lambda match: subject_of(*match.groups()), statement)
    return re.sub(r":target_of_(\w+)", target, re.sub(r":sources_of_(\w+)", sources, statement))


def subject_of(feature: str, move: str) -> str:
    """The task itself, or the id that its row names."""
    named = " ".join(
        f"WHEN '{each.word}' THEN (SELECT t.{column}::uuid FROM tasks t WHERE t.task_id = {move}.task_id)"  # noqa: S608
        for each, column in SUBJECTS.items()
    )
    return f"CASE {feature} {named} ELSE {move}.task_id END"
