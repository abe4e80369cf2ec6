"""What is known of an actor without its code: drawn from its declaration, kept as a row, checked by at submit time."""

import hashlib
from typing import Any

import msgspec


class Definition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One version of an actor. Whoever loads its module draws it; whoever has the row needs no module."""

    name: str
    payload_schema: dict[str, Any]
    result_schema: dict[str, Any] | None = None
    description: str = ""
    module: str | None = None
    """Where it was loaded from, as the TOML file says it; none for those that come with Windlass."""
    provider: str | None = None
    """For tasks that name none; its own name unless the declaration says otherwise."""
    timeout_seconds: float = 300
    max_retries: int | None = None
    max_age_seconds: float | None = None
    throws: tuple[str, ...] = ()
    concurrency_key: tuple[str, ...] = ()
    concurrency_limit: int | None = None
    memory: bool = False
    """Whether what its tasks did is written down."""
    schedule: dict[str, Any] | None = None
    """When tasks of it are started by themselves, and with which `payload`."""

    @property
    def version(self) -> str:
        """The same for whoever accepts and promises the same, wherever its code lies."""
        promised = msgspec.structs.replace(self, module=None, memory=False)
        return hashlib.sha256(msgspec.json.encode(promised, order="sorted")).hexdigest()[:12]
