"""What a check looks at: a payload that its schema has let through, and who asks whom for it."""

from typing import Any, NamedTuple, Protocol

from windlass.shared.settings import Settings

Gives = dict[str, Any]


class Asker(Protocol):
    """Who wants a task: a caller of the api, or an attempt, which has nobody's rights but its user's."""

    @property
    def user_id(self) -> str: ...

    @property
    def is_admin(self) -> bool: ...


class Asking(NamedTuple):
    payload: dict[str, Any]
    provider: str
    asker: Asker
    settings: Settings
    below: str
    """Where in what was said the payload stands."""
    timeout_seconds: float | None
    """What is wanted, if that is said."""
    source_image_is_to_come: bool = False
    """It is a result of another task, and looked at when it is there."""
