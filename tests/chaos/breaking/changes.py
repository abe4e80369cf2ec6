"""How the engine is broken on purpose: a piece of a module as it is loaded, or of a function in the database."""

import asyncio
import importlib.util
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from windlass.shared.store.functions import named

MUTATED = Path(__file__).parent / "mutated"
"""On the path of a process, it loads changed modules."""


class NotThere(LookupError):
    """The piece that is to be changed is not in the text exactly once."""


@dataclass(frozen=True)
class SourceChange:
    """In a module, before it is loaded."""

    module: str
    old: str
    new: str
    also: "SourceChange | FunctionChange | None" = None
    """A second place that keeps the same promise."""

    def changed(self, text: str) -> str:
        return _replaced(self.module, text, self.old, self.new)

    def text(self) -> str:
        spec = importlib.util.find_spec(self.module)
        assert spec is not None
        assert spec.origin is not None
        return Path(spec.origin).read_text()


@dataclass(frozen=True)
class FunctionChange:
    """In a function of this build's set, as the database has it: under its name, so that its processes run it."""

    function: str
    old: str
    new: str
    beforehand: str = ""
    """A statement that takes away what stands behind that piece and would hide that it is gone."""
    also: "FunctionChange | None" = None
    """Where that is a piece of another function."""

    def changed(self, text: str) -> str:
        return _replaced(self.function, text, self.old, self.new)


@dataclass(frozen=True)
class Mutation:
    """`criterion` is the one that has to turn red."""

    name: str
    criterion: int
    words: str
    change: SourceChange | FunctionChange


def prepare(mutation: Mutation | None, directory: Path) -> dict[str, str]:
    """What has to be in the environment of the processes that are to run the changed source."""
    changes: dict[str, list[tuple[str, str]]] = defaultdict(list)
    change = None if mutation is None else mutation.change
    while isinstance(change, SourceChange):
        change.changed(change.text())
        changes[change.module].append((change.old, change.new))
        change = change.also
    if not changes:
        return {}
    path = directory / "source_changes.json"
    path.write_text(json.dumps(changes))
    return {"CHAOS_SOURCE_CHANGES": str(path), "PYTHONPATH": str(MUTATED)}


def alter(mutation: Mutation | None, database_url: str) -> None:
    """Replaces the changed function in the database; in force with the next call."""
    change = None if mutation is None else mutation.change
    while isinstance(change, SourceChange):
        change = change.also
    if change is not None:
        asyncio.run(_alter(change, database_url))


async def _alter(change: FunctionChange, database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    try:
        if change.beforehand:
            await connection.execute(change.beforehand)
        text = await connection.fetchval("SELECT pg_get_functiondef($1::text::regproc)", named(change.function))
        await connection.execute(change.changed(text))
        if change.also is not None:
            await _alter(change.also, database_url)
    finally:
        await connection.close()


def _replaced(where: str, text: str, old: str, new: str) -> str:
    if text.count(old) != 1:
        raise NotThere(f"{where} has {text.count(old)} times {old!r}, and is to be changed there")
    return text.replace(old, new)
