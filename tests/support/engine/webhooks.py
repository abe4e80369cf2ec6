"""Endpoints on a real database, and what a worker that carries deliveries does, in short words."""

import json
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from tests.support.engine.store import Engine, until
from windlass.shared.concerns import Concern
from windlass.shared.features.catching_up import CatchUp
from windlass.shared.features.webhooks import carrying, endpoints
from windlass.shared.features.webhooks.carrying import Try
from windlass.shared.features.webhooks.fan_out import WEBHOOKS
from windlass.shared.features.webhooks.turn import DELIVERIES
from windlass.shared.store import webhooks
from windlass.shared.store.rows import DeliveryRow
from windlass.shared.store.tasks import Claimed, Refused

LIMIT = "INSERT INTO actors (name, concurrency_limit) VALUES ('webhook', 2) ON CONFLICT (name) DO NOTHING"


async def ready(engine: Engine) -> None:
    """Somebody who carries deliveries, and somebody whose tasks are told of."""
    await engine.provide("http", limit=None, actors=("webhook",))
    await engine.provide("openrouter", limit=None, actors=("summarize",))
    await engine.sql(LIMIT)


def told_of(**fields: Any) -> dict[str, Any]:
    """A task that is no silent one's."""
    return {"actor": "summarize", "provider": "openrouter", **fields}


def by_name(url: str = "https://example.org/hook") -> dict[str, Any]:
    """What a task is submitted with that names a url."""
    offered = {"webhook_owner": "ann", "new_webhook_id": uuid7(), "new_webhook_secret": b"sealed".hex()}
    return {"concerns": Concern.WEBHOOK.value, "webhook_url": url, **offered}


async def answered(
    engine: Engine, attempt: Claimed, status_code: int, *, last: bool = False
) -> tuple[str, dict[str, Any]]:
    """Records a try that was answered so, and returns how its attempt ends."""
    delivered = 200 <= status_code < 300
    message = None if delivered else f"the endpoint answered {status_code}"
    made = Try(
        task_id=attempt.task_id, attempt=attempt.attempt, claim_token=attempt.claim_token, delivered=delivered,
        gone=status_code == 410, status_code=status_code, elapsed_ms=3, error=message, excerpt="words",
    )  # fmt: skip
    await carrying.record(engine.pool, made)
    error: dict[str, Any] = {"type": "DeliveryFailed", "kind": "transient", "message": message, "details": {}}
    return "complete" if delivered else "bury" if last else "retry", {} if delivered else {"error": error}


async def catch_up(engine: Engine) -> None:
    """As the api does before each read of endpoints and deliveries."""
    for feature in (WEBHOOKS, DELIVERIES, WEBHOOKS):
        await CatchUp(engine.pool, feature)()


async def a_key(engine: Engine, user_id: str, role: str = "user") -> None:
    """Without one, nothing is told to its endpoints."""
    await engine.sql(
        "INSERT INTO api_keys (key_id, secret_hash, role, user_id) VALUES ($1, '', $2, $3) ON CONFLICT DO NOTHING",
        f"{user_id}{role}", role, user_id,
    )  # fmt: skip


async def until_one_waits(engine: Engine) -> None:
    """For a lock that another transaction of this database has."""
    waits = """
        SELECT EXISTS (
            SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')
    """
    await until(lambda: engine.pool.fetchval(waits))


class Endpoint:
    """One of Ann's, or of somebody else."""

    def __init__(self, engine: Engine, webhook_id: UUID, url: str = "") -> None:
        self.engine = engine
        self.webhook_id = webhook_id
        self.url = url

    @classmethod
    async def made(cls, engine: Engine, *events: str, user_id: str = "ann", **fields: Any) -> "Endpoint":
        webhook_id = uuid7()
        is_admins = fields.get("scope") == "all" or any(each.startswith("provider.") for each in events)
        await a_key(engine, user_id, "admin" if is_admins else "user")
        usual = {"url": f"https://example.org/{webhook_id}", "secret": b"sealed"}
        new = endpoints.NewWebhook(webhook_id=webhook_id, user_id=user_id, events=events, **{**usual, **fields})
        assert await endpoints.create(engine.pool, new) == webhook_id
        return cls(engine, webhook_id, new.url)

    async def row(self) -> webhooks.WebhookRead:
        await catch_up(self.engine)
        found = await webhooks.get(self.engine.pool, self.webhook_id)
        assert found is not None
        return found

    async def state(self) -> str:
        return (await self.row()).state

    async def deliveries(self) -> list[webhooks.DeliveryRead]:
        """The oldest first."""
        await catch_up(self.engine)
        return (await webhooks.deliveries(self.engine.pool, self.webhook_id, limit=500))[::-1]

    async def states(self) -> list[str]:
        return [each.shown_state for each in await self.deliveries()]

    async def told(self) -> list[tuple[str, dict[str, Any]]]:
        bodies = [json.loads(each.body) for each in await self.deliveries()]
        return [(each["type"], each["data"]) for each in bodies]

    async def take(self, delivery: DeliveryRow) -> Claimed:
        await self.engine.sql(
            "UPDATE tasks SET available_at = clock_timestamp() WHERE task_id = $1 AND held = '{}'", delivery.task_id
        )
        return await self.engine.start(delivery.task_id)

    async def is_refused(self, delivery: DeliveryRow) -> bool:
        return isinstance(await self.engine.claim(delivery.task_id), Refused)

    async def answer(self, delivery: DeliveryRow, status_code: int = 200, *, last: bool = False) -> None:
        """A try of it is answered so; `last` uses up its retries."""
        attempt = await self.take(delivery)
        await self.end(attempt, status_code, last=last)

    async def end(self, attempt: Claimed, status_code: int, *, last: bool = False) -> None:
        transition, fields = await answered(self.engine, attempt, status_code, last=last)
        await self.engine.finish(attempt, transition, **fields)
        await catch_up(self.engine)

    async def fail(self, times: int) -> None:
        """That often in a row, each a delivery's own try."""
        waiting = [each for each in await self.deliveries() if each.shown_state == "waiting"]
        for number in range(times):
            await self.answer(waiting[number % len(waiting)], 500)
