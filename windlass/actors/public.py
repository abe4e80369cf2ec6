"""What of it `windlass` itself has. `TaskError`, `NotFound`, `Forbidden` and `Unauthorized` are the client's there: an
actor's own are in `windlass.actors`."""

from windlass.actors import (
    Actor,
    AsyncContext,
    ContentRejected,
    Context,
    InvalidInput,
    NetworkTimeout,
    PermanentError,
    QuotaExhausted,
    RateLimited,
    ServiceUnavailable,
    actor,
)

__all__ = [
    "Actor",
    "AsyncContext",
    "ContentRejected",
    "Context",
    "InvalidInput",
    "NetworkTimeout",
    "PermanentError",
    "QuotaExhausted",
    "RateLimited",
    "ServiceUnavailable",
    "actor",
]
