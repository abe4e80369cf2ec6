"""What becomes of a workflow as server-sent events: itself on every change, and the progress of its tasks."""

import asyncio
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from litestar import Response
from litestar.datastructures import State

from windlass.services.api.access.auth import Caller
from windlass.services.api.streams.cursors import Cursor, invalid_cursor, read_cursor
from windlass.services.api.streams.event_stream import PING, EventStream, retry_hint
from windlass.services.api.streams.many_tasks import find_again, in_order, next_page
from windlass.services.api.streams.messages import UNTOLD, encode, progress_message
from windlass.services.api.streams.scout import BREATH_SECONDS
from windlass.services.api.streams.subscription import Subscription
from windlass.services.api.workflows.documents import head_document, whole_document
from windlass.shared import db
from windlass.shared.db import Database
from windlass.shared.features.workflows import operations
from windlass.shared.store.reading import commit_order
from windlass.shared.store.reading.commit_order import Wanted
from windlass.shared.store.reading.events import EventWithState
from windlass.shared.store.rows import WorkflowRow
from windlass.shared.store.workflows import reading
from windlass.shared.workflow_states import ENDED

ENDS = {"completed": "complete", "failed": "error", "cancelled": "cancelled"}
SETTLING_SECONDS = 5.0
"""So long the last events of its tasks are waited for, at its end: an older transaction may still hold them back."""


@dataclass(frozen=True)
class Place:
    """How far a client has come: among the events of tasks, and of the workflow's own history."""

    cursor: Cursor
    seq: int

    def __str__(self) -> str:
        return f"{self.cursor}.{self.seq}"


async def stream_workflow(state: State, caller: Caller, row: WorkflowRow, last_seen: str | None) -> Response[Any]:
    """Goes on after the last id that the client has seen, or begins with the workflow as it is. 204 when it has ended
    and the client knows."""
    if last_seen:
        place = await read_place(state.pool, last_seen)
        if row.status in ENDED and place.seq == row.last_seq:
            return Response(None, status_code=204)
    else:
        place = Place(Cursor(await commit_order.newest_settled(state.pool)), 0)
    told = tell(state, caller, row.workflow_id, place)
    return EventStream(told, patience_seconds=state.settings.stream_patience_seconds, kind="many")


async def read_place(pool: Database, text: str) -> Place:
    cursor, _, seq = text.rpartition(".")
    if not (seq.isascii() and seq.isdigit() and len(seq) < 10):
        raise invalid_cursor()
    return Place(await find_again(pool, read_cursor(cursor)), int(seq))


class Telling:
    """One client's stream: what it has been told, and where it is."""

    def __init__(self, state: State, caller: Caller, workflow_id: UUID, place: Place) -> None:
        self._state = state
        self._workflow_id = workflow_id
        self._wanted = Wanted(workflow_id=str(workflow_id), visible_to=caller.own)
        self._keys: dict[UUID, str | None] = {}
        self._said: dict[str, Any] | None = None
        self._ended_at: float | None = None
        self.place = place
        self.is_over = False
        self.has_more = self.is_behind = False

    async def next(self) -> bytes:
        """The workflow is read before the events of its tasks: what made its end is there by then, and told before
        it."""
        pool = self._state.pool
        row = await operations.caught_up(pool, self._state.features, self._workflow_id)
        assert row is not None, "workflows are never deleted"
        read = partial(next_page, pool, self.place.cursor.position, self._wanted)
        page = await self._state.hub.reads.once((self._wanted, self.place.cursor.position), read)
        told = [each async for each in in_order(pool, page, self.place.cursor)]
        if any(event is not None and event.task_id not in self._keys for event, _ in told):
            self._keys = {each.task_id: each.workflow_key for each in await reading.tasks_of(pool, self._workflow_id)}
        seq = self.place.seq
        messages = b"".join(say(event, Place(at, seq), self._keys) for event, at in told if event is not None)
        self.place = Place(told[-1][1], seq)
        self.has_more, self.is_behind = page.has_more, page.has_more or page.has_unsettled
        return messages + await self._about(row)

    async def _about(self, row: WorkflowRow) -> bytes:
        document = head_document(row)
        if row.status in ENDED:
            self._ended_at = self._ended_at or time.monotonic()
            if self.has_more or (self.is_behind and time.monotonic() < self._ended_at + SETTLING_SECONDS):
                return b""
            self.is_over = True
        elif document == self._said:
            return b""
        self._said = document
        self.place = Place(self.place.cursor, row.last_seq)
        return encode(str(self.place), ENDS.get(row.status, "workflow"), await whole_document(self._state.pool, row))


async def tell(state: State, caller: Caller, workflow_id: UUID, place: Place) -> AsyncGenerator[bytes, None]:
    yield retry_hint()
    telling = Telling(state, caller, workflow_id, place)
    spoken_at = time.monotonic()
    with state.hub.subscribe(None) as subscription, state.keyring.stay(caller, subscription.wake) as stay:
        while not (state.hub.closing.is_set() or stay.is_over or telling.is_over):
            subscription.clear()
            try:
                messages = await telling.next()
                if not await stay.goes_on():
                    return
            except db.AWAY_OR_BUSY:
                yield PING
                await subscription.bear_an_outage()
                continue
            if messages or time.monotonic() >= spoken_at + state.settings.stream_ping_seconds:
                yield messages or PING
                spoken_at = time.monotonic()
            if not telling.has_more and not telling.is_over:
                await rest(state, subscription, is_behind=telling.is_behind)


async def rest(state: State, subscription: Subscription, *, is_behind: bool) -> None:
    """Nobody notifies when a transaction ends that has written no event: then it is looked at again soon."""
    within = (
        BREATH_SECONDS if is_behind else min(state.settings.stream_ping_seconds, state.settings.safety_poll_seconds)
    )
    await subscription.news(within)
    await asyncio.sleep(BREATH_SECONDS)


def say(event: EventWithState, at: Place, keys: dict[UUID, str | None]) -> bytes:
    """Its tasks' ends are no ends of the stream: all that they do is progress."""
    if event.task_id not in keys or event.type in UNTOLD or event.type in {"output", "step"}:
        return b""
    data = {"task_id": event.task_id, "key": keys[event.task_id], "seq": event.seq, **progress_message(event)}
    return encode(str(at), "progress", data)
