"""Every metric there is, part by part; whoever imports this has loaded all of them."""

from dataclasses import dataclass
from types import ModuleType

from windlass.shared.metrics import (
    actors,
    cluster,
    memory,
    outbox,
    projects,
    providers,
    schedules,
    services,
    tasks,
    webhooks,
)
from windlass.shared.metrics.declaring import CATALOGUE, Declared

PROCESS = (
    "cpu_seconds_total", "resident_memory_bytes", "virtual_memory_bytes", "start_time_seconds", "open_fds", "max_fds",
)  # fmt: skip
"""What the library itself says about every process, each behind `windlass_process_`."""


@dataclass(frozen=True)
class Part:
    """The metrics of one module, under its own words."""

    title: str
    metrics: tuple[Declared, ...]


def parts() -> list[Part]:
    titles = {
        "What becomes of tasks": tasks,
        "Providers": providers,
        "Actors": actors,
        "Projects": projects,
        "Memory": memory,
        "Outbox": outbox,
        "Webhooks": webhooks,
        "Schedules": schedules,
        "The services": services,
        "Everything": cluster,
    }
    return [Part(title, _declared_in(module)) for title, module in titles.items()]


def _declared_in(module: ModuleType) -> tuple[Declared, ...]:
    theirs = {id(each) for each in vars(module).values()}
    return tuple(declared for declared in CATALOGUE if id(declared.instrument) in theirs)


def of_everything() -> tuple[Declared, ...]:
    """Those that no process knows by itself."""
    return _declared_in(cluster)
