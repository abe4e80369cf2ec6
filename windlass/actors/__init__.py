"""What a module with actors of your own needs: `from windlass import Context, actor`, and the errors in `errors`.

Importing it needs none of the server's packages.
"""

from windlass.actors.context import AsyncContext, Context
from windlass.actors.declaration import Actor, Misdeclared, actor
from windlass.actors.errors import (
    ContentRejected,
    Forbidden,
    InvalidInput,
    NetworkTimeout,
    NotFound,
    PermanentError,
    QuotaExhausted,
    RateLimited,
    ServiceUnavailable,
    TaskError,
    Unauthorized,
)

__all__ = [
    "Actor",
    "AsyncContext",
    "ContentRejected",
    "Context",
    "Forbidden",
    "InvalidInput",
    "Misdeclared",
    "NetworkTimeout",
    "NotFound",
    "PermanentError",
    "QuotaExhausted",
    "RateLimited",
    "ServiceUnavailable",
    "TaskError",
    "Unauthorized",
    "actor",
]
