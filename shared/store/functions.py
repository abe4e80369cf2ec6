"""The engine's SQL functions: read from the files beside this one, their guards filled in from the state machine."""

import re
from pathlib import Path

from windlass.shared.sql_fragments import due, words
from windlass.shared.states import TRANSITIONS

FOLDER = Path(__file__).parent / "sql"

LEVEL = 1
"""Raised when moves get new duties: no function moves a task whose level is above its own set's."""


def definitions() -> list[str]:
    """Every function's CREATE statements. They are code, not data: each migration drops and creates them anew."""
    return [fill_in(path.read_text()) for path in sorted(FOLDER.glob("*.sql"))]


def names() -> list[str]:
    return re.findall(r"CREATE FUNCTION (\w+)", "\n".join(definitions()))


def split(definition: str) -> list[str]:
    """The driver takes one statement at a time; in these files each one begins with CREATE FUNCTION."""
    return ["CREATE FUNCTION" + part for part in definition.split("CREATE FUNCTION")[1:]]


def fill_in(statement: str) -> str:
    """`:sources_of_claim` becomes `('queued', 'retrying')`, `:target_of_claim` becomes `'running'`,
    `:due_at(moment)` what makes task `t` due at that moment, and `:level` the level of this set."""

    def sources(match: re.Match[str]) -> str:
        return words(TRANSITIONS[match[1]].sources)

    def target(match: re.Match[str]) -> str:
        (only,) = TRANSITIONS[match[1]].targets
        return f"'{only}'"

    statement = re.sub(r":level\b", str(LEVEL), statement)
    statement = re.sub(r":due_at\((\w+(?:\(\))?)\)", lambda match: due(match[1]), statement)
    return re.sub(r":target_of_(\w+)", target, re.sub(r":sources_of_(\w+)", sources, statement))
