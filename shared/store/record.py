"""Rows as the store hands them out: every column is an attribute whose type is known, and nothing is copied."""

import inspect
from operator import itemgetter
from typing import TypeVar

import asyncpg

from windlass.shared.db import Database


class Record(asyncpg.Record):
    """A row as the driver makes it, with a name for each column that its class declares.

    `__getattr__` would take ten times as long as a subscript; this takes half as long again. A class may declare more
    than a statement selects: a column that is not there is a KeyError with its name.
    """

    def __init_subclass__(cls) -> None:
        for column in inspect.get_annotations(cls):
            setattr(cls, column, property(itemgetter(column)))


Kind = TypeVar("Kind", bound=Record)


async def fetch(db: Database, kind: type[Kind], query: str, *values: object) -> list[Kind]:
    return await db.fetch(query, *values, record_class=kind)


async def fetchrow(db: Database, kind: type[Kind], query: str, *values: object) -> Kind | None:
    return await db.fetchrow(query, *values, record_class=kind)


def columns_of(kind: type[Record]) -> tuple[str, ...]:
    """As they are declared, those of the class that it extends first."""
    declared = (inspect.get_annotations(each) for each in reversed(kind.__mro__) if issubclass(each, Record))
    return tuple(column for annotations in declared for column in annotations)
