"""Every statement that locks rows by a clause names its order, skips, or locks a single row."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from windlass.shared.store import functions, locks

STORE = Path(locks.__file__).parent
FEATURES = STORE.parent / "features"
CLAUSE = re.compile(r"FOR (?:NO KEY UPDATE|UPDATE|SHARE|KEY SHARE)( OF \w+)?( SKIP LOCKED)?")
KEYS = {lock.table: lock.key for lock in locks.LOCK_ORDER if lock.table}


def locking() -> Iterator[tuple[str, str, bool]]:
    """Where, the statement up to its clause, and whether it skips."""
    for path in sorted({*functions.files(), *STORE.rglob("*.py"), *FEATURES.rglob("*.py")} - {Path(locks.__file__)}):
        text = re.sub(r"--.*", "", path.read_text()) if path.suffix == ".sql" else path.read_text()
        for found in CLAUSE.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield f"{path.name}:{line}", statement_before(text, found), bool(found[2])


def statement_before(text: str, found: re.Match[str]) -> str:
    """Back to the SELECT or PERFORM that the clause belongs to; what stands in parentheses between is left out."""
    depth, kept = 0, ""
    for at in range(found.start() - 1, -1, -1):
        letter = text[at]
        depth += (letter == ")") - (letter == "(")
        if depth == 0 and letter != "(":
            kept = letter + kept
            if re.match(r"(?:SELECT|PERFORM)\b", kept):
                return kept
        if depth < 0:
            break
    raise AssertionError(f"no SELECT before {found[0]!r}")


@pytest.mark.parametrize(("where", "statement", "skips"), [pytest.param(*each, id=each[0]) for each in locking()])
def test_it_waits_in_order_or_not_at_all(where: str, statement: str, skips: bool) -> None:
    table = re.search(r"\bFROM (\w+)", statement)
    assert table, where
    assert table[1] in KEYS, f"{where}: give {table[1]} a place in the order of locks"
    key = KEYS[table[1]]
    in_order = re.search(rf"ORDER BY (\w+\.)?{key}\b", statement)
    single = re.search(rf"WHERE (\w+\.)?({key}|generation_id) = (?!ANY)", statement)  # an order has one task
    assert skips or in_order or single, (
        f"{where} waits for rows of {table[1]} in no order: {' '.join(statement.split())}"
    )


def test_the_check_knows_a_statement_that_waits_in_no_order() -> None:
    text = "PERFORM 1 FROM tasks t WHERE t.task_id = ANY (ARRAY(SELECT 1)) FOR SHARE"
    found = CLAUSE.search(text)
    assert found
    with pytest.raises(AssertionError, match="in no order"):
        test_it_waits_in_order_or_not_at_all("here", statement_before(text, found), bool(found[2]))
