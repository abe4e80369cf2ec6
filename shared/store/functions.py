"""The engine's SQL functions: read from the rooms of `sql/`, their guards filled in from the state machine.

All of them together are a set, in a schema of its own whose name is their hash: docs/decisions/0034.
"""

import re
from functools import cache
from hashlib import sha256
from pathlib import Path

from windlass.shared.concerns import (
    HEARS_OF_SUBMITS,
    LEFT_OUT_ACTORS,
    LOCKS_A_SUBJECT,
    OWNERS,
    SUBJECTS,
    SUBSCRIBERS,
    Concern,
)
from windlass.shared.sql_fragments import due, floor, halted, startable_since, words
from windlass.shared.states import TRANSITIONS
from windlass.shared.store.columns import COLUMNS
from windlass.shared.store.tellers import TELLERS, Tellers, counted_alone, telling, telling_of_one, told

FOLDER = Path(__file__).parent / "sql"

ALL_CONCERNS = """(each.concerns | CASE WHEN each.actor IN (:left_out_actors) THEN 0 ELSE coalesce((
    SELECT g.bits FROM global_subscriptions g), 0) END)"""


def files() -> list[Path]:
    """Of all rooms, in the order of their own names: a file that moves to another room leaves the set as it is."""
    return sorted(FOLDER.rglob("*.sql"), key=lambda path: path.name)


def definitions(tellers: Tellers = TELLERS) -> list[str]:
    """Every function's CREATE statements, as they are written but for what is filled in."""
    return [fill_in(path.read_text(), tellers) for path in files()]


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


def statements(tellers: Tellers = TELLERS) -> list[str]:
    """What makes the set, one statement after the other, as the driver takes them: in these files each one begins with
    CREATE FUNCTION."""
    texts = map(qualified, definitions(tellers))
    return ["CREATE FUNCTION" + part for text in texts for part in text.split("CREATE FUNCTION")[1:]]


def fill_in(statement: str, tellers: Tellers = TELLERS) -> str:
    """`:sources_of_claim` becomes `('queued', 'retrying')`, `:target_of_claim` becomes `'running'`,
    `:due_at(moment)` what makes task `t` one that it may start at that moment, `:floor(floors, queue,
    lane, priority)` where a probe for these begins, `:is_halted(t)` whether its workflow keeps it from that,
    `:startable_since(t)` since when it could have started, `:concern_of_key` the bit of a concern, `:locks_a_subject`
    the concerns of who is in a workflow, `:owners` the bits of features that own their tasks, `:hears_of_submits` those
    that are told of new tasks, and `:told`, `:telling_of_one` and `:tellers` who is told of moves, and how.
    `:counted_alone(m.told)` is whether these
    concerns are a workflow's and no other's, which may be told of many at once. `:all_concerns_of(m)` are the concerns
    of a task with the global subscriptions, which leave out the tasks of `:left_out_actors`. `:subscribers` lists the
    features that handle moves from the outbox with their bits, `:outbox_bits` is all of these bits, and
    `:subject_of(f.feature, m)` the subject of one of them.

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
    statement = re.sub(r":is_halted\((\w+)\)", lambda match: halted(match[1]), statement)
    statement = re.sub(r":startable_since\((\w+)\)", lambda match: startable_since(match[1]), statement)
    statement = re.sub(
        r":all_concerns_of\((\w+)\)", lambda match: ALL_CONCERNS.replace("each.", f"{match[1]}."), statement
    )
    statement = re.sub(r":counted_alone\(([\w.]+)\)", lambda match: counted_alone(match[1], tellers), statement)
    statement = re.sub(r":concern_of_(\w+)", lambda match: str(Concern[match[1].upper()].value), statement)
    statement = statement.replace(":left_out_actors", words(LEFT_OUT_ACTORS)[1:-1])
    statement = statement.replace(":locks_a_subject", str(int(LOCKS_A_SUBJECT)))
    statement = statement.replace(":owners", str(int(OWNERS)))
    statement = statement.replace(":hears_of_submits", str(int(HEARS_OF_SUBMITS)))
    subscribers = "VALUES " + ", ".join(f"('{each.word}', {each.value})" for each in SUBSCRIBERS)
    statement = statement.replace(":subscribers", subscribers).replace(":outbox_bits", str(int(SUBSCRIBERS)))
    statement = re.sub(r":subject_of\(([\w.]+), (\w+)\)", lambda match: subject_of(*match.groups()), statement)
    statement = statement.replace(":tellers", telling(tellers)).replace(":telling_of_one", telling_of_one(tellers))
    statement = statement.replace(":told", told(tellers))
    return re.sub(r":target_of_(\w+)", target, re.sub(r":sources_of_(\w+)", sources, statement))


def subject_of(feature: str, move: str) -> str:
    """The task itself, or the id that its row names."""
    named = " ".join(
        f"WHEN '{each.word}' THEN (SELECT t.{column}::uuid FROM tasks t WHERE t.task_id = {move}.task_id)"  # noqa: S608
        for each, column in SUBJECTS.items()
    )
    return f"CASE {feature} {named} ELSE {move}.task_id END"
