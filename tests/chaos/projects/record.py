"""What people have asked of projects, and what they were told, by their own watches."""

from dataclasses import dataclass, field
from typing import Any

HEARD_LATE_SECONDS = 20.0
"""A request whose client has hung up may still be on its way, and be heard that much later: a link that swallows
everything lets it go when it is mended."""


@dataclass(frozen=True)
class Call:
    project_id: str
    kind: str
    asked_at: float
    done_at: float
    """When it was answered, or given up."""
    status: int | None = None
    """None: nobody can say whether it was heard."""
    lost: int = 0
    """How many tries before had no answer."""
    said: dict[str, Any] = field(default_factory=dict)
    about: str | None = None
    """The item, or the task, that it was about."""

    @property
    def may_have_been_heard(self) -> bool:
        """It was granted, or a try of it may have been."""
        return self.status is None or self.status < 300 or self.lost > 0

    @property
    def heard_until(self) -> float:
        return self.done_at + (HEARD_LATE_SECONDS if self.status is None or self.lost else 0.0)

    def may_be_behind(self, moment: float) -> bool:
        """What happened then can be its doing."""
        return self.may_have_been_heard and self.asked_at <= moment <= self.heard_until


@dataclass
class ProjectsRecord:
    """Only grows."""

    calls: list[Call] = field(default_factory=list)
    long_loops: list[str] = field(default_factory=list)
    """Projects that have to have come to the end of their backlogs, by themselves."""

    def of(self, project_id: str, *kinds: str) -> list[Call]:
        return [call for call in self.calls if call.project_id == project_id and call.kind in kinds]
