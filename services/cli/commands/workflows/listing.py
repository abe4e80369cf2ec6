"""`windlass workflows list | show`: what there is, and how it stands."""

import argparse
from typing import cast, get_args

from windlass.client.workflows import calls
from windlass.client.workflows.documents import WorkflowStatus
from windlass.client.workflows.options import WorkflowFilter
from windlass.services.cli import exit_codes
from windlass.services.cli.commands.arguments import Commands, count, moment, seconds
from windlass.services.cli.commands.completing import is_a_workflow
from windlass.services.cli.commands.workflows import views
from windlass.services.cli.references import AN_ID, WORKFLOW
from windlass.services.cli.session import Session

MOST = 20


def add_actions(actions: Commands) -> None:
    parser = actions.add(
        "list", list_workflows, "list workflows, newest first", "windlass workflows list --status escalated"
    )
    parser.add_argument("--status", action="append", choices=get_args(WorkflowStatus), help="may be repeated: any")
    parser.add_argument("--name", help="exactly so")
    parser.add_argument("--tag", action="append", help="may be repeated: all of them")
    parser.add_argument("--user", dest="user_id", metavar="USER", help="whose workflows")
    parser.add_argument("--created-after", type=moment, metavar="TIME", help="ISO 8601, such as 2026-07-01T12:00Z")
    parser.add_argument("--created-before", type=moment, metavar="TIME")
    parser.add_argument("--limit", type=count, default=MOST, metavar="N", help=f"at most so many ({MOST})")

    parser = actions.add("show", show, "show one workflow and its tasks", f"windlass workflows show {AN_ID}")
    add_workflow(parser)
    add_waiting(parser)


def add_workflow(parser: argparse.ArgumentParser) -> None:
    is_a_workflow(parser.add_argument("workflow_id", type=WORKFLOW.read, metavar="WORKFLOW"))


def add_waiting(parser: "argparse.ArgumentParser | argparse._MutuallyExclusiveGroup") -> None:
    parser.add_argument(
        "--wait", action="store_true", help="until it has ended or is escalated; exit code 1 if not completed"
    )
    parser.add_argument("--wait-timeout", type=seconds, metavar="SECONDS", help="the same, for no longer than this")


def list_workflows(session: Session, arguments: argparse.Namespace) -> None:
    given = vars(arguments)
    chosen = {name: given[name] for name in WorkflowFilter.__annotations__ if given.get(name) is not None}
    call = calls.list_workflows(cast(WorkflowFilter, chosen))
    document = session.ask_pages(call, given.get("limit", MOST))
    found = call.read(document).items
    empty = "no workflow is like that" if chosen else "no workflows; `windlass workflows submit` takes one from a file"
    note = f"these are the newest {len(found)}; `list --limit` shows more" if document.get("next_cursor") else None
    session.screen.show(document, views.workflows_table(found, empty, note))


def show(session: Session, arguments: argparse.Namespace) -> int:
    if arguments.wait or arguments.wait_timeout is not None:
        return show_standing(session, arguments.workflow_id, arguments.wait_timeout)
    session.show(calls.get(arguments.workflow_id), views.workflow_facts)
    return exit_codes.DONE


def show_standing(session: Session, workflow_id: str, timeout: float | None) -> int:
    """Waits until nothing of it goes on by itself, and shows it."""
    session.waiting_client().workflows.wait(workflow_id, timeout=timeout)
    workflow = session.show(calls.get(workflow_id), views.workflow_facts)
    if workflow.status == "escalated":
        session.screen.remark(views.how_it_goes_on(workflow_id))
    return exit_codes.DONE if workflow.status == "completed" else exit_codes.FAILED
