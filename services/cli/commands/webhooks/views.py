"""Webhooks and their deliveries as people read them."""

from windlass.client.webhooks.documents import Delivery, DeliveryTry, SecretWebhook, Webhook, WholeDelivery
from windlass.services.cli.display.tables import Facts, Table
from windlass.services.cli.display.texts import age, clean, compact, known, moment


def webhooks_table(webhooks: tuple[Webhook, ...], note: str | None) -> Table:
    rows = [
        (
            each.webhook_id, each.state, known(each.events), age(each.failing_since), moment(each.last_success_at),
            known(each.url),
        )
        for each in webhooks
    ]  # fmt: skip
    columns = ("WEBHOOK", "STATE", "EVENTS", "FAILING", "DELIVERED", "URL")
    empty = "nobody is told of anything; `windlass webhooks create` makes a webhook"
    return Table(columns, rows, empty, wide=frozenset({"URL", "EVENTS"}), note=note, least=("DELIVERED",))


def webhook_facts(webhook: Webhook) -> Facts:
    return Facts(
        [
            ("webhook", webhook.webhook_id),
            ("url", known(webhook.url)),
            ("state", webhook.state),
            ("reason", known(webhook.reason)),
            ("events", known(webhook.events)),
            ("only", compact(webhook.filter) if webhook.filter else ""),
            ("scope", webhook.scope),
            ("description", known(webhook.description)),
            ("failing since", known(webhook.failing_since)),
            ("held", str(webhook.held) if webhook.held else ""),
            ("last success", known(webhook.last_success_at)),
            ("old secret until", known(webhook.previous_until)),
            ("user_id", known(webhook.user_id)),
            ("created_at", known(webhook.created_at)),
        ]
    )


def secret_facts(webhook: SecretWebhook) -> Facts:
    return Facts([("secret", webhook.secret), *webhook_facts(webhook).lines])


def deliveries_table(deliveries: tuple[Delivery, ...], empty: str, note: str | None) -> Table:
    rows = [
        (
            each.delivery_id, each.state, each.type, known(each.subject), str(each.attempts), known(each.last_status),
            moment(each.created_at), what_next(each),
        )
        for each in deliveries
    ]  # fmt: skip
    columns = ("DELIVERY", "STATE", "TYPE", "SUBJECT", "TRIES", "LAST", "CREATED", "WHAT")
    return Table(columns, rows, empty, wide=frozenset({"WHAT"}), note=note, least=("SUBJECT", "CREATED", "LAST"))


def delivery_facts(delivery: Delivery) -> Facts:
    return Facts(
        [
            ("delivery", delivery.delivery_id),
            ("webhook", delivery.webhook_id),
            ("type", delivery.type),
            ("subject", known(delivery.subject)),
            ("life", str(delivery.life)),
            ("state", delivery.state),
            ("reason", known(delivery.reason)),
            ("tries", str(delivery.attempts)),
            ("next", known(delivery.next_at)),
            ("task", delivery.task_id),
            ("created_at", known(delivery.created_at)),
            ("delivered_at", known(delivery.delivered_at)),
        ]
    )


def whole_delivery_facts(delivery: WholeDelivery) -> Facts:
    tries = [("try", tried(each)) for each in delivery.tries]
    return Facts([*delivery_facts(delivery).lines, *tries, ("body", compact(delivery.body))])


def tried(each: DeliveryTry) -> str:
    said = str(each.status_code) if each.error is None else clean(each.error)
    answer = f": {clean(each.excerpt)}" if each.excerpt else ""
    return f"{moment(each.at)}  {said} in {each.elapsed_ms or 0} ms{answer}"


def what_next(delivery: Delivery) -> str:
    if delivery.state == "waiting" and delivery.next_at is not None:
        return f"next {moment(delivery.next_at)}"
    return known(delivery.reason)
