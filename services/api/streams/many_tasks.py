"""The stories of many tasks on one connection, in the order of commit."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from litestar import Response
from litestar.datastructures import State

from windlass.services.api.access.auth import Caller
from windlass.services.api.media.links import MediaLinks
from windlass.services.api.streams.cursors import Cursor, invalid_cursor, read_cursor
from windlass.services.api.streams.event_stream import PING, EventStream, delay_of, retry_hint
from windlass.services.api.streams.messages import encode, message_of
from windlass.services.api.streams.scout import BREATH_SECONDS, LOOK_ROWS
from windlass.services.api.streams.thinning import Everything, Read, StateOnly
from windlass.shared import db
from windlass.shared.db import Database
from windlass.shared.metrics.services import STREAM_DELAY_SECONDS
from windlass.shared.store.operating import restoring
from windlass.shared.store.reading import commit_order
from windlass.shared.store.reading.commit_order import Position, SettledEvent, Wanted
from windlass.shared.store.reading.events import EventWithState
from windlass.shared.store.rows import TaskEventRow

PAGE_ROWS = 200
PAGE_BYTES = 131_072


@dataclass(frozen=True)
class Page:
    """The wanted events up to a position, and what lies beyond it."""

    events: Sequence[SettledEvent]
    end: Position
    has_more: bool
    has_unsettled: bool


async def stream_many(state: State, caller: Caller, wanted: Wanted, last_seen: str | None) -> Response[Any]:
    """Goes on after the last id that the client has seen, or starts now."""
    if last_seen:
        cursor = await find_again(state.pool, read_cursor(last_seen))
    else:
        cursor = Cursor(await commit_order.newest_settled(state.pool))
    told = tell_many(state, caller, wanted, cursor)
    return EventStream(told, patience_seconds=state.settings.stream_patience_seconds, kind="many")


async def find_again(pool: Database, cursor: Cursor) -> Cursor:
    """Where the client was. Whoever has seen a future that was lost goes on at the restore that undid it."""
    if await commit_order.is_known(pool, cursor.position):
        return cursor
    beginning = await restoring.newest_beginning(pool)
    if beginning is None:  # from another database
        raise invalid_cursor()
    return Cursor(beginning)


async def tell_many(state: State, caller: Caller, wanted: Wanted, cursor: Cursor) -> AsyncGenerator[bytes, None]:
    """Never ends by itself: a task that has ended may be revived, and another one begin."""
    yield retry_hint() + place(cursor)
    spoken_at = time.monotonic()
    telling = StateOnly(cursor) if wanted.only_state else Everything(cursor)
    delay, is_following = STREAM_DELAY_SECONDS.labels("many"), False
    with (
        state.hub.scout.follow(state.pool, wanted) as subscription,
        state.keyring.stay(caller, subscription.wake) as stay,
    ):
        while not (state.hub.closing.is_set() or stay.is_over):
            subscription.clear()
            looked_at = time.monotonic()
            try:
                page, told, skipped_to = await read_on(state, wanted, cursor, in_storm=telling.is_storm)
                if not await stay.goes_on():
                    return
            except db.AWAY_OR_BUSY:
                yield PING
                is_following = False
                await subscription.bear_an_outage()
                continue
            if is_following and page.events:
                delay.observe(delay_of(page.events[0]))
            thinned = telling.thin(told, time.monotonic(), skipped_to)
            cursor = skipped_to or told[-1][1]
            if messages := b"".join(say(event, at, caller, state.media_links) for event, at in thinned):
                yield messages
                spoken_at = time.monotonic()
            is_following = not page.has_more
            if page.has_more:
                continue
            ping_seconds = state.settings.stream_ping_seconds
            subscription.seen = cursor.position
            while not await subscription.news(min(ping_seconds, telling.seconds_until_due(time.monotonic()))):
                if time.monotonic() >= spoken_at + ping_seconds:
                    cursor = at_least(cursor, subscription.nothing_before())
                    owed = telling.thin([(None, cursor)], time.monotonic())
                    messages = b"".join(say(event, at, caller, state.media_links) for event, at in owed)
                    yield messages + place(telling.place) + PING
                    spoken_at = time.monotonic()
                if telling.seconds_until_due(time.monotonic()) <= 0:
                    break
            cursor = at_least(cursor, subscription.nothing_before())
            await asyncio.sleep(max(0, looked_at + BREATH_SECONDS - time.monotonic()))


def at_least(cursor: Cursor, position: Position) -> Cursor:
    """A stream that has waited goes on behind what did not concern it."""
    return Cursor(max(cursor.position, position), cursor.ahead)


async def read_on(state: State, wanted: Wanted, cursor: Cursor, *, in_storm: bool) -> tuple[Page, Read, Cursor | None]:
    """The next page, its events in order, and where to go on instead when there is too much to tell one by one."""
    read = partial(next_page, state.pool, cursor.position, wanted)
    page = await state.hub.reads.once((wanted, cursor.position), read)
    told = [each async for each in in_order(state.pool, page, cursor)]
    skips = in_storm and page.has_more
    return page, told, Cursor(await commit_order.newest_settled(state.pool)) if skips else None


async def next_page(pool: Database, after: Position, wanted: Wanted) -> Page:
    look = await commit_order.look(pool, after, at_most=LOOK_ROWS)
    if look.end == after:
        return Page([], after, has_more=False, has_unsettled=look.has_unsettled)
    rows = await commit_order.between(pool, after, look.end, wanted, most_rows=PAGE_ROWS, most_bytes=PAGE_BYTES)
    if rows and (len(rows) == PAGE_ROWS or rows[-1].bytes >= PAGE_BYTES):
        return Page(rows, position_of(rows[-1]), has_more=True, has_unsettled=look.has_unsettled)
    return Page(rows, look.end, has_more=look.is_full, has_unsettled=look.has_unsettled)


async def in_order(pool: Database, page: Page, cursor: Cursor) -> AsyncIterator[tuple[EventWithState | None, Cursor]]:
    """Each event with the cursor that stands behind it, and the page's own end; per task always by `seq`.

    Where a younger transaction was faster, its events come first, although their turn is later; the cursor remembers
    them until then.
    """
    position, ahead = cursor.position, cursor.ahead
    for event in page.events:
        key = (event.task_id, event.seq)
        if (event.previous_xid or 0) > event.xid:
            for earlier in await commit_order.overtaken(pool, key[0], before=key[1], xid=event.xid):
                if (earlier_key := (earlier.task_id, earlier.seq)) not in ahead:
                    ahead |= {earlier_key}
                    yield earlier, Cursor(position, ahead)
        position = position_of(event)
        told_already = key in ahead
        ahead -= {key}
        if not told_already:
            yield event, Cursor(position, ahead)
    yield None, Cursor(page.end, ahead)


def say(event: EventWithState | None, at: Cursor, caller: Caller, links: MediaLinks) -> bytes:
    if event is None:
        return encode(str(at), "resync", {})
    message = message_of(event, caller, links)
    if message is None:
        return b""
    name, data = message
    return encode(str(at), name, {"task_id": event.task_id, "seq": event.seq, **data})


def place(cursor: Cursor) -> bytes:
    """An id without an event: a client that leaves before anything has happened comes back to the right place."""
    return f"id: {cursor}\n\n".encode()


def position_of(event: TaskEventRow) -> Position:
    return Position(event.xid, event.task_id, event.seq)
