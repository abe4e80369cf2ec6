"""Moves of tasks and other events become deliveries: one for each endpoint that subscribes to the event when it is
handled."""

from collections.abc import Mapping, Sequence
from typing import Any

from windlass.shared.concerns import LEFT_OUT_ACTORS
from windlass.shared.db import Database
from windlass.shared.features.feature import Feature
from windlass.shared.features.webhooks import bodies, queries, writing
from windlass.shared.features.webhooks.rules import APPROVAL_REQUESTED, ENDS, Event, Rights, event_type, receives
from windlass.shared.store.outbox import Move


async def handle(db: Database, moves: Sequence[Move]) -> None:
    """Deliveries are written in the order in which the moves happened."""
    in_order = sorted(moves, key=lambda move: (move.at, move.id))
    wanted = [(move.task_id, move.seq) for move in in_order if _type(move) is not None]
    tasks = await queries.moved_tasks(db, wanted) if wanted else {}
    events = [event for move in in_order if (event := _event(move, tasks)) is not None]
    if not events:
        return
    found = await queries.candidates(
        db,
        owners={event.owner for event in events if event.owner is not None},
        types={event.type for event in events},
        named={event.named for event in events if event.named is not None},
    )
    endpoints = {each.webhook_id: each for each in found}
    if not endpoints:
        return
    rights = await queries.rights_of(db, {each.user_id for each in endpoints.values()})
    addressed = [
        (
            event,
            [
                writing.Receiver(each.webhook_id, each.user_id, each.state)
                for _, each in sorted(endpoints.items())
                if receives(each, event, rights.get(each.user_id, Rights()))
            ],
        )
        for event in events
    ]
    await writing.write(db, addressed)


def _type(move: Move) -> str | None:
    return event_type(move.move, move.status) if move.is_of_task else None


def _event(move: Move, tasks: Mapping[tuple[Any, int], Mapping[str, Any]]) -> Event | None:
    if not move.is_of_task:
        return _published(move)
    type_, task = _type(move), tasks.get((move.task_id, move.seq))
    if type_ is None or task is None:
        return None  # no event, or the task was deleted
    return Event(
        type=type_,
        subject=str(move.task_id),
        seq=move.seq,
        at=move.at,
        owner=task["user_id"],
        about={name: task[name] for name in ("project_id", "workflow_id", "actor", "tags")},
        data=bodies.task_data(task, type_, status=move.status, life=move.life, seq=move.seq),
        life=move.life,
        named=task["webhook_id"] if move.status in ENDS and type_ != APPROVAL_REQUESTED else None,
        only_named=task["actor"] in LEFT_OUT_ACTORS,
    )


def _published(move: Move) -> Event | None:
    """See `publishing`."""
    if move.data is None:
        return None
    return Event(
        type=move.move,
        subject=str(move.data["subject"]),
        seq=move.data["seq"],
        at=move.at,
        owner=move.data.get("owner"),
        about=move.data.get("about") or {},
        data=bodies.event_data(move.data["data"]),
    )


WEBHOOKS = Feature("webhook", handle, subjects_at_once=25)
