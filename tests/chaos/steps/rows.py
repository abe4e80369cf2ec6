"""The finished steps as the judge reads them, by a statement of its own, and the books of those who ran them."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg


@dataclass(frozen=True)
class StepRow:
    """What was kept of a step, and by which attempt."""

    task_id: str
    name: str
    attempt: int
    result: Any
    at: float


@dataclass(frozen=True)
class Entry:
    """One run of a step's function, written down before its work."""

    task_id: str
    name: str
    attempt: int
    at: float


@dataclass(frozen=True)
class StepRows:
    kept: Sequence[StepRow] = ()
    entries: Sequence[Entry] = ()


KEPT = """
    SELECT task_id::text, name, attempt, result::text, extract(epoch FROM created_at)::float AS at FROM task_steps
"""


def read_steps(database_url: str, directory: Path | None) -> StepRows:
    """Nothing, where nobody has kept books."""
    if directory is None:
        return StepRows()
    kept = asyncio.run(_read(database_url))
    # Read last: what a row says was run is in the books by then.
    return StepRows(kept, _entries(directory / "books"))


async def _read(database_url: str) -> list[StepRow]:
    connection = await asyncpg.connect(database_url, timeout=30)
    try:
        rows = await connection.fetch(KEPT)
    finally:
        await connection.close()
    return [StepRow(**{**row, "result": json.loads(row["result"])}) for row in map(dict, rows)]


def _entries(books: Path) -> list[Entry]:
    """A line that a kill cut short harms no other."""
    lines = books.read_text().splitlines() if books.exists() else []
    found = [json.loads(line) for line in lines if line.endswith("}")]
    return [Entry(each["task_id"], each["step"], each["attempt"], each["at"]) for each in found]
