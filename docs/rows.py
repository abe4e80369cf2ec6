"""Draws the classes of the rows from the tables: what SQLModel knows about a column, without SQLModel."""

import types
from pathlib import Path
from typing import Any, Union, get_args, get_origin

from sqlmodel import SQLModel

from windlass.shared import models

ROWS = Path(__file__).parent.parent / "shared" / "store" / "rows.py"

HEAD = '''\
"""A class for the rows of each table, drawn from `shared/models` by `make fmt`; `make check` fails when it is stale."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from windlass.shared.store.record import Record
'''


def rows() -> str:
    tables = [each for each in vars(models).values() if isinstance(each, type) and issubclass(each, SQLModel)]
    return "\n\n".join([HEAD, *(_class(table) for table in sorted(tables, key=lambda table: table.__name__))])


def _class(table: type[SQLModel]) -> str:
    columns = [f"    {name}: {_written(field.annotation)}" for name, field in table.model_fields.items()]
    title = f'    """A row of `{table.__tablename__}`, or those of its columns that were selected."""\n'
    return "\n".join([f"class {table.__name__}Row(Record):", title, *columns, ""])


def _written(kind: Any) -> str:
    if get_origin(kind) in {Union, types.UnionType}:
        return " | ".join(map(_written, get_args(kind)))
    if kind is types.NoneType:
        return "None"
    if get_origin(kind) is not None:
        return f"{get_origin(kind).__name__}[{', '.join(map(_written, get_args(kind)))}]"
    return str(kind.__name__)
