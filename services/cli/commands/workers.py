"""`windlass workers`: who carries tasks out."""

import argparse

from windlass import Worker
from windlass.client import calls
from windlass.client.task import Listing
from windlass.services.cli.commands.arguments import Commands, add_reason
from windlass.services.cli.display.tables import Facts, Table
from windlass.services.cli.display.texts import age, known
from windlass.services.cli.references import WORKER
from windlass.services.cli.session import Session


def add_commands(commands: Commands) -> None:
    actions = Commands.below(commands.add("workers", workers, "show who carries tasks out", "windlass workers"))
    parser = actions.add(
        "drain", drain, "let a worker finish and go; another takes its place", "windlass workers drain box-4711-a1b2c3"
    )
    parser.add_argument("worker_id", type=WORKER.read, metavar="WORKER")
    add_reason(parser)


def workers(session: Session, _arguments: argparse.Namespace) -> None:
    session.show(calls.workers(), workers_table)


def drain(session: Session, arguments: argparse.Namespace) -> None:
    session.show(calls.drain_worker(arguments.worker_id, arguments.reason), worker_facts)


def worker_facts(worker: Worker) -> Facts:
    return Facts(
        [
            ("worker", worker.worker_id),
            ("state", worker.state),
            ("running", f"{worker.running}/{worker.capacity}"),
            ("told to go", known(worker.drain_requested_at)),
        ]
    )


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
        empty="no worker has ever registered; `windlass worker` starts one",
        wide=frozenset({"QUEUES", "STOPPED BECAUSE", "CANNOT SERVE"}),
        least=("UP", "HEARD OF"),
    )
