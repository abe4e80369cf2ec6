"""Who may do what, what operators did, and what tokens are signed with."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Column,
    Index,
    LargeBinary,
)
from sqlmodel import Field, SQLModel

from windlass.shared.models.columns import document, moment, number


class ApiKey(SQLModel, table=True):
    """A key that may use the API; the secret itself is never stored."""

    __tablename__ = "api_keys"
    __table_args__ = (CheckConstraint("role IN ('user', 'viewer', 'admin')", name="role"),)

    key_id: str = Field(primary_key=True)
    secret_hash: bytes
    role: str
    user_id: str
    created_at: datetime = moment(optional=False)
    expires_at: datetime | None = moment()
    revoked_at: datetime | None = moment()
    name: str | None = None
    created_by: str | None = None


class Session(SQLModel, table=True):
    """A browser that has signed in with a key, and does as that key may; its secret is in a cookie and nowhere else."""

    __tablename__ = "sessions"
    __table_args__ = (Index("sessions_expiry", "expires_at"),)

    session_hash: bytes = Field(sa_column=Column(LargeBinary, primary_key=True))
    key_id: str
    secure: bool
    """Whether its cookie goes over https alone."""
    created_at: datetime = moment(optional=False)
    expires_at: datetime = moment(optional=False)


class SessionLink(SQLModel, table=True):
    """A link that signs in once; the row goes as it is used."""

    __tablename__ = "session_links"

    link_hash: bytes = Field(sa_column=Column(LargeBinary, primary_key=True))
    key_id: str
    created_at: datetime = moment(optional=False)
    expires_at: datetime = moment(optional=False)


class AuditEntry(SQLModel, table=True):
    """What an operator did, to what, and with which key."""

    __tablename__ = "audit_log"

    audit_id: int = number()
    at: datetime = moment(optional=False)
    key_id: str
    user_id: str
    action: str
    target: str | None = None
    details: dict[str, Any] = document(optional=False)


class ServerSecret(SQLModel, table=True):
    """Made up once per database and shared by its api processes: what signed tokens are signed with."""

    __tablename__ = "server_secrets"

    name: str = Field(primary_key=True)
    secret: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
