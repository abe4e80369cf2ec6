"""What people have asked of workflows and of the tasks that wait for them, and what they were told."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Call:
    kind: str
    about: str
    """A workflow or a task."""
    asked_at: float
    done_at: float
    status: int | None = None
    """None: nobody can say whether it was heard."""
    lost: int = 0
    """How many tries before had no answer."""


@dataclass
class WorkflowsRecord:
    """Only grows."""

    calls: list[Call] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    """Every workflow that was accepted."""
