"""Endpoints on a real database, and what a worker that carries deliveries does, in short words."""

import json
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from tests.support.engine.store import Engine
from windlass.shared.concerns import LEVEL_OF_A_WEBHOOK, Concern
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
    return {"concerns": Concern.WEBHOOK.value, "level": LEVEL_OF_A_WEBHOOK, "webhook_url": url, **offered}


def answered(attempt: Claimed, status_code: int, *, last: bool = False) -> tuple[str, dict[str, Any]]:
    """How a try ends that is answered so, and what it leaves."""
    delivered = 200 <= status_code < 300
    said = {
        "attempt": attempt.attempt, "delivered": delivered, "status_code": status_code, "elapsed_ms": 3,
        "error": None if delivered else f"the endpoint answered {status_code}", "excerpt": "words",
        "gone": status_code == 410,
    }  # fmt: skip
    error: dict[str, Any] = {"type": "DeliveryFailed", "kind": "transient", "message": said["error"], "details": {}}
    fields: dict[str, Any] = {} if delivered else {"error": error}
    return "complete" if delivered else "bury" if last else "retry", {"checkpoint": {"try": said}, **fields}


async def a_key(engine: Engine, user_id: str, role: str = "user") -> None:
    """Without one, nothing is told to its endpoints."""
    await engine.sql(
        "INSERT INTO api_keys (key_id, secret_hash, role, user_id) VALUES ($1, '', $2, $3) ON CONFLICT DO NOTHING",
        f"{user_id}{role}", role, user_id,
    )  # fmt: skip


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
        new = webhooks.NewWebhook(webhook_id=webhook_id, user_id=user_id, events=events, **{**usual, **fields})
        assert await webhooks.create(engine.pool, new) == webhook_id
        return cls(engine, webhook_id, new.url)

    async def row(self) -> webhooks.WebhookRead:
        found = await webhooks.get(self.engine.pool, self.webhook_id)
        assert found is not None
        return found

    async def state(self) -> str:
        return (await self.row()).state

    async def deliveries(self) -> list[webhooks.DeliveryRead]:
        """The oldest first."""
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
        transition, fields = answered(attempt, status_code, last=last)
        await self.engine.finish(attempt, transition, **fields)

    async def fail(self, times: int) -> None:
        """That often in a row, each a delivery's own try."""
        waiting = [each for each in await self.deliveries() if each.shown_state == "waiting"]
        for number in range(times):
            await self.answer(waiting[number % len(waiting)], 500)
