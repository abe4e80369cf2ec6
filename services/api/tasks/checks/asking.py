"""What a check looks at: a payload that its schema has let through, and who asks whom for it."""

from typing import Any, NamedTuple

from windlass.services.api.access.auth import Caller
from windlass.shared.settings import Settings

Gives = dict[str, Any]


class Asking(NamedTuple):
    payload: dict[str, Any]
    provider: str
    caller: Caller
    settings: Settings
    below: str
    """Where in the body the payload stands."""
    timeout_seconds: float | None
    """What the client wants, if it says."""
