"""The table of `operating.md` that says what to multiply before one chooses machines, from what was measured."""

import re
from pathlib import Path

from docs.figures import Figures, between_marks, kept_figures, table

OPERATING = Path(__file__).parent / "operating.md"

TASKS_A_DAY = 100_000
EVENTS_OF_A_NO_OP = 3
"""Accepted, claimed, ended."""
REPORTS = 4 * 60 * 15
"""Four times a second for a quarter of an hour."""


def operating() -> str:
    return between_marks(OPERATING.read_text(), "sizing", sizing(kept_figures()))


def sizing(figures: Figures) -> list[str]:
    kept = figures.of("footprint", "bytes kept of a task that does nothing*")
    event = (kept.events_rows_bytes + kept.events_indexes_bytes) / EVENTS_OF_A_NO_OP
    rows = [
        (
            "threads",
            "at least a provider's limit, over all pods of its pool",
            "a thread carries one task at a time; more threads than the limit never all work",
        ),
        (
            "async places",
            "as many as may wait at once; `WINDLASS_ASYNC_PLACES`, 200 in a worker",
            (
                "an `async def` actor, `media`, `embed`, `summarize` and `webhook` hold no thread: a place in use is "
                f"some {_place_kilobytes(figures):.0f} KB of memory and what its actor has, and CPU only when "
                "something happens"
            ),
        ),
        (
            "pods of a pool",
            "limit ÷ threads, or places, rounded up, and one more",
            "the one more is for a rollout, or for a node that is gone",
        ),
        (
            "memory",
            _memory(figures),
            (
                "and what an agent may take, for each; while a task runs that is suspected of killing workers, a "
                "second guardian and worker"
            ),
        ),
        (
            "CPU",
            _cpu(figures),
            "a call costs the same for three tasks as for thirty, and a narrow limit lets none gather",
        ),
        (
            "",
            "a poll of 1.3 ms every `poll_seconds` for a media job that is waited for",
            (
                "200 jobs asked every 3 s are a tenth of a core of their worker, and a fiftieth where the provider's "
                "callbacks arrive, since polls then begin at 10 s and grow to a minute; everything else that waits "
                "costs next to none"
            ),
        ),
        (
            "disk of Postgres",
            f"{kept.kept_bytes / 1000:.1f} KB a task, kept for ever, and its payload and result",
            (
                f"a hundred thousand tasks a day are {kept.kept_bytes * TASKS_A_DAY * 365 / 1e9:.0f} GB a year without "
                "them"
            ),
        ),
        (
            "",
            f"{event:.0f} bytes and its text for every event more",
            (
                "a task that reports four times a second for a quarter of an hour leaves "
                f"{event * REPORTS / 1e6:.1f} MB and what it said"
            ),
        ),
        (
            "write-ahead log",
            f"{kept.wal_bytes / 1000:.1f} KB a task and what it says",
            "what a standby is sent, and an archive of it keeps",
        ),
        ("connections", "[below](#connections)", ""),
    ]
    return [*table(("of", "take", "because"), rows), "", *_measured(figures)]


def _place_kilobytes(figures: Figures) -> float:
    (submitted,) = figures.found("many", "without a thread: from submit to * running")
    (number,) = re.findall(r"([\d,]+) running", submitted["name"])
    memory = figures.of("many", "without a thread: memory of the worker")
    return float((memory.busy_mb - memory.idle_mb) * 1024 / int(number.replace(",", "")))


def _memory(figures: Figures) -> str:
    of = {
        name: f"{figures.of('footprint', f'memory, {name}').idle_mb:.0f}"
        for name in ("api", "worker", "guardian", "dispatcher", "janitor", "schedule")
    }
    stream = figures.of("streams", "1,000 streams, commit to client").kilobytes_per_stream
    return (
        f"api {of['api']} MB, worker {of['worker']} and its guardian {of['guardian']}, dispatcher {of['dispatcher']}, "
        f"janitor {of['janitor']} and its schedule {of['schedule']}; {stream:.0f} KB for an open stream"
    )


def _cpu(figures: Figures) -> str:
    many = figures.of("engine", "CPU per task by stage")
    three, one = (figures.of("narrow", f"CPU of a task at limit {limit}") for limit in (3, 1))
    times = sorted(figures.of("workflows", f"the same as a fan-out and its join, by {by}*").ratio for by in ("e", "a"))
    return (
        f"{many.total:.2f} ms for a task's own bookkeeping where many run at once, of which Postgres has "
        f"{many.Postgres_ms / many.total:.0%}; {three.ms:.2f} ms where a limit lets three run at a time and "
        f"{one.ms:.2f} where it lets one, of which Postgres has {three.Postgres_ms / three.ms:.0%} and "
        f"{one.Postgres_ms / one.ms:.0%}; {times[0]:.2f} to {times[1]:.2f} x as much for a task of a workflow"
    )


def _measured(figures: Figures) -> list[str]:
    parts = ("footprint", "streams", "engine", "narrow", "workflows", "many")
    dates = sorted({figures.parts[part]["date"] for part in parts})
    one, two = (figures.of("engine", f"CPU per task by stage{each}").total for each in ("", ", two processes"))
    return [
        (
            f"The figures are those of [proof.md](proof.md), measured on {figures.parts['engine']['cores']} cores by "
            f"`make bench` ({' and '.join(dates)}, its parts {', '.join(f'`{part}`' for part in parts)}): no-ops in "
            f"one and two workers of many threads ({one:.2f} and {two:.2f} ms), and with a provider of limit 3 and 1."
        ),
        "Yours differ, their ratios hardly. How long the history is makes no difference to what a task costs.",
    ]
