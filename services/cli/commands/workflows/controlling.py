"""`windlass workflows resume | cancel`: what a person decides about a workflow."""

import argparse
from typing import get_args

from windlass.client.workflows import calls
from windlass.client.workflows.documents import Retry
from windlass.services.cli import exit_codes
from windlass.services.cli.commands.arguments import Commands, add_reason
from windlass.services.cli.commands.workflows import views
from windlass.services.cli.commands.workflows.listing import add_workflow
from windlass.services.cli.commands.workflows.watching import watch
from windlass.services.cli.references import AN_ID
from windlass.services.cli.session import Session


def add_actions(actions: Commands) -> None:
    parser = actions.add(
        "resume",
        resume,
        "let an escalated workflow go on; what has completed is kept",
        f"windlass workflows resume {AN_ID} --retry failed --watch",
    )
    add_workflow(parser)
    parser.add_argument(
        "--retry",
        choices=get_args(Retry),
        default="failed",
        help="what gets a new life: what failed with what it had buried (failed), also what was cancelled behind it, "
        "or nothing",
    )
    parser.add_argument("--watch", action="store_true", help="show what becomes of it until it has ended")
    add_reason(parser)

    parser = actions.add(
        "cancel", cancel, "cancel a workflow; what runs stops its work first", f"windlass workflows cancel {AN_ID}"
    )
    add_workflow(parser)
    add_reason(parser)


def resume(session: Session, arguments: argparse.Namespace) -> int:
    call = calls.resume(arguments.workflow_id, arguments.retry, arguments.reason)
    if arguments.watch:
        session.client.perform(call)
        return watch(session, arguments.workflow_id)
    session.show(call, views.workflow_facts)
    return exit_codes.DONE


def cancel(session: Session, arguments: argparse.Namespace) -> None:
    cancelled = session.show(calls.cancel(arguments.workflow_id, arguments.reason), views.workflow_facts)
    if cancelled.status != "cancelled":
        session.screen.remark("what runs is being stopped; `windlass workflows show --wait` waits for that")
