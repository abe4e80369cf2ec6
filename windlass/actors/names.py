"""What an actor may be called: its name stands in addresses, in tables and before the dot of its queues."""

import re

PATTERN = r"^[a-z][a-z0-9-]{0,40}$"
RESERVED = frozenset({"batch", "bulk", "requeue-orphaned"})
"""Words that `POST /tasks/…` has another meaning for."""


def has_shape(name: str) -> bool:
    return re.fullmatch(PATTERN, name) is not None


def fault_of(name: str) -> str | None:
    """What is wrong with a name, as the rest of a sentence; none if it is good."""
    if not has_shape(name):
        return "must be small letters, digits and hyphens, a letter first, 41 at most"
    if name in RESERVED:
        return f"is reserved, as {' and '.join(sorted(RESERVED - {name}))} are; choose another name"
    return None
