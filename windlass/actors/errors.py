"""The errors that an actor may raise: their kind decides between trying again and giving up.

Any other exception is tried again, unless the actor's `throws` names it.
"""

from windlass.shared.errors import (
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
    "ContentRejected",
    "Forbidden",
    "InvalidInput",
    "NetworkTimeout",
    "NotFound",
    "PermanentError",
    "QuotaExhausted",
    "RateLimited",
    "ServiceUnavailable",
    "TaskError",
    "Unauthorized",
]
