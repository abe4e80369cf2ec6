"""What the janitor's duties work on, and what one of them leaves for another, or for its own next time."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from windlass.services.janitor.duties.bulk import BulkRunner
from windlass.shared import db
from windlass.shared.settings import Settings


@dataclass
class Premises:
    """One for each process."""

    settings: Settings
    pool: db.Database
    bulk_runner: BulkRunner
    listening: db.Database = field(init=False)
    """The listener's own connection, as long as it lasts: who is called over it may work on it."""
    heard_at: datetime = field(init=False)
    """When Postgres last answered the timer, by its own clock: nobody is judged by an older word."""
    rechecked_from: UUID | None = None
    rechecked_to: UUID | None = None
    """The page of the blocked tasks that was looked through last."""
    keys_called_by: set[str] = field(default_factory=set)
    """Providers whose concurrency keys may have room, as somebody said who could not see to it."""
    unaccounted: int = 0
    workflow_drift: int = 0

    @property
    def patience_seconds(self) -> float:
        """Time for the living to renew, after Postgres has been out of reach for them as well."""
        return 2 * self.settings.heartbeat_seconds
