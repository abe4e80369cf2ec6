"""`windlass health | audit`: how everything is, and what operators did."""

import argparse
from typing import Any

from windlass import AuditEntry, Health
from windlass.client import calls
from windlass.client.task import Listing
from windlass.services.cli import exit_codes
from windlass.services.cli.commands.arguments import Commands, count
from windlass.services.cli.display.tables import Table
from windlass.services.cli.display.texts import compact, known, moment
from windlass.services.cli.session import Session


def add_commands(commands: Commands) -> None:
    commands.add("health", health, "show how each part is; exit code 1 unless all are healthy", "windlass health")

    parser = commands.add("audit", audit, "show what operators did, newest first", "windlass audit --action key.create")
    parser.add_argument("--limit", type=count, default=20, metavar="N", help="at most so many (20)")
    parser.add_argument("--action", help="only this, such as provider.change")
    parser.add_argument("--user", dest="user_id", help="only what this operator did")


def health(session: Session, _arguments: argparse.Namespace) -> int:
    answer = session.show(calls.health(), health_table)
    if not session.screen.as_json:
        session.screen.remark(f"windlass is {answer.status}")
    return exit_codes.DONE if answer.status == "healthy" else exit_codes.FAILED


def audit(session: Session, arguments: argparse.Namespace) -> None:
    call = calls.audit().with_params(action=arguments.action, user_id=arguments.user_id)
    document = session.ask_pages(call, arguments.limit)
    more = document.get("next_cursor") is not None
    session.screen.show(document, audit_table(call.read(document), is_all=not more))


def health_table(answer: Health) -> Table:
    rows = [(name, each.status, known(each.detail)) for name, each in answer.components.items()]
    return Table(("PART", "STATUS", "DETAIL"), rows, "the parts are shown to a valid key", wide=frozenset({"DETAIL"}))


def audit_table(answer: Listing[AuditEntry], *, is_all: bool) -> Table:
    rows = [
        (moment(each.at), each.action, known(each.user_id), known(each.target), _details(each.details))
        for each in answer.items
    ]
    return Table(
        columns=("AT", "ACTION", "BY", "TARGET", "DETAILS"),
        rows=rows,
        empty="no operator has done anything like that",
        wide=frozenset({"DETAILS"}),
        note=None if is_all else f"these are the newest {len(rows)}; --limit shows more",
    )


def _details(details: Any) -> str:
    return compact(details) if details else ""
