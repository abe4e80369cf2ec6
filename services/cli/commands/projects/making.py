"""`windlass projects create | list | show | runs | archive`: projects themselves."""

import argparse
from typing import get_args

from windlass.client.projects import calls
from windlass.client.projects.documents import OnFailure, QueueState
from windlass.services.cli.commands.arguments import Commands, add_reason, count
from windlass.services.cli.commands.completing import is_a_project
from windlass.services.cli.commands.projects import views
from windlass.services.cli.commands.projects.task_fields import add_fields, fields_of
from windlass.services.cli.references import AN_ID, PROJECT
from windlass.services.cli.session import Session

MOST = 20


def add_actions(actions: Commands) -> None:
    parser = actions.add(
        "create",
        create,
        "make a project; what is said of a task is for all its items",
        "windlass projects create website --actor agent subagent_type=coder --max-retries 1",
        intermixed=True,
    )
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--on-failure", choices=get_args(OnFailure), default="stop", help="of a loop, when a run died")
    parser.add_argument("--idempotency-key", metavar="KEY", help="the same key is the same project; else made up")
    parser.add_argument("--user", dest="user_id", help="for somebody else; admins only")
    add_fields(parser)

    parser = actions.add("list", list_projects, "list projects, newest first", "windlass projects list --state running")
    parser.add_argument("--state", action="append", choices=get_args(QueueState), help="may be repeated: any of them")
    parser.add_argument("--archived", action="store_true", help="those, instead of the others")
    parser.add_argument("--search", dest="q", metavar="TEXT", help="a part of the name")
    parser.add_argument("--limit", type=count, default=MOST, metavar="N", help=f"at most so many ({MOST})")

    parser = actions.add("show", show, "show one project and what it does", f"windlass projects show {AN_ID}")
    add_project(parser)

    parser = actions.add("runs", runs, "list a project's runs, newest first", f"windlass projects runs {AN_ID}")
    add_project(parser)
    parser.add_argument("--limit", type=count, default=MOST, metavar="N", help=f"at most so many ({MOST})")

    parser = actions.add("archive", archive, "archive an idle project", f"windlass projects archive {AN_ID}")
    add_project(parser)
    add_reason(parser)


def add_project(parser: argparse.ArgumentParser) -> None:
    is_a_project(parser.add_argument("project_id", type=PROJECT.read, metavar="PROJECT"))


def create(session: Session, arguments: argparse.Namespace) -> None:
    call = calls.create(
        arguments.name, fields_of(arguments), arguments.on_failure, arguments.user_id, arguments.idempotency_key
    )
    document = session.client.ask(call)
    if session.screen.as_json:
        session.screen.document(document)
        return
    project = call.read(document)
    session.screen.line(project.project_id)
    if project.deduplicated:
        session.screen.remark(f"there was one already; it is {project.queue.state}")
    elif session.screen.is_terminal:
        session.screen.remark(f"give it something to do: windlass projects add {project.project_id} NAME=VALUE …")


def list_projects(session: Session, arguments: argparse.Namespace) -> None:
    given = vars(arguments)
    states, archived, q = given.get("state") or (), given.get("archived", False), given.get("q")
    call = calls.list_projects(states, archived=archived, q=q)
    document = session.ask_pages(call, given.get("limit", MOST))
    found = call.read(document).items
    empty = (
        "no project is like that" if states or archived or q else "no projects; `windlass projects create` makes one"
    )
    note = f"these are the newest {len(found)}; `list --limit` shows more" if document.get("next_cursor") else None
    session.screen.show(document, views.projects_table(found, empty, note))


def show(session: Session, arguments: argparse.Namespace) -> None:
    session.show(calls.get(arguments.project_id), views.project_facts)


def runs(session: Session, arguments: argparse.Namespace) -> None:
    call = calls.runs(arguments.project_id)
    document = session.ask_pages(call, arguments.limit)
    found = call.read(document).items
    note = f"these are the newest {len(found)}; --limit shows more" if document.get("next_cursor") else None
    session.screen.show(document, views.runs_table(found, note))


def archive(session: Session, arguments: argparse.Namespace) -> None:
    session.show(calls.archive(arguments.project_id, arguments.reason), views.project_facts)
