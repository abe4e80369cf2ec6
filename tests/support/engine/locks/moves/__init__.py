"""Every intent of the store that locks rows. To add one, write it beside its like, and mark it."""

from tests.support.engine.locks.moves import (
    clients,
    janitors,
    operators,
    projects,
    schedules,
    webhooks,
    workers,
    workflows,
)
from tests.support.engine.locks.moves.driven import GATES, MOVES

__all__ = [
    "GATES",
    "MOVES",
    "clients",
    "janitors",
    "operators",
    "projects",
    "schedules",
    "webhooks",
    "workers",
    "workflows",
]
