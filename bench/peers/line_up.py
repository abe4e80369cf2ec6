"""Who takes part: each peer's settings to try, and how its own durable state tells what it has done and how fast."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PEERS_PYTHON = os.environ.get("PEERS_PYTHON", str(Path(__file__).parents[2] / ".venv/peers/bin/python"))

Workers = Sequence[tuple[str, ...]]
"""The options of each worker process that is started."""


@dataclass(frozen=True)
class Entrant:
    """A peer. Its `settings` are tried in turn, and the best one runs in the contest."""

    system: str
    name: str
    packages: Sequence[str]
    settings: Mapping[str, Workers]
    idle_settings: Sequence[str]
    """With which it waits for tasks that come one by one."""
    durable: str
    done: str = ""
    rate: str = ""
    python: str = PEERS_PYTHON


CELERY = Entrant(
    system="celery",
    name="Celery",
    packages=("celery", "kombu", "sqlalchemy", "psycopg"),
    settings={
        "prefork, 2 processes": [("2",)],
        "prefork, 4 processes": [("4",)],
        "prefork, 8 processes": [("8",)],
        "prefork, 16 processes": [("16",)],
    },
    idle_settings=["prefork, 2 processes"],
    durable="persistent messages with publisher confirms, acks_late, each result a committed row",
    done="SELECT count(*) FROM celery_taskmeta WHERE status = 'SUCCESS'",
    # It records no start, so the clock runs from the first end, which leaves out the first task's own time.
    rate="""SELECT (count(*) - 1) / extract(epoch FROM max(date_done) - min(date_done))::float FROM celery_taskmeta
            WHERE status = 'SUCCESS'""",
)

PROCRASTINATE = Entrant(
    system="procrastinate",
    name="Procrastinate",
    packages=("procrastinate", "psycopg"),
    settings={
        "1 process, 16 at a time": [("16",)],
        "1 process, 32 at a time": [("32",)],
        "2 processes, 16 at a time each": [("16",), ("16",)],
        "2 processes, 32 at a time each": [("32",), ("32",)],
    },
    idle_settings=["1 process, 32 at a time"],
    durable="each job and its events committed rows",
    done="SELECT count(*) FROM procrastinate_jobs WHERE task_name = 'no_op' AND status = 'succeeded'",
    rate="""SELECT count(*) FILTER (WHERE type = 'succeeded') / extract(epoch FROM
                max(at) FILTER (WHERE type = 'succeeded') - min(at) FILTER (WHERE type = 'started'))::float
            FROM procrastinate_events JOIN procrastinate_jobs ON procrastinate_jobs.id = job_id
            WHERE task_name = 'no_op'""",
)

DBOS = Entrant(
    system="dbos",
    name="DBOS",
    packages=("dbos", "sqlalchemy", "psycopg"),
    settings={
        "1 executor, no limit, polling every second": [("one", "0", "1.0")],
        "1 executor, 100 at a time, polling every 100 ms": [("one", "100", "0.1")],
        "1 executor, 300 at a time, polling every 100 ms": [("one", "300", "0.1")],
        "2 executors, 300 at a time each, polling every 100 ms": [("one", "300", "0.1"), ("two", "300", "0.1")],
    },
    idle_settings=[
        "1 executor, no limit, polling every second",
        "1 executor, 100 at a time, polling every 100 ms",
    ],
    durable="each workflow's input, state and output a committed row",
    done="SELECT count(*) FROM dbos.workflow_status WHERE name = 'no_op' AND status = 'SUCCESS'",
    rate="""SELECT count(*) * 1000.0 / (max(completed_at) - min(started_at_epoch_ms)) FROM dbos.workflow_status
            WHERE name = 'no_op' AND status = 'SUCCESS'""",
)

DRAMATIQ = Entrant(
    system="dramatiq",
    name="bare Dramatiq",
    packages=("dramatiq", "pika"),
    settings={
        "1 process, 8 threads": [("8",)],
        "1 process, 32 threads": [("32",)],
        "2 processes, 8 threads each": [("8",), ("8",)],
        "2 processes, 32 threads each": [("32",), ("32",)],
        "2 processes, 64 threads each": [("64",), ("64",)],
    },
    idle_settings=["1 process, 8 threads"],
    durable="persistent messages without confirms, no state at all",
    python=sys.executable,
)

WINDLASS_SETTINGS: Mapping[str, Workers] = {
    "1 worker, 32 threads": [("32",)],
    "1 worker, 64 threads": [("64",)],
    "2 workers, 32 threads each": [("32",), ("32",)],
    "2 workers, 64 threads each": [("64",), ("64",)],
    "2 workers, 256 threads each": [("256",), ("256",)],
}
"""Its threads wait for their commits most of the time, so that many of them are cheap."""

DURABLE = (CELERY, PROCRASTINATE, DBOS)
ALL = (*DURABLE, DRAMATIQ)
