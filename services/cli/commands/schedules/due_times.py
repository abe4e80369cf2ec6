"""`windlass schedules runs`: what became of each time that a schedule was due."""

import argparse
from typing import get_args

from windlass.client.schedules import calls
from windlass.client.schedules.documents import RunOutcome
from windlass.services.cli.commands.arguments import Commands, count
from windlass.services.cli.commands.schedules import views
from windlass.services.cli.commands.schedules.naming import MOST, add_schedule
from windlass.services.cli.session import Session


def add_actions(actions: Commands) -> None:
    parser = actions.add(
        "runs", runs, "list what became of its due times, the latest first", "windlass schedules runs nightly"
    )
    add_schedule(parser)
    parser.add_argument("--outcome", action="append", choices=get_args(RunOutcome), help="may be repeated: any")
    parser.add_argument("--limit", type=count, default=MOST, metavar="N", help=f"at most so many ({MOST})")


def runs(session: Session, arguments: argparse.Namespace) -> None:
    call = calls.runs(arguments.schedule, arguments.outcome or ())
    document = session.ask_pages(call, arguments.limit)
    found = call.read(document).items
    note = f"these are the latest {len(found)}; --limit shows more" if document.get("next_cursor") else None
    empty = "no due time has this outcome" if arguments.outcome else "it was not due yet"
    session.screen.show(document, views.runs_table(found, empty, note))
