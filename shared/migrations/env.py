"""Alembic's entry point: it runs on the connection that `windlass.services.admin.migrate` opened."""

from alembic import context
from sqlmodel import SQLModel

import windlass.shared.models  # noqa: F401 - declares the tables

context.configure(connection=context.config.attributes["connection"], target_metadata=SQLModel.metadata)
with context.begin_transaction():
    context.run_migrations()
