"""The five mutations of the engine: which exact piece of its text is changed, and which promise that breaks."""

import asyncio
import importlib.util
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from tests.chaos.violation import COMPLETED_WRONGLY, ORDERED_TWICE, OVER_THE_LIMIT, STREAM_BROKEN, UNFINISHED
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

    def changed(self, text: str) -> str:
        return _replaced(self.function, text, self.old, self.new)


@dataclass(frozen=True)
class Mutation:
    """`criterion` is the one that has to turn red."""

    name: str
    criterion: int
    words: str
    change: SourceChange | FunctionChange


MUTATIONS = (
    Mutation(
        "no-fence",
        COMPLETED_WRONGLY,
        "an end is written by whoever brings it, not only by who holds the lease",
        FunctionChange("end_tasks", " AND t.attempt = e.attempt AND t.claim_token = e.claim_token", ""),
    ),
    Mutation(
        "slot-freed-before-the-kill",
        OVER_THE_LIMIT,
        "a frozen worker is killed a lease after its slots were given away, not before",
        SourceChange(
            "windlass.services.actors.worker.leases.lease_watch",
            "self._spare = settings.stop_grace_seconds + settings.lease_margin_seconds",
            "self._spare = -settings.lease_seconds",
        ),
    ),
    Mutation(
        "no-re-ringing",
        UNFINISHED,
        "nobody rings again for a task whose doorbell was lost",
        SourceChange(
            "windlass.services.dispatcher.main", "await ring_again(self.pool, self.publisher, self.settings)", "pass"
        ),
    ),
    Mutation(
        "order-repeated-after-a-kill",
        ORDERED_TWICE,
        "an attempt does not look for what an earlier one has ordered",
        SourceChange("windlass.services.actors.media.orders", "before = self._latest()", "before = None"),
    ),
    Mutation(
        "stream-skips-a-seq",
        STREAM_BROKEN,
        "a client that comes back goes on one event too late",
        SourceChange(
            "windlass.services.api.streams.one_task",
            "    return int(last_seen)\n",
            '    return min(int(last_seen) + 1, row["last_seq"])\n',
        ),
    ),
)


def prepare(mutation: Mutation | None, directory: Path) -> dict[str, str]:
    """What has to be in the environment of the processes that are to run the changed source."""
    changes: dict[str, list[tuple[str, str]]] = defaultdict(list)
    if mutation is not None and isinstance(mutation.change, SourceChange):
        change = mutation.change
        change.changed(change.text())
        changes[change.module].append((change.old, change.new))
    if not changes:
        return {}
    path = directory / "source_changes.json"
    path.write_text(json.dumps(changes))
    return {"CHAOS_SOURCE_CHANGES": str(path), "PYTHONPATH": str(MUTATED)}


def alter(mutation: Mutation | None, database_url: str) -> None:
    """Replaces the changed function in the database; in force with the next call."""
    if mutation is not None and isinstance(mutation.change, FunctionChange):
        asyncio.run(_alter(mutation.change, database_url))


async def _alter(change: FunctionChange, database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    try:
        text = await connection.fetchval("SELECT pg_get_functiondef($1::text::regproc)", named(change.function))
        await connection.execute(change.changed(text))
    finally:
        await connection.close()


def _replaced(where: str, text: str, old: str, new: str) -> str:
    if text.count(old) != 1:
        raise NotThere(f"{where} has {text.count(old)} times {old!r}, and is to be changed there")
    return text.replace(old, new)
