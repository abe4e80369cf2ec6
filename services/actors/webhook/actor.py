"""The webhook actor: sends one delivery to its endpoint and records the answer."""

from typing import Any
from uuid import UUID

import httpx

from windlass.actors import actor
from windlass.services.actors.webhook.sending import Answer, send
from windlass.services.actors.worker.context.async_context import AsyncAttempt
from windlass.services.actors.worker.ending.refusals import HandedBack
from windlass.shared.actors.payloads import WebhookPayload
from windlass.shared.errors import DeliveryDropped, DeliveryFailed
from windlass.shared.features.webhooks import carrying
from windlass.shared.features.webhooks.carrying import Try, Turn
from windlass.shared.metrics.webhooks import DELIVERIES, DELIVERY_SECONDS
from windlass.shared.providers.http.addresses import Allowances
from windlass.shared.sealing import WEBHOOK_SECRETS, unseal
from windlass.shared.settings import Settings
from windlass.shared.store.access import secrets

DROPPED = {
    "deleted": "the webhook was deleted",
    "forbidden": "the webhook's owner has no key any more that may read this",
    "unsubscribed": "the webhook does not subscribe to such events any more",
}


@actor
class Webhook:
    """Made once per process, since reading the certificates that are trusted takes a while."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._allowances = Allowances.for_webhooks(settings)
        self._tls = httpx.create_ssl_context(trust_env=False)

    async def __call__(self, context: AsyncAttempt, payload: WebhookPayload) -> dict[str, Any]:
        turn = await self._turn(context, payload)
        key = await context.ask(secrets.ensure, WEBHOOK_SECRETS)
        sealed = [each for each in (turn.secret, turn.previous_secret) if each is not None]
        answer = await send(
            turn.url,
            turn.delivery_id,
            turn.body,
            [unseal(key, each, turn.webhook_id) for each in sealed],
            allowances=self._allowances,
            tls=self._tls,
            seconds=self._settings.webhook_timeout_seconds,
            owner=context.task.user_id,
        )
        await context.ask(carrying.record, try_of(context, answer))
        DELIVERIES.labels(answer.outcome).inc()
        DELIVERY_SECONDS.labels(answer.outcome).observe(answer.seconds)
        return result_of(answer)

    async def _turn(self, context: AsyncAttempt, payload: WebhookPayload) -> Turn:
        """Raises where nothing is to be sent: a delivery that has to wait for another is given back, and held."""
        try:
            delivery_id = UUID(payload.delivery_id)
        except ValueError:
            raise DeliveryDropped("the task names no delivery") from None
        turn = await context.ask(carrying.begin, context.task_id, delivery_id)
        if turn is None:
            raise DeliveryDropped("the task carries no delivery")
        if turn.word in DROPPED:
            raise DeliveryDropped(DROPPED[turn.word])
        if turn.word != "send":
            raise HandedBack
        return turn


def try_of(context: AsyncAttempt, answer: Answer) -> Try:
    return Try(
        task_id=context.task_id,
        attempt=context.attempt,
        claim_token=context.task.claim_token,
        delivered=answer.is_delivered,
        gone=answer.wants_no_more,
        status_code=answer.status_code,
        elapsed_ms=round(answer.seconds * 1000),
        error=answer.error,
        excerpt=answer.excerpt,
    )


def result_of(answer: Answer) -> dict[str, Any]:
    if answer.is_delivered:
        return {"status_code": answer.status_code}
    raise DeliveryFailed(answer.error or "", status_code=answer.status_code, retry_after=answer.retry_after)
