"""What the operations on webhooks take and answer, beside what their handlers say themselves."""

from windlass.services.api.access.reasons import Reasoned
from windlass.services.api.reference.documents import webhooks as documents
from windlass.services.api.reference.operation import Answer, Operation
from windlass.services.api.webhooks.schemas import Enabling, NewWebhook, WebhookChange

WEBHOOK, DELIVERY = "/api/v1/webhooks/{webhook_id}", "/api/v1/deliveries/{delivery_id}"

A_WEBHOOK = Answer("The webhook.", (documents.WebhookDocument,))
WITH_SECRET = (documents.SecretWebhookDocument,)
WHY = {"reason": "its owner asked for it"}


def _told(summary: str, answers: dict[int, Answer], *, problems: tuple[int, ...] = (403, 404)) -> Operation:
    return Operation("Webhooks", summary, answers, problems=problems, body=Reasoned, body_required=False, example=WHY)


WEBHOOK_OPERATIONS: dict[tuple[str, str], Operation] = {
    ("POST", "/api/v1/webhooks"): Operation(
        "Webhooks",
        "Make a webhook",
        {201: Answer("The webhook, with its secret.", WITH_SECRET, headers={"Location": "The webhook's own path."})},
        problems=(403, 409),
        body=NewWebhook,
    ),
    ("GET", "/api/v1/webhooks"): Operation(
        "Webhooks", "List webhooks", {200: Answer("A page.", (documents.WebhookPage,))}, problems=(422,)
    ),
    ("GET", WEBHOOK): Operation("Webhooks", "Read a webhook", {200: A_WEBHOOK}, problems=(404,)),
    ("PATCH", WEBHOOK): Operation(
        "Webhooks",
        "Change a webhook",
        {200: A_WEBHOOK},
        problems=(403, 404, 409),
        body=WebhookChange,
        example={"events": ["task.*"]},
    ),
    ("DELETE", WEBHOOK): Operation("Webhooks", "Delete a webhook", {204: Answer("It is gone.")}, problems=(403, 404)),
    ("POST", f"{WEBHOOK}/test"): _told("Test a webhook", {202: Answer("It is sent.", (documents.DeliveryDocument,))}),
    ("POST", f"{WEBHOOK}/rotate"): _told("Give a webhook a new secret", {200: Answer("With the secret.", WITH_SECRET)}),
    ("POST", f"{WEBHOOK}/disable"): _told("Disable a webhook", {200: A_WEBHOOK}),
    ("POST", f"{WEBHOOK}/enable"): Operation(
        "Webhooks",
        "Enable a webhook",
        {200: A_WEBHOOK},
        problems=(403, 404),
        body=Enabling,
        body_required=False,
        example={"replay": "held"},
    ),
    ("GET", f"{WEBHOOK}/deliveries"): Operation(
        "Webhooks",
        "List a webhook's deliveries",
        {200: Answer("A page.", (documents.DeliveryPage,))},
        problems=(404, 422),
    ),
    ("GET", DELIVERY): Operation(
        "Webhooks",
        "Read a delivery",
        {200: Answer("With every try.", (documents.WholeDeliveryDocument,))},
        problems=(404,),
    ),
    ("POST", f"{DELIVERY}/redeliver"): _told(
        "Send a delivery again",
        {202: Answer("It is sent again.", (documents.DeliveryDocument,))},
        problems=(403, 404, 409),
    ),
}
