"""What people have asked of their endpoints, and what they know of them."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Call:
    kind: str
    about: str
    """An endpoint, or a delivery."""
    asked_at: float
    done_at: float
    status: int
    lost: int = 0
    """How many tries before had no answer."""


@dataclass
class WebhooksRecord:
    """Only grows."""

    calls: list[Call] = field(default_factory=list)
    paths: dict[str, str] = field(default_factory=dict)
    """By endpoint the path of the receiver's."""
    directory: Path | None = None
    """Where the receiver keeps its books."""
