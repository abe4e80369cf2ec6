"""What holds for a task that says nothing else: the actor's table goes before its definition."""

from typing import Any, NamedTuple

from windlass.shared.actors.definition import Definition
from windlass.shared.settings import Settings


class Terms(NamedTuple):
    timeout_seconds: float
    max_retries: int
    max_age_seconds: float | None
    concurrency_key: tuple[str, ...]
    is_remembered: bool
    """What its tasks did is written down."""


def terms_of(definition: Definition, settings: Settings) -> Terms:
    table = settings.actors.get(definition.name)
    said = table.model_fields_set if table is not None else frozenset()

    def of(name: str) -> Any:
        return getattr(table if name in said else definition, name)

    remembered = definition.memory if table is None or table.memory is None else table.memory
    max_retries, max_age = of("max_retries"), of("max_age_seconds")
    key = definition.concurrency_key
    if table is not None and table.concurrency is not None:
        key = table.concurrency.key
    return Terms(
        timeout_seconds=of("timeout_seconds"),
        max_retries=settings.defaults.max_retries if max_retries is None else max_retries,
        max_age_seconds=(settings.defaults.max_age_seconds if max_age is None else max_age) or None,
        concurrency_key=key,
        is_remembered=settings.memory and remembered,
    )
