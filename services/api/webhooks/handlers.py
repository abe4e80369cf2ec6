"""Endpoints over REST: made, listed, read, changed, deleted; tested, rotated, disabled and enabled."""

from typing import Any
from uuid import UUID

from litestar import Response, delete, get, patch, post
from litestar.datastructures import State
from litestar.params import FromPath
from uuid_utils.compat import uuid7

from windlass.services.api.access.auth import Caller, require_writer
from windlass.services.api.access.reasons import AskedReason, read_reason
from windlass.services.api.http.bodies import field_problem, read_json
from windlass.services.api.http.errors import Problem
from windlass.services.api.http.pages import page
from windlass.services.api.projects.handlers import Cursor, Limit, checked
from windlass.services.api.tasks.handlers import Asked
from windlass.services.api.webhooks.documents import delivery_document, webhook_document
from windlass.services.api.webhooks.looking_up import changeable_webhook, visible_delivery, visible_webhook
from windlass.services.api.webhooks.schemas import Enabling, NewWebhook, WebhookChange
from windlass.shared.features.webhooks import endpoints
from windlass.shared.providers.http.addresses import Allowances, fault_of_literal
from windlass.shared.store import webhooks
from windlass.shared.webhook_states import Scope

WebhookId = FromPath[UUID]


@post("/webhooks", status_code=201)
async def create_webhook(request: Asked, state: State) -> Response[dict[str, Any]]:
    """Makes an endpoint. Its secret is in this answer, and in no other."""
    require_writer(request.user)
    wanted = checked(NewWebhook, await read_json(request), code="invalid-webhook")
    scope = scope_for(request.user, wanted.scope) or (Scope.ALL if request.user.is_admin else Scope.OWN)
    refuse_foreign_events(request.user, wanted.events)
    refuse_private_url(state, wanted.url)
    secret = await state.endpoint_secrets.new(uuid7())
    made = await endpoints.create(
        state.features,
        endpoints.NewWebhook(
            webhook_id=secret.webhook_id,
            user_id=request.user.user_id,
            url=wanted.url,
            secret=secret.stored,
            events=tuple(wanted.events),
            filter=wanted.filter.model_dump(exclude_none=True),
            scope=scope,
            description=wanted.description,
        ),
    )
    if made is None:
        raise url_taken()
    document = webhook_document(await visible_webhook(state, request.user, made))
    return Response(
        {**document, "secret": secret.shown}, status_code=201, headers={"Location": f"/api/v1/webhooks/{made}"}
    )


@get("/webhooks")
async def list_webhooks(
    request: Asked, state: State, cursor: Cursor = None, limit: Limit = 50
) -> Response[dict[str, Any]]:
    """Endpoints, newest first."""
    await state.catch_up_on_webhooks.before_read()

    async def read(position: Any, number: int) -> list[tuple[Any, Any]]:
        rows = await webhooks.newest(state.pool, owner=request.user.own, before=position, limit=number)
        return [(row.webhook_id, webhook_document(row)) for row in rows]

    return await page(read, cursor=cursor, limit=limit)


@get("/webhooks/{webhook_id:uuid}")
async def get_webhook(request: Asked, state: State, webhook_id: WebhookId) -> dict[str, Any]:
    """One endpoint, and how it is."""
    return webhook_document(await visible_webhook(state, request.user, webhook_id))


@patch("/webhooks/{webhook_id:uuid}")
async def change_webhook(request: Asked, state: State, webhook_id: WebhookId) -> dict[str, Any]:
    """Its url, events, filter, scope or description: the next try knows of it."""
    require_writer(request.user)
    wanted = checked(WebhookChange, await read_json(request), code="invalid-webhook")
    row = await changeable_webhook(request, state, webhook_id, "change", reason=wanted.reason)
    scope_for(request.user, wanted.scope or row.scope)
    refuse_foreign_events(request.user, wanted.events or [])
    if wanted.url is not None:
        refuse_private_url(state, wanted.url)
    said = wanted.model_dump(exclude_unset=True, exclude={"reason"})
    if wanted.filter is not None:
        said["filter"] = wanted.filter.model_dump(exclude_none=True)
    if not await endpoints.alter(state.features, webhook_id, said):
        raise url_taken()
    return await document_of(request, state, webhook_id)


