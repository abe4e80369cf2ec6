"""Draws the columns, with their SQL types, of the tables whose whole rows SQL functions return."""

import re
from pathlib import Path

from sqlalchemy import Column
from sqlalchemy.dialects import postgresql
from sqlmodel import SQLModel

from windlass.shared import models

STORE = Path(__file__).parent.parent / "shared" / "store"
COLUMNS = STORE / "columns.py"

HEAD = '''\
"""The columns, with types, of tables whose whole rows SQL functions return; drawn from `shared/models` by `make fmt`.

A table is drawn when a file of `sql/` names it in `:columns_of_…` or `:each_of_…`.
"""

COLUMNS: dict[str, dict[str, str]] = {
'''


def columns() -> str:
    assert models.__name__  # declares the tables
    tables = SQLModel.metadata.tables
    return HEAD + "".join(_entry(name, list(tables[name].columns)) for name in sorted(returned())) + "}\n"


def returned() -> set[str]:
    """The tables whose columns the SQL functions leave to be filled in."""
    written = "".join(path.read_text() for path in (STORE / "sql").rglob("*.sql"))
    return set(re.findall(r":(?:columns_of|each_of)_(\w+)", written))


def _entry(table: str, of_it: list[Column[object]]) -> str:
    lines = [f'        "{each.name}": "{_type(each)}",\n' for each in of_it]
    return f'    "{table}": {{\n{"".join(lines)}    }},\n'


def _type(column: Column[object]) -> str:
    return column.type.compile(dialect=postgresql.dialect()).lower()  # type: ignore[no-untyped-call]
