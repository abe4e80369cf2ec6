"""Draws the columns of the tables and their SQL types, for the functions that return whole rows."""

from pathlib import Path

from sqlalchemy import Column
from sqlalchemy.dialects import postgresql
from sqlmodel import SQLModel

from windlass.shared import models

COLUMNS = Path(__file__).parent.parent / "shared" / "store" / "columns.py"

HEAD = '''\
"""The columns of each table with their types, drawn from `shared/models` by `make fmt`: what functions return of it."""

COLUMNS: dict[str, dict[str, str]] = {
'''


def columns() -> str:
    assert models.__name__  # declares the tables
    tables = sorted(SQLModel.metadata.tables.values(), key=lambda table: table.name)
    drawn = [_entry(table.name, list(table.columns)) for table in tables]
    return HEAD + "".join(drawn) + "}\n"


def _entry(table: str, of_it: list[Column[object]]) -> str:
    lines = [f'        "{each.name}": "{_type(each)}",\n' for each in of_it]
    return f'    "{table}": {{\n{"".join(lines)}    }},\n'


def _type(column: Column[object]) -> str:
    return column.type.compile(dialect=postgresql.dialect()).lower()  # type: ignore[no-untyped-call]
