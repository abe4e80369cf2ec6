"""A metric never turns what has been committed into a failure: what cannot be counted has happened all the same."""

from typing import Any, cast
from uuid import uuid4

import pytest

from tests.support.engine.store import RULES, Engine, an_ending, on_the_engine
from windlass.shared.db import Database
from windlass.shared.metrics.seam import counted_afterwards
from windlass.shared.store import tasks
from windlass.shared.store.record import Record
from windlass.shared.store.tasks import Claim, Claimed


class WithoutColumn:
    """The pool as a process meets it whose database knows nothing of a column that only the metrics need."""

    def __init__(self, pool: Any, column: str) -> None:
        self._pool = pool
        self._column = column

    async def fetch(self, *statement: Any, record_class: type[Record]) -> list["Lacking"]:
        rows = await self._pool.fetch(*statement, record_class=record_class)
        assert all(self._column in row for row in map(dict, rows)), "it is there to be missed"
        return [Lacking(row, self._column) for row in rows]


class Lacking:
    """A row as such a database would answer."""

    def __init__(self, row: Record, column: str) -> None:
        self._row = row
        self._column = column

    def __getattr__(self, name: str) -> Any:
        if name == self._column:
            raise KeyError(name)
        return getattr(self._row, name)

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def items(self) -> list[tuple[str, Any]]:
        return [(name, value) for name, value in self._row.items() if name != self._column]


@on_the_engine
async def test_a_claim_whose_wait_cannot_be_counted_is_granted(engine: Engine) -> None:
    task_id, token = await engine.submit(), uuid4()
    pool = cast(Database, WithoutColumn(engine.pool, "waited_seconds"))
    (answer,) = await tasks.claim(pool, "worker-1", [Claim(task_id, token)], 30)
    assert isinstance(answer, Claimed)
    assert (answer.task_id, answer.claim_token) == (task_id, token)
    assert await engine.status(task_id) == "running"


@on_the_engine
async def test_an_end_whose_age_cannot_be_counted_is_an_end(engine: Engine) -> None:
    attempt = await engine.running()
    pool = cast(Database, WithoutColumn(engine.pool, "age_seconds"))
    assert await tasks.end(pool, [an_ending(attempt, "complete")], RULES) == ["completed"]
    assert await engine.status(attempt.task_id) == "completed"


@on_the_engine
async def test_an_end_by_an_error_without_a_type_is_an_end(engine: Engine) -> None:
    """The metric asks whose fault it was; nobody else does."""
    attempt = await engine.running()
    ending = an_ending(attempt, "bury", error={"message": "of an actor that says no more"})
    assert await tasks.end(engine.pool, [ending], RULES) == ["dead"]


@on_the_engine
async def test_what_is_taken_back_or_too_old_comes_back_whether_or_not_it_can_be_counted(engine: Engine) -> None:
    attempt = await engine.running()
    await engine.lapse(attempt.task_id)
    pool = cast(Database, WithoutColumn(engine.pool, "actor"))
    assert [row["task_id"] for row in await tasks.stall(pool)] == [attempt.task_id]
    old = await engine.submit(max_age_seconds=60)
    await engine.outlive(old)
    assert [row["task_id"] for row in await tasks.expire(pool)] == [old]


def test_what_could_not_be_counted_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    counted = []

    @counted_afterwards
    def of_these(number: int) -> None:
        counted.append(1 / number)

    for number in (0, 0, 2):
        of_these(number)
    assert counted == [0.5]
    (told,) = caplog.records
    assert "of_these could not be counted" in told.getMessage()
    assert told.exc_info
