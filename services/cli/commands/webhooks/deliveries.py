"""`windlass webhooks deliveries | delivery | redeliver`: what endpoints were told, and telling it again."""

import argparse
from typing import get_args

from windlass.client.webhooks import calls
from windlass.client.webhooks.documents import DeliveryState
from windlass.services.cli.commands.arguments import Commands, add_reason, count
from windlass.services.cli.commands.webhooks import views
from windlass.services.cli.commands.webhooks.endpoints import add_webhook
from windlass.services.cli.references import AN_ID, DELIVERY
from windlass.services.cli.session import Session

MOST = 20


def add_actions(actions: Commands) -> None:
    parser = actions.add(
        "deliveries",
        deliveries,
        "list what a webhook was told, newest first",
        f"windlass webhooks deliveries {AN_ID} --state failed",
    )
    add_webhook(parser)
    parser.add_argument("--state", choices=get_args(DeliveryState), help="only those")
    parser.add_argument("--limit", type=count, default=MOST, metavar="N", help=f"at most so many ({MOST})")

    parser = actions.add(
        "delivery", delivery, "show one delivery, with every try", f"windlass webhooks delivery {AN_ID}"
    )
    parser.add_argument("delivery_id", type=DELIVERY.read, metavar="DELIVERY")

    parser = actions.add(
        "redeliver", redeliver, "send deliveries again, under their own ids", f"windlass webhooks redeliver {AN_ID}"
    )
    parser.add_argument("delivery_ids", type=DELIVERY.read, nargs="+", metavar="DELIVERY")
    add_reason(parser)


def deliveries(session: Session, arguments: argparse.Namespace) -> None:
    call = calls.deliveries(arguments.webhook_id, arguments.state)
    document = session.ask_pages(call, arguments.limit)
    found = call.read(document).items
    empty = "no delivery is like that" if arguments.state else "it was told nothing yet"
    note = f"these are the newest {len(found)}; --limit shows more" if document.get("next_cursor") else None
    session.screen.show(document, views.deliveries_table(found, empty, note))


def delivery(session: Session, arguments: argparse.Namespace) -> None:
    session.show(calls.delivery(arguments.delivery_id), views.whole_delivery_facts)


def redeliver(session: Session, arguments: argparse.Namespace) -> int:
    return session.ask_each(
        arguments.delivery_ids,
        lambda delivery_id: calls.redeliver(delivery_id, arguments.reason),
        lambda sent: sent.state,
    )
