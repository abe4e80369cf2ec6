"""The engine's SQL functions: read from the files beside this one, their guards filled in from the state machine."""

import re
from pathlib import Path

from windlass.shared.sql_fragments import due, words
from windlass.shared.states import TRANSITIONS
from windlass.shared.store.tellers import TELLERS, Tellers, telling, told

FOLDER = Path(__file__).parent / "sql"

LEVEL = 1
"""Raised when the moves of a task get new duties. No function moves a task of a higher level than its own, for it would
leave out what that task's moves have to do."""


def definitions(tellers: Tellers = TELLERS) -> list[str]:
    """Every function's CREATE statements. They are code, not data: each migration drops and creates them anew."""
    return [fill_in(path.read_text(), tellers) for path in sorted(FOLDER.glob("*.sql"))]


def names() -> list[str]:
    return re.findall(r"CREATE FUNCTION (\w+)", "\n".join(definitions()))


def split(definition: str) -> list[str]:
    """The driver takes one statement at a time; in these files each one begins with CREATE FUNCTION."""
    return ["CREATE FUNCTION" + part for part in definition.split("CREATE FUNCTION")[1:]]


def fill_in(statement: str, tellers: Tellers = TELLERS) -> str:
    """`:sources_of_claim` becomes `('queued', 'retrying')`, `:target_of_claim` becomes `'running'`, `:level` the level
    of these functions, `:due_at(moment)` what makes task `t` one that they may start at that moment, and `:told` and
    `:tellers` who is told of moves, and how."""

    def sources(match: re.Match[str]) -> str:
        return words(TRANSITIONS[match[1]].sources)

    def target(match: re.Match[str]) -> str:
        (only,) = TRANSITIONS[match[1]].targets
        return f"'{only}'"

    statement = re.sub(r":due_at\((\w+(?:\(\))?)\)", lambda match: due(match[1]) + " AND t.level <= :level", statement)
    statement = statement.replace(":level", str(LEVEL))
    statement = statement.replace(":tellers", telling(tellers)).replace(":told", told(tellers))
    return re.sub(r":target_of_(\w+)", target, re.sub(r":sources_of_(\w+)", sources, statement))
