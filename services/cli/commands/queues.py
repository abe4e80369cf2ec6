"""`windlass queues | dlq | bulk`: what waits, what died, and bringing the dead back."""

import argparse

from windlass import Bulk, BulkStarted, ErrorGroup, Queues
from windlass.client import calls
from windlass.client.task import Listing
from windlass.services.cli.commands.arguments import Commands, add_filters, chosen_filter, count
from windlass.services.cli.commands.tasks import show_tasks
from windlass.services.cli.display.tables import Facts, Table
from windlass.services.cli.display.texts import age, compact, duration, known, ratio
from windlass.services.cli.references import AN_ID
from windlass.services.cli.session import Session


def add_commands(commands: Commands) -> None:
    commands.add("queues", queues, "show what waits and runs in each queue", "windlass queues")

    parser = commands.add(
        "dlq", dlq, "show the dead letter queue: tasks that will not be tried again", "windlass dlq --group"
    )
    parser.add_argument("--group", action="store_true", help="count them by what they died of")
    parser.add_argument("--limit", type=count, default=20, metavar="N", help="at most so many (20)")
    add_filters(parser, by_status=False)
    revive_parser = Commands.below(parser).add(
        "revive",
        revive,
        "give dead tasks a new life",
        "windlass dlq revive --error-type NetworkTimeout --canary 5",
    )
    revive_parser.add_argument("--all", action="store_true", help="all of them, whatever they died of")
    revive_parser.add_argument("--canary", type=count, metavar="N", help="try so many first; if they fail, stop there")
    add_filters(revive_parser, by_status=False)

    parser = commands.add("bulk", bulk, "show how far a bulk action has come", f"windlass bulk {AN_ID}")
    parser.add_argument("bulk_id", metavar="BULK")


def queues(session: Session, _arguments: argparse.Namespace) -> None:
    session.show(calls.queues(), queues_table)


def dlq(session: Session, arguments: argparse.Namespace) -> None:
    chosen = chosen_filter(arguments)
    empty = "no dead task is like that" if chosen else "no dead tasks"
    if arguments.group:
        session.show(calls.dlq_groups(chosen), lambda groups: groups_table(groups, empty))
    else:
        show_tasks(session, calls.dlq(chosen), arguments.limit, empty)


def revive(session: Session, arguments: argparse.Namespace) -> None:
    chosen = chosen_filter(arguments)
    session.show(calls.revive(chosen, everything=arguments.all, canary=arguments.canary), started_facts)


def bulk(session: Session, arguments: argparse.Namespace) -> None:
    session.show(calls.bulk_progress(arguments.bulk_id), bulk_facts)


def queues_table(answer: Queues) -> Table:
    rows = [
        (
            each.queue, str(each.fresh), str(each.retry), str(each.scheduled), str(each.blocked), str(each.running),
            str(each.dead), duration(each.oldest_age_seconds), ratio(each.retry_ratio), known(each.workers),
        )
        for each in answer.queues
    ]  # fmt: skip
    states = ", ".join(f"{number} {state}" for state, number in answer.states.items() if number)
    return Table(
        columns=(
            "QUEUE",
            "FRESH",
            "RETRY",
            "SCHEDULED",
            "BLOCKED",
            "RUNNING",
            "DEAD",
            "OLDEST",
            "RETRY SHARE",
            "WORKERS",
        ),
        rows=rows,
        empty="no queues: no provider is configured",
        note=f"all tasks: {states}" if states else "no task was ever submitted",
        least=("RETRY SHARE", "OLDEST", "BLOCKED", "SCHEDULED"),
    )


def groups_table(answer: Listing[ErrorGroup], empty: str) -> Table:
    rows = [
        (str(each.count), known(each.error_type), age(each.newest_at), known(each.example_task_id), known(each.message))
        for each in answer.items
    ]
    return Table(("COUNT", "ERROR", "NEWEST", "EXAMPLE", "MESSAGE"), rows, empty, wide=frozenset({"MESSAGE"}))


def started_facts(started: BulkStarted) -> Facts:
    hint = f"windlass bulk {started.bulk_id}" if started.bulk_id else ""
    return Facts([("matched", str(started.matched)), ("bulk", known(started.bulk_id)), ("see", hint)])


def bulk_facts(bulk: Bulk) -> Facts:
    return Facts(
        [
            ("bulk", bulk.bulk_id),
            ("action", bulk.action),
            ("state", bulk.state),
            ("done", f"{bulk.done} of {bulk.matched}"),
            ("changed", str(bulk.changed)),
            *([("duplicates", str(bulk.duplicates))] if bulk.duplicates else []),
            *([("requeued", str(bulk.requeued))] if bulk.requeued else []),
            ("reason", known(bulk.reason)),
            ("filter", compact(bulk.filter)),
            ("canary", known(bulk.canary)),
            ("created_at", known(bulk.created_at)),
            ("updated_at", known(bulk.updated_at)),
        ]
    )
