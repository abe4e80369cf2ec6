"""`windlass projects add | items | move | skip | requeue`: what a project has to do, and in which order."""

import argparse
from collections.abc import Callable
from typing import cast, get_args

from windlass.client.call import Call
from windlass.client.projects import calls
from windlass.client.projects.documents import Item, ItemState
from windlass.client.projects.options import NewItem
from windlass.services.cli.commands.arguments import Commands, add_reason, count
from windlass.services.cli.commands.projects import views
from windlass.services.cli.commands.projects.making import add_project
from windlass.services.cli.commands.projects.task_fields import add_fields, fields_of
from windlass.services.cli.commands.submit import json_from
from windlass.services.cli.references import AN_ID, ITEM
from windlass.services.cli.session import Session

MOST = 50


def add_actions(actions: Commands) -> None:
    parser = actions.add(
        "add",
        add,
        "put an item at the end of the backlog, or many",
        f"windlass projects add {AN_ID} --title header seconds=5 steps=10",
        intermixed=True,
    )
    add_project(parser)
    parser.add_argument("--title", help="what to call it in a list")
    parser.add_argument("--items", type=items_from, metavar="JSON", help="a list of items; @FILE reads a file, - stdin")
    add_fields(parser)
    parser.set_defaults(refuse=parser.error)

    parser = actions.add("items", items, "show the backlog in its order", f"windlass projects items {AN_ID}")
    add_project(parser)
    parser.add_argument("--state", action="append", choices=get_args(ItemState), help="may be repeated: any of them")
    parser.add_argument("--limit", type=count, default=MOST, metavar="N", help=f"at most so many ({MOST})")

    parser = actions.add(
        "move", move, "put an item elsewhere in the backlog", f"windlass projects move {AN_ID} {AN_ID} --before {AN_ID}"
    )
    add_project(parser)
    parser.add_argument("item_id", type=ITEM.read, metavar="ITEM")
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--before", type=ITEM.read, metavar="ITEM")
    place.add_argument("--after", type=ITEM.read, metavar="ITEM")

    for name, command, duty in (
        ("skip", skip, "pass items over until they are requeued"),
        ("requeue", requeue, "let items wait again, where they stand"),
    ):
        parser = actions.add(name, command, duty, f"windlass projects {name} {AN_ID} {AN_ID}")
        add_project(parser)
        parser.add_argument("item_ids", type=ITEM.read, nargs="+", metavar="ITEM")
        add_reason(parser)


def add(session: Session, arguments: argparse.Namespace) -> None:
    single: NewItem = {**fields_of(arguments), **({"title": arguments.title} if arguments.title else {})}
    if single and arguments.items:
        arguments.refuse("say one item, or many with --items")
    call = calls.add(arguments.project_id, arguments.items or [single])
    document = session.client.ask(call)
    if session.screen.as_json:
        session.screen.document(document)
        return
    for item in call.read(document).items:
        session.screen.line(item.item_id)


def items(session: Session, arguments: argparse.Namespace) -> None:
    call = calls.items(arguments.project_id, arguments.state or ())
    document = session.ask_pages(call, arguments.limit)
    found = call.read(document).items
    empty = "no item is like that" if arguments.state else "the backlog is empty; `windlass projects add` fills it"
    note = f"these are the first {len(found)}; --limit shows more" if document.get("next_cursor") else None
    session.screen.show(document, views.items_table(found, empty, note))


def move(session: Session, arguments: argparse.Namespace) -> None:
    call = calls.move(arguments.project_id, arguments.item_id, arguments.before, arguments.after)
    session.show(call, views.item_facts)


def skip(session: Session, arguments: argparse.Namespace) -> int:
    return each(session, arguments, calls.skip)


def requeue(session: Session, arguments: argparse.Namespace) -> int:
    return each(session, arguments, calls.requeue)


def each(session: Session, arguments: argparse.Namespace, call: Callable[[str, str, str | None], Call[Item]]) -> int:
    return session.ask_each(
        arguments.item_ids,
        lambda item_id: call(arguments.project_id, item_id, arguments.reason),
        lambda item: item.state,
    )


def items_from(text: str) -> list[NewItem]:
    document = json_from(text)
    if not isinstance(document, list) or not document or not all(isinstance(item, dict) for item in document):
        raise argparse.ArgumentTypeError("items are a JSON list of objects: [{…}, …]")
    return cast(list[NewItem], document)
