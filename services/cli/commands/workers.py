"""`windlass workers`: who carries tasks out."""

import argparse

from windlass import Worker
from windlass.client import calls
from windlass.client.task import Listing
from windlass.services.cli.commands.arguments import Commands
from windlass.services.cli.display.tables import Table
from windlass.services.cli.display.texts import age, known
from windlass.services.cli.session import Session


def add_commands(commands: Commands) -> None:
    commands.add("workers", workers, "show who carries tasks out", "windlass workers")


def workers(session: Session, _arguments: argparse.Namespace) -> None:
    session.show(calls.workers(), workers_table)


def workers_table(answer: Listing[Worker]) -> Table:
    rows = [
        (
            each.worker_id, each.state, f"{each.running}/{each.capacity}", age(each.started_at),
            age(each.heartbeat_at), known(each.queues), known(each.stop_reason),
            known(tuple(each.broken)),
        )
        for each in answer.items
    ]  # fmt: skip
    return Table(
        columns=("WORKER", "STATE", "RUNNING", "UP", "HEARD OF", "QUEUES", "STOPPED BECAUSE", "CANNOT SERVE"),
        rows=rows,
        empty="no worker has ever reported; `windlass actors` starts one",
        wide=frozenset({"QUEUES"}),
    )
