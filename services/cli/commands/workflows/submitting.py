"""`windlass workflows submit`: a graph of tasks out of a file."""

import argparse
from typing import Any

from windlass.client.workflows import calls
from windlass.services.cli import exit_codes
from windlass.services.cli.commands.arguments import Commands
from windlass.services.cli.commands.workflows.files import Unreadable, document_from
from windlass.services.cli.commands.workflows.listing import add_waiting, show_standing
from windlass.services.cli.commands.workflows.watching import watch
from windlass.services.cli.session import Session


def add_actions(actions: Commands) -> None:
    parser = actions.add(
        "submit",
        submit,
        "submit a workflow from a file, all of it or nothing",
        "windlass workflows submit report.yaml --tag nightly --watch",
    )
    parser.add_argument("file", metavar="FILE", help="YAML or JSON, as POST /workflows takes it; - is stdin")
    parser.add_argument("--name", help="instead of the file's")
    parser.add_argument("--tag", dest="tags", action="append", help="beside the file's; may be repeated")
    parser.add_argument(
        "--failure-threshold", type=int, metavar="N", help="so many failures stop it, instead of the file's number"
    )
    parser.add_argument("--idempotency-key", metavar="KEY", help="the same key is the same workflow; else made up")
    then = parser.add_argument_group("then").add_mutually_exclusive_group()
    add_waiting(then)
    then.add_argument("--watch", action="store_true", help="show what becomes of it until it has ended")
    parser.set_defaults(refuse=parser.error)


def submit(session: Session, arguments: argparse.Namespace) -> int:
    call = calls.submit_document(wanted(arguments), arguments.idempotency_key)
    document = session.client.ask(call)
    workflow = call.read(document)
    if arguments.watch:
        return watch(session, workflow.workflow_id)
    if arguments.wait or arguments.wait_timeout is not None:
        return show_standing(session, workflow.workflow_id, arguments.wait_timeout)
    if session.screen.as_json:
        session.screen.document(document)
        return exit_codes.DONE
    session.screen.line(workflow.workflow_id)
    if workflow.deduplicated:
        session.screen.remark(f"there was one already; it is {workflow.status}")
    if session.screen.is_terminal:
        session.screen.remark(f"see how it goes: windlass workflows watch {workflow.workflow_id}")
    return exit_codes.DONE


def wanted(arguments: argparse.Namespace) -> dict[str, Any]:
    """What is said on the command line goes over the file; tags join."""
    try:
        document = document_from(arguments.file)
    except Unreadable as error:
        arguments.refuse(str(error))
    if not isinstance(document, dict):
        arguments.refuse("a workflow is an object with `name` and `tasks`")
    said = {"name": arguments.name, "failure_threshold": arguments.failure_threshold}
    given = {name: value for name, value in said.items() if value is not None}
    if arguments.tags and isinstance(document.get("tags", []), list):
        given["tags"] = list(dict.fromkeys([*document.get("tags", []), *arguments.tags]))
    return {**document, **given}
