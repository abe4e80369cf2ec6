"""Rows as the store hands them out: the drawn classes say what Postgres answers, column by column."""

import inspect
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from sqlmodel import SQLModel

from docs.rows import ROWS, rows
from tests.support.engine.store import Engine, on_the_engine
from windlass.services.api.reference.documents.tasks import ListedTaskDocument
from windlass.shared import models
from windlass.shared.store import rows as drawn
from windlass.shared.store.record import Record, columns_of, fetchrow
from windlass.shared.store.rows import TaskRow
from windlass.shared.store.tasks import TASK_FIELDS

TABLES = {
    f"{model.__name__}Row": str(model.__tablename__)
    for model in vars(models).values()
    if isinstance(model, type) and issubclass(model, SQLModel)
}
KINDS: dict[str, Any] = {
    "bigint": int, "boolean": bool, "bytea": bytes, "character varying": str, "date": date, "double precision": float,
    "integer": int, "smallint": int, "text": str, "text[]": list[str], "timestamp with time zone": datetime,
    "integer[]": list[int], "timestamp with time zone[]": list[datetime], "uuid": UUID, "uuid[]": list[UUID],
    "numeric": Decimal, "real[]": list[float], "xid8": int,
}  # fmt: skip


def kinds_of(postgres_type: str, *, may_be_null: bool) -> list[Any]:
    """What a column may be declared as; a document may be anything, if the model does not say more."""
    if postgres_type == "tsvector":
        return [Any]
    if postgres_type == "jsonb":
        return [Any, dict[str, Any] | None if may_be_null else dict[str, Any]]
    return [KINDS[postgres_type] | None if may_be_null else KINDS[postgres_type]]


@on_the_engine
async def test_the_drawn_rows_say_what_postgres_answers(engine: Engine) -> None:
    classes = [each for each in vars(drawn).values() if inspect.isclass(each) and issubclass(each, Record)]
    for kind in [each for each in classes if each is not Record]:
        table = TABLES[kind.__name__]
        columns = await engine.pool.fetch(
            """
            SELECT attname, format_type(atttypid, NULL) AS type, NOT attnotnull AS may_be_null FROM pg_attribute
            WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped
            """,
            table,
        )
        assert set(columns_of(kind)) == {each["attname"] for each in columns}, table
        for each in columns:
            declared = inspect.get_annotations(kind)[each["attname"]]
            assert declared in kinds_of(each["type"], may_be_null=each["may_be_null"]), (table, each)


def test_the_drawn_module_is_not_stale() -> None:
    assert ROWS.read_text() == rows()


@on_the_engine
async def test_a_column_is_an_attribute_and_one_that_was_not_selected_is_named(engine: Engine) -> None:
    task_id = await engine.submit()
    row = await fetchrow(engine.pool, TaskRow, "SELECT task_id, status FROM tasks")
    assert row is not None
    assert (row.task_id, row.status) == (row["task_id"], row["status"]) == (task_id, "queued")
    with pytest.raises(KeyError, match="payload"):
        _ = row.payload


def test_a_reader_is_shown_what_the_reference_describes() -> None:
    assert {*TASK_FIELDS, "error_history", "title"} == set(ListedTaskDocument.model_fields)
    assert "claim_token" not in TASK_FIELDS
