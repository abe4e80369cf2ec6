"""What the tables have in common: how constraints are named, and the kinds of columns."""

from typing import Any

from sqlalchemy import (
    DDL,
    BigInteger,
    Column,
    Identity,
    MetaData,
    event,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.types import UserDefinedType
from sqlmodel import Field, SQLModel

event.listen(SQLModel.metadata, "before_create", DDL("CREATE EXTENSION IF NOT EXISTS pg_trgm"))  # type: ignore[no-untyped-call]
SQLModel.metadata.naming_convention = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
    }
).naming_convention


class Xid8(UserDefinedType[int]):
    """Postgres' 64-bit transaction id, which never wraps around."""

    cache_ok = True

    def get_col_spec(self, **_options: Any) -> str:
        return "XID8"


def moment(*, optional: bool = True) -> Any:
    return Field(
        default=None,
        sa_column=Column(
            TIMESTAMP(timezone=True),
            nullable=optional,
            server_default=None if optional else text("clock_timestamp()"),
        ),
    )


def document(*, optional: bool = True) -> Any:
    return Field(
        default=None,
        sa_column=Column(JSONB, nullable=optional, server_default=None if optional else text("'{}'::jsonb")),
    )


def number() -> Any:
    """A number that Postgres gives out, growing."""
    return Field(default=None, sa_column=Column(BigInteger, Identity(always=True), primary_key=True))


def counter() -> Any:
    return Field(default=0, sa_column_kwargs={"server_default": text("0")})
