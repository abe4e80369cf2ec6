"""`windlass schedules list | show | preview`: what there is, and when it is due."""

import argparse
from typing import get_args

from windlass.client.schedules import calls
from windlass.client.schedules.documents import ScheduleState
from windlass.services.cli.commands.arguments import Commands, count
from windlass.services.cli.commands.schedules import views
from windlass.services.cli.commands.schedules.naming import MOST, add_schedule, add_times, times_of
from windlass.services.cli.session import Session


def add_actions(actions: Commands) -> None:
    parser = actions.add("list", list_schedules, "list schedules, newest first", "windlass schedules list")
    parser.add_argument("--state", action="append", choices=get_args(ScheduleState), help="may be repeated: any")
    parser.add_argument("--limit", type=count, default=MOST, metavar="N", help=f"at most so many ({MOST})")

    parser = actions.add("show", show, "show one schedule and its next five times", "windlass schedules show nightly")
    add_schedule(parser)

    parser = actions.add(
        "preview",
        preview,
        "say times in words, and which are the next",
        "windlass schedules preview --cron '30 2 * * 1-5' --timezone Europe/Berlin",
    )
    add_times(parser, required=True)
    parser.add_argument("--count", type=count, default=calls.NEXT, metavar="N", help=f"how many ({calls.NEXT})")


def list_schedules(session: Session, arguments: argparse.Namespace) -> None:
    given = vars(arguments)
    states = given.get("state") or ()
    call = calls.list_schedules(states)
    document = session.ask_pages(call, given.get("limit", MOST))
    found = call.read(document).items
    empty = "no schedule is like that" if states else "no schedules; `windlass schedules create` makes one"
    note = f"these are the newest {len(found)}; `list --limit` shows more" if document.get("next_cursor") else None
    session.screen.show(document, views.schedules_table(found, empty, note))


def show(session: Session, arguments: argparse.Namespace) -> None:
    session.show(calls.get(arguments.schedule), views.schedule_facts)


def preview(session: Session, arguments: argparse.Namespace) -> None:
    zone = arguments.timezone or "UTC"
    session.show(calls.preview(times_of(arguments), arguments.count), lambda seen: views.preview_facts(seen, zone))
