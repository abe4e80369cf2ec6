"""Draws a class for the rows of each table that the code reads whole: the types of SQLModel, without SQLModel."""

import ast
import re
import types
from pathlib import Path
from typing import Any, Union, get_args, get_origin

from sqlmodel import SQLModel

from windlass.shared import models

PROJECT = Path(__file__).parent.parent
ROWS = PROJECT / "shared" / "store" / "rows.py"
MODULE = "windlass.shared.store.rows"
READERS = ("services", "shared", "windlass", "tests", "bench")
"""The folders whose imports decide which classes are drawn."""

HEAD = '''\
"""Classes for the rows of tables, drawn from `shared/models` by `make fmt`; `make check` fails when they are stale.

Only classes that are imported are drawn. To get one more, import it and run `make fmt`.
"""
'''

IMPORTS = {"datetime": ("date", "datetime"), "decimal": ("Decimal",), "typing": ("Any",), "uuid": ("UUID",)}
"""Where the types of columns come from."""


def rows() -> str:
    tables = [each for each in vars(models).values() if isinstance(each, type) and issubclass(each, SQLModel)]
    used = imported()
    classes = [_class(table) for table in sorted(tables, key=lambda table: table.__name__) if _name(table) in used]
    return "\n\n".join([f"{HEAD}\n{_imports(''.join(classes))}", *classes])


def imported() -> set[str]:
    """The names that the code imports from the drawn module."""
    return {
        name.name
        for folder in READERS
        for path in sorted((PROJECT / folder).rglob("*.py"))
        if MODULE in (text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and node.module == MODULE
        for name in node.names
    }


def _imports(classes: str) -> str:
    needed = {module: [name for name in names if _is_type(name, classes)] for module, names in IMPORTS.items()}
    lines = [f"from {module} import {', '.join(names)}\n" for module, names in needed.items() if names]
    return "".join([*lines, "\nfrom windlass.shared.store.record import Record\n"])


def _is_type(name: str, classes: str) -> bool:
    return re.search(rf": .*\b{name}\b", classes) is not None


def _name(table: type[SQLModel]) -> str:
    return f"{table.__name__}Row"


def _class(table: type[SQLModel]) -> str:
    columns = [f"    {name}: {_written(field.annotation)}" for name, field in table.model_fields.items()]
    title = f'    """A row of `{table.__tablename__}`, or those of its columns that were selected."""\n'
    return "\n".join([f"class {_name(table)}(Record):", title, *columns, ""])


def _written(kind: Any) -> str:
    if get_origin(kind) in {Union, types.UnionType}:
        return " | ".join(map(_written, get_args(kind)))
    if kind is types.NoneType:
        return "None"
    if get_origin(kind) is not None:
        return f"{get_origin(kind).__name__}[{', '.join(map(_written, get_args(kind)))}]"
    return str(kind.__name__)
