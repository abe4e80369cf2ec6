"""What people have asked of their schedules, and what they were told."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Call:
    kind: str
    about: str
    """A schedule."""
    asked_at: float
    done_at: float
    status: int
    lost: int = 0
    """How many tries before had no answer."""


@dataclass
class SchedulesRecord:
    """Only grows."""

    calls: list[Call] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    """Every schedule that was accepted."""
