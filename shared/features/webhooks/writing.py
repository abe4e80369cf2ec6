"""Writes deliveries: one for each endpoint that receives an event, and the task that carries it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from windlass.shared.concerns import Concern
from windlass.shared.db import Database
from windlass.shared.features.webhooks import bodies, operations, queries
from windlass.shared.features.webhooks.rules import TEST, Event, is_held
from windlass.shared.webhook_states import EndpointState

ATTEMPTS = 10
TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class Receiver:
    """An endpoint as it was read when the event was handled."""

    webhook_id: UUID
    user_id: str
    state: str


async def write(db: Database, addressed: Sequence[tuple[Event, Sequence[Receiver]]]) -> list[UUID]:
    """Writes the deliveries of events, in their order, and submits the tasks that carry them. Returns the ids of the
    new deliveries."""
    everyone = {each.webhook_id: each for _, receivers in addressed for each in receivers}
    unwell = {webhook_id for webhook_id, each in everyone.items() if each.state != EndpointState.ENABLED}
    standings = await queries.standings(db, sorted(unwell))
    # Deleted ones receive nothing. One that is deleted from here on drops the delivery when it is tried.
    deleted = unwell - standings.keys()
    addressed = [
        (event, left)
        for event, receivers in addressed
        if (left := [each for each in receivers if each.webhook_id not in deleted])
    ]
    if not addressed:
        return []
    now: datetime = await db.fetchval("SELECT clock_timestamp()")
    pairs = [
        (place, event, each.webhook_id)
        for place, (event, receivers) in enumerate(addressed, 1)
        for each in receivers
    ]  # fmt: skip
    written = await queries.write_deliveries(
        db,
        [_stored(place, event) for place, (event, _) in enumerate(addressed, 1)],
        [
            (delivery_id, webhook_id, place, webhook_id == event.named, uuid7())
            for delivery_id, (place, event, webhook_id) in zip(ids_at(now, len(pairs)), pairs, strict=True)
        ],
    )
    written.sort(key=lambda each: each.delivery_id)
    held, tried = [], {webhook_id for webhook_id, each in standings.items() if each.has_waiting}
    for each in written:
        standing = standings.get(each.webhook_id)
        is_oldest = each.webhook_id not in tried
        if standing is not None and is_held(standing.state, each.type, is_oldest=is_oldest):
            held.append(each.task_id)
        tried.add(each.webhook_id)
    tasks = [
        carrier(each.task_id, each.delivery_id, each.webhook_id, everyone[each.webhook_id].user_id, each.type)
        for each in written
    ]
    if tasks:
        await operations.submit(db, tasks, held=held)
    return [each.delivery_id for each in written]


def _stored(place: int, event: Event) -> dict[str, Any]:
    return {
        "place": place,
        "body": bodies.body(event.type, event.at, event.data),
        "type": event.type,
        "subject": event.subject,
        "life": event.life,
        "seq": event.seq,
    }


def carrier(task_id: UUID, delivery_id: UUID, webhook_id: UUID, user_id: str, type_: str) -> dict[str, Any]:
    """The task that carries a delivery. Its key is the endpoint, so that no endpoint takes more than its places. A test
    is tried once."""
    return {
        "task_id": task_id,
        "actor": "webhook",
        "provider": "http",
        "user_id": user_id,
        "timeout_seconds": TIMEOUT_SECONDS,
        "max_retries": 0 if type_ == TEST else ATTEMPTS - 1,
        "payload": {"delivery_id": delivery_id},
        "concurrency_key": webhook_id,
        "concerns": Concern.KEY.value | Concern.DELIVERY.value,
    }


def ids_at(moment: datetime, number: int) -> list[UUID]:
    """Ids of version 7 that grow: the time by Postgres' clock to a quarter of a microsecond, then random bits. The
    oldest delivery of an endpoint is the one with the smallest id."""
    micros = int(moment.timestamp() * 1_000_000)
    first = (micros // 1000 << 12) | (micros % 1000 * 4096 // 1000)
    return [_with_time(first + place) for place in range(number)]


def _with_time(ticks: int) -> UUID:
    random_bits = uuid7().int & ((1 << 62) - 1)
    return UUID(int=(ticks >> 12) << 80 | 7 << 76 | (ticks & 0xFFF) << 64 | 2 << 62 | random_bits)