@delete("/webhooks/{webhook_id:uuid}", status_code=204)
async def delete_webhook(request: Asked, state: State, webhook_id: WebhookId, reason: AskedReason = None) -> None:
    """Nothing more is sent there; its deliveries are kept, and what waits is given up."""
    await changeable_webhook(request, state, webhook_id, "delete", reason=reason)
    await endpoints.delete(state.features, webhook_id)


@post("/webhooks/{webhook_id:uuid}/test", status_code=202)
async def test_webhook(request: Asked, state: State, webhook_id: WebhookId) -> dict[str, Any]:
    """Sends it `webhook.test`, once, however it is."""
    await changeable_webhook(request, state, webhook_id, "test", reason=await read_reason(request))
    delivery_id = await endpoints.test(state.features, webhook_id)
    assert delivery_id is not None, "endpoints are kept"
    return delivery_document(await visible_delivery(state, request.user, delivery_id))


@post("/webhooks/{webhook_id:uuid}/rotate", status_code=200)
async def rotate_webhook(request: Asked, state: State, webhook_id: WebhookId) -> dict[str, Any]:
    """A new secret, in this answer and in no other; for a day the one before signs as well."""
    row = await changeable_webhook(request, state, webhook_id, "rotate", reason=await read_reason(request))
    scope_for(request.user, row.scope)
    secret = await state.endpoint_secrets.new(webhook_id)
    await endpoints.rotate(state.features, webhook_id, secret.stored)
    return {**await document_of(request, state, webhook_id), "secret": secret.shown}


@post("/webhooks/{webhook_id:uuid}/disable", status_code=200)
async def disable_webhook(request: Asked, state: State, webhook_id: WebhookId) -> dict[str, Any]:
    """What it would be told is held until it is enabled."""
    await changeable_webhook(request, state, webhook_id, "disable", reason=await read_reason(request))
    await endpoints.disable(state.features, webhook_id)
    return await document_of(request, state, webhook_id)


@post("/webhooks/{webhook_id:uuid}/enable", status_code=200)
async def enable_webhook(request: Asked, state: State, webhook_id: WebhookId) -> dict[str, Any]:
    """Also one that is failing or gone. What was held is sent, in its order, or given up."""
    require_writer(request.user)
    wanted = checked(Enabling, await read_json(request, optional=True), code="invalid-webhook")
    row = await changeable_webhook(request, state, webhook_id, "enable", reason=wanted.reason)
    scope_for(request.user, row.scope)  # its owner may have been an admin once
    await endpoints.enable(state.features, webhook_id, replay=wanted.replay == "held")
    return await document_of(request, state, webhook_id)


async def document_of(request: Asked, state: State, webhook_id: UUID) -> dict[str, Any]:
    return webhook_document(await visible_webhook(state, request.user, webhook_id))


def scope_for(caller: Caller, wanted: str | None) -> str | None:
    if wanted == Scope.ALL and not caller.is_admin:
        raise field_problem("/scope", "forbidden", "only an admin's webhook hears of everybody's things", status=403)
    return wanted


def refuse_foreign_events(caller: Caller, events: list[str]) -> None:
    for number, event in enumerate(events):
        if event.startswith("provider.") and not caller.is_admin:
            raise field_problem(f"/events/{number}", "forbidden", "providers' events are for admins", status=403)


def refuse_private_url(state: State, url: str) -> None:
    """A name is checked each time it is resolved; an address that is never spoken to is refused now."""
    if fault := fault_of_literal(url, Allowances.for_webhooks(state.settings)):
        raise field_problem("/url", "invalid-webhook", fault)


def url_taken() -> Problem:
    detail = "you have a webhook for this url; change that one"
    return Problem(409, "url-taken", detail, errors=[{"pointer": "/url", "detail": detail}])


HANDLERS = [
    create_webhook, list_webhooks, get_webhook, change_webhook, delete_webhook, test_webhook, rotate_webhook,
    disable_webhook, enable_webhook,
]  # fmt: skip
