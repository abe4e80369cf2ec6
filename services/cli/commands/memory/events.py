"""`windlass memory search | list | show | forget`: what agents did."""

import argparse
from typing import cast

from windlass.client.errors import WindlassError
from windlass.client.memory import calls
from windlass.client.memory.options import EventFilter, Scope
from windlass.services.cli import exit_codes
from windlass.services.cli.commands.arguments import Commands, count, moment
from windlass.services.cli.commands.memory import views
from windlass.services.cli.references import AN_ID, EVENT, PROJECT_LABEL, TASK, WORKFLOW_LABEL
from windlass.services.cli.session import Session, complain

MOST = 20
FOUND = 10
ENDS = ("completed", "dead", "cancelled")


def add_actions(actions: Commands) -> None:
    parser = actions.add(
        "search",
        search,
        "find what is nearest to a question",
        'windlass memory search "which lighthouses were counted?"',
        intermixed=True,
    )
    parser.add_argument("words", nargs="+", metavar="QUESTION")
    parser.add_argument("--limit", type=count, default=FOUND, metavar="N", help=f"at most so many ({FOUND})")
    parser.add_argument("--project", dest="project_id", type=PROJECT_LABEL.read, metavar="PROJECT")
    parser.add_argument("--subagent-type", help="only of this agent")
    parser.add_argument("--created-after", type=moment, metavar="TIME", help="ISO 8601, such as 2026-07-01T12:00Z")

    parser = actions.add(
        "list", list_events, "list what agents did, newest first", "windlass memory list --status dead"
    )
    parser.add_argument("--task", dest="task_id", type=TASK.read, metavar="TASK")
    parser.add_argument("--actor", help="the kind of work")
    parser.add_argument("--status", choices=ENDS, help="how it ended")
    parser.add_argument("--subagent-type", help="only of this agent")
    parser.add_argument("--project", dest="project_id", type=PROJECT_LABEL.read, metavar="PROJECT")
    parser.add_argument("--workflow", dest="workflow_id", type=WORKFLOW_LABEL.read, metavar="WORKFLOW")
    parser.add_argument("--user", dest="user_id", metavar="USER", help="whose")
    parser.add_argument("--limit", type=count, default=MOST, metavar="N", help=f"at most so many ({MOST})")

    parser = actions.add("show", show, "show one agent event", f"windlass memory show {AN_ID}")
    parser.add_argument("event_id", type=EVENT.read, metavar="EVENT")

    parser = actions.add(
        "forget", forget, "take agent events out of the memory, with their vectors", f"windlass memory forget {AN_ID}"
    )
    parser.add_argument("event_ids", type=EVENT.read, nargs="+", metavar="EVENT")


def search(session: Session, arguments: argparse.Namespace) -> None:
    scope = Scope(
        project_id=arguments.project_id,
        subagent_type=arguments.subagent_type,
        created_after=arguments.created_after,
    )
    session.show(calls.search(" ".join(arguments.words), arguments.limit, scope), views.found_table)


def list_events(session: Session, arguments: argparse.Namespace) -> None:
    given = vars(arguments)
    chosen = {name: given[name] for name in EventFilter.__annotations__ if given.get(name) is not None}
    call = calls.events(cast(EventFilter, chosen))
    document = session.ask_pages(call, given.get("limit", MOST))
    found = call.read(document).items
    empty = "no agent event is like that" if chosen else "no agent has done anything yet"
    note = f"these are the newest {len(found)}; `list --limit` shows more" if document.get("next_cursor") else None
    session.screen.show(document, views.events_table(found, empty, note))


def show(session: Session, arguments: argparse.Namespace) -> None:
    session.show(calls.event(arguments.event_id), views.event_facts)


def forget(session: Session, arguments: argparse.Namespace) -> int:
    """One after the other; what fails does not keep the rest from being done."""
    codes = []
    for each in arguments.event_ids:
        try:
            session.client.perform(calls.forget(each))
        except WindlassError as error:
            complain(error, about=each)
            codes.append(exit_codes.exit_code(error))
        else:
            session.screen.line(f"{each}\tforgotten")
    return codes[0] if codes else exit_codes.DONE
