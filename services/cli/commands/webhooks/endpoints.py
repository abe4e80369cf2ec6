"""`windlass webhooks create | change | list | show | test | rotate | disable | enable | delete`."""

import argparse
from typing import cast, get_args

from windlass.client.webhooks import calls
from windlass.client.webhooks.documents import Replay, Scope
from windlass.client.webhooks.options import WebhookChange, WebhookFilter
from windlass.services.cli.commands.arguments import Commands, add_reason, count
from windlass.services.cli.commands.completing import is_a_webhook
from windlass.services.cli.commands.webhooks import views
from windlass.services.cli.references import AN_ID, PROJECT_LABEL, WEBHOOK, WORKFLOW_LABEL
from windlass.services.cli.session import Session

MOST = 50
ONLY = ("project_id", "workflow_id", "actor", "tag")


def add_actions(actions: Commands) -> None:
    parser = actions.add(
        "create",
        create,
        "tell a url of what happens; its secret is shown this once",
        "windlass webhooks create https://example.org/hook --event task.completed --event task.dead",
    )
    parser.add_argument("endpoint", metavar="URL", help="https, unless it is an allowed private address")
    parser.add_argument(
        "--event", dest="events", action="append", required=True, help="such as task.completed, or task.*; repeatable"
    )
    parser.add_argument("--scope", choices=get_args(Scope), help="your own things, or everybody's (admins)")
    parser.add_argument("--description", metavar="TEXT")
    add_filter(parser)

    parser = actions.add(
        "change",
        change,
        "change a webhook's URL, events, filter, scope or description",
        f"windlass webhooks change {AN_ID} --endpoint https://example.org/new --event 'task.*'",
    )
    add_webhook(parser)
    parser.add_argument("--endpoint", metavar="URL", help="send its deliveries to this URL, waiting ones included")
    parser.add_argument(
        "--event",
        dest="events",
        action="append",
        help="subscribe to this instead of the present events; repeatable",
    )
    parser.add_argument("--scope", choices=get_args(Scope), help="receive your own events, or everybody's (admins)")
    parser.add_argument("--description", metavar="TEXT", help="describe it; an empty text removes the description")
    add_filter(parser).add_argument("--no-filter", action="store_true", help="remove the present filter")
    add_reason(parser)
    parser.set_defaults(refuse=parser.error)

    parser = actions.add("list", list_webhooks, "list webhooks, newest first", "windlass webhooks list")
    parser.add_argument("--limit", type=count, default=MOST, metavar="N", help=f"at most so many ({MOST})")

    parser = actions.add("show", show, "show one webhook and how it is", f"windlass webhooks show {AN_ID}")
    add_webhook(parser)

    for name, command, duty in (
        ("test", test, "send it a delivery that says nothing else"),
        ("rotate", rotate, "give it a new secret; for a day the one before it signs as well"),
        ("disable", disable, "hold what it would be told until it is enabled"),
        ("enable", enable, "send what was held, and what happens from now on"),
        ("delete", delete, "tell it nothing more; its deliveries are kept"),
    ):
        parser = actions.add(name, command, duty, f"windlass webhooks {name} {AN_ID}")
        add_webhook(parser)
        if command is enable:
            parser.add_argument(
                "--replay", choices=get_args(Replay), default="held", help="none gives up what was held"
            )
        add_reason(parser)


def add_filter(parser: argparse.ArgumentParser) -> "argparse._ArgumentGroup":
    group = parser.add_argument_group("filter: receive only events that match all of these")
    group.add_argument(
        "--project", dest="project_id", type=PROJECT_LABEL.read, metavar="PROJECT", help="events of this project"
    )
    group.add_argument(
        "--workflow", dest="workflow_id", type=WORKFLOW_LABEL.read, metavar="WORKFLOW", help="events of this workflow"
    )
    group.add_argument("--actor", help="events of this actor's tasks")
    group.add_argument("--tag", help="events of tasks with this tag")
    return group


def add_webhook(parser: argparse.ArgumentParser) -> None:
    is_a_webhook(parser.add_argument("webhook_id", type=WEBHOOK.read, metavar="WEBHOOK"))


def create(session: Session, arguments: argparse.Namespace) -> None:
    only = filter_of(arguments)
    call = calls.create(arguments.endpoint, arguments.events, only or None, arguments.scope, arguments.description)
    session.show(call, views.secret_facts)
    session.screen.remark("give the secret to the receiver: it cannot be shown again")


def change(session: Session, arguments: argparse.Namespace) -> None:
    only = filter_of(arguments)
    if only and arguments.no_filter:
        arguments.refuse("--no-filter and a filter exclude each other")
    given = {"url": arguments.endpoint, "events": arguments.events, "scope": arguments.scope}
    changes = {name: value for name, value in given.items() if value is not None}
    if only or arguments.no_filter:
        changes["filter"] = only
    if arguments.description is not None:
        changes["description"] = arguments.description or None
    if not changes:
        arguments.refuse("name a change: --endpoint, --event, --scope, --description, --no-filter or a filter")
    if arguments.reason is not None:
        changes["reason"] = arguments.reason
    session.show(calls.change(arguments.webhook_id, cast(WebhookChange, changes)), views.webhook_facts)


def filter_of(arguments: argparse.Namespace) -> WebhookFilter:
    return cast(WebhookFilter, {name: said for name in ONLY if (said := getattr(arguments, name)) is not None})


def list_webhooks(session: Session, arguments: argparse.Namespace) -> None:
    call = calls.list_webhooks()
    document = session.ask_pages(call, vars(arguments).get("limit", MOST))
    found = call.read(document).items
    note = f"these are the newest {len(found)}; `list --limit` shows more" if document.get("next_cursor") else None
    session.screen.show(document, views.webhooks_table(found, note))


def show(session: Session, arguments: argparse.Namespace) -> None:
    session.show(calls.get(arguments.webhook_id), views.webhook_facts)


def test(session: Session, arguments: argparse.Namespace) -> None:
    sent = session.show(calls.send_test(arguments.webhook_id, arguments.reason), views.delivery_facts)
    if session.screen.is_terminal:
        session.screen.remark(f"see what it answers: windlass webhooks delivery {sent.delivery_id}")


def rotate(session: Session, arguments: argparse.Namespace) -> None:
    session.show(calls.rotate(arguments.webhook_id, arguments.reason), views.secret_facts)
    session.screen.remark("give the secret to the receiver within a day: it cannot be shown again")


def disable(session: Session, arguments: argparse.Namespace) -> None:
    session.show(calls.disable(arguments.webhook_id, arguments.reason), views.webhook_facts)


def enable(session: Session, arguments: argparse.Namespace) -> None:
    session.show(calls.enable(arguments.webhook_id, arguments.replay, arguments.reason), views.webhook_facts)


def delete(session: Session, arguments: argparse.Namespace) -> None:
    session.client.perform(calls.delete(arguments.webhook_id, arguments.reason))
    session.screen.remark("it is told nothing more; what waited for it is given up, and kept")
