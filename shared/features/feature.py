"""What a feature declares: its name and the function that handles moves."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from windlass.shared.db import Database
from windlass.shared.store.outbox import Move

ROWS_AT_ONCE = 100


@dataclass(frozen=True)
class Feature:
    name: str
    """As `outbox.feature` has it."""
    handle: Callable[[Database, Sequence[Move]], Awaitable[None]]
    """Handles moves in the transaction that also deletes their rows; those of one task are in the order of its history.
    If it raises, everything is rolled back, and the subject is tried again later. A move is a mark: the task may have
    moved again since, so a subscriber decides from the rows that it reads."""
    subjects_at_once: int = 1
    """How many subjects one transaction may handle. More than one is for features whose subject is the task itself."""
    rows_at_once: int = ROWS_AT_ONCE
    """How many rows of one subject one transaction handles: a subject with more of them takes turns with the others.
    More are for features to which all rows of a subject are one mark."""
