"""Writes `docs/metrics.md`, the list of all metrics, from where they are declared."""

from pathlib import Path

from windlass.shared.metrics import catalogue
from windlass.shared.metrics.declaring import SERVICES, Declared

METRICS = Path(__file__).parent / "metrics.md"

INTRODUCTIONS = {
    "What becomes of tasks": "Counted by the process that did it, once it was committed: sum them over all instances.",
    "Providers": "What the workers ask of providers, and what it costs.",
    "Actors": "What actors do, those that come with Windlass and your own.",
    "Projects": "Counted by the janitor that writes each of these to its log, once: sum them over all instances.",
    "Memory": "What is asked of it; what it has yet to do is among everything.",
    "Outbox": "Counted by the process that handled the rows: sum them over all instances.",
    "Webhooks": "Counted by the worker that made the try.",
    "Schedules": "Counted by the process that decides about a due time: sum them over all instances.",
    "The services": "How each process is.",
    "Everything": "Read from Postgres when an api is asked, so that every api says the same: take the `max` over them. "
    "While Postgres does not answer only the first of these is there: an old figure would look like a new one.",
}


def metrics() -> str:
    return "\n".join(
        [
            "# What Prometheus can read",
            "",
            "Written from `shared/metrics` by `make fmt`; `make check` fails when this page is stale.",
            "",
            "Every process answers `GET /metrics` for itself: the api on its own port, or, like all others, on the one",
            "that `WINDLASS_METRICS_PORT` names (at the address `WINDLASS_METRICS_HOST`, else `WINDLASS_HOST`).",
            "On the api's own port it asks for a viewer's or an admin's key, on the other for none.",
            "`windlass up` lists where in `metrics-targets.json` in its data directory, which Prometheus can read as",
            "`file_sd_configs`. [Decision 0026](decisions/0026-one-process-one-endpoint.md) says why.",
            "",
            "No label ever holds the name of a task or of a user. `provider` and `queue` are those of the settings,",
            "`route` is a pattern, and what is outside a vocabulary is `other`.",
            "",
            *(line for part in catalogue.parts() for line in _part(part)),
            "## Each process",
            "",
            f"Every service says how its process is, behind `windlass_process_`: {_words(catalogue.PROCESS)}.",
            "",
        ]
    )


def _part(part: catalogue.Part) -> list[str]:
    return [
        f"## {part.title}",
        "",
        INTRODUCTIONS[part.title],
        "",
        "| metric | kind | labels | meaning | said by |",
        "|---|---|---|---|---|",
        *(_row(declared) for declared in part.metrics),
        "",
    ]


def _row(declared: Declared) -> str:
    said_by = "all" if set(declared.services) == set(SERVICES) else ", ".join(declared.services)
    return f"| `{declared.name}` | {declared.kind} | {_words(declared.labels)} | {declared.meaning} | {said_by} |"


def _words(words: tuple[str, ...]) -> str:
    return ", ".join(f"`{word}`" for word in words)
