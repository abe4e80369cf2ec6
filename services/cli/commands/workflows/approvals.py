"""`windlass approvals list | approve | reject`: what waits for a person's word, and the word."""

import argparse
from collections.abc import Callable
from functools import partial

from windlass import Task
from windlass.client.call import Call
from windlass.client.workflows import calls
from windlass.services.cli.commands.arguments import Commands, count
from windlass.services.cli.commands.completing import is_a_question
from windlass.services.cli.commands.tasks import each
from windlass.services.cli.commands.workflows import views
from windlass.services.cli.references import AN_ID, TASK
from windlass.services.cli.session import Session

MOST = 50


def add_commands(commands: Commands) -> None:
    parser = commands.add("approvals", list_approvals, "show what waits for a person's word", "windlass approvals")
    actions = Commands.below(parser)

    parser = actions.add(
        "list", list_approvals, "list what waits for a word, the oldest first", "windlass approvals list"
    )
    parser.add_argument("--limit", type=count, default=MOST, metavar="N", help=f"at most so many ({MOST})")

    for name, command, duty in (
        ("approve", approve, "let tasks start that wait for a word"),
        ("reject", reject, "cancel tasks that wait for a word; what depends on them is buried"),
    ):
        parser = actions.add(name, command, duty, f"windlass approvals {name} {AN_ID} --comment fine")
        is_a_question(parser.add_argument("task_ids", type=TASK.read, nargs="+", metavar="TASK"))
        parser.add_argument("--comment", metavar="TEXT", help="why; it is kept with the decision")


def list_approvals(session: Session, arguments: argparse.Namespace) -> None:
    call = calls.approvals()
    document = session.ask_pages(call, vars(arguments).get("limit", MOST))
    found = call.read(document).items
    note = f"these are the oldest {len(found)}; `list --limit` shows more" if document.get("next_cursor") else None
    session.screen.show(document, views.approvals_table(found, note))


def approve(session: Session, arguments: argparse.Namespace) -> int:
    return decide(session, arguments, calls.approve)


def reject(session: Session, arguments: argparse.Namespace) -> int:
    return decide(session, arguments, calls.reject)


def decide(session: Session, arguments: argparse.Namespace, call: Callable[[str, str | None], Call[Task]]) -> int:
    return each(session, arguments.task_ids, partial(_with_comment, call, arguments.comment))


def _with_comment(call: Callable[[str, str | None], Call[Task]], comment: str | None, task_id: str) -> Call[Task]:
    return call(task_id, comment)
