"""A task's story as server-sent events: replayed from rows, so that closing the stream loses nothing."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any
from uuid import UUID

from litestar import Response
from litestar.datastructures import State

from windlass.services.api.access.auth import Caller
from windlass.services.api.http.errors import Problem
from windlass.services.api.media.links import MediaLinks
from windlass.services.api.streams.event_stream import PING, EventStream, delay_of, retry_hint
from windlass.services.api.streams.messages import encode, message_of
from windlass.shared import db
from windlass.shared.metrics.services import STREAM_DELAY_SECONDS
from windlass.shared.states import TERMINAL
from windlass.shared.store.reading import events
from windlass.shared.store.reading.events import EventJustRead

PAGE_ROWS = 200
PAGE_BYTES = 131_072
"""As Postgres stores them, compressed; the last event of a page may be larger by itself."""


class Page:
    """The next part of a story, and how far the whole goes at that moment. Streams at the same place share it."""

    def __init__(self, rows: Sequence[EventJustRead]) -> None:
        self.last_seq: int = rows[0].last_seq
        self.is_ended = rows[0].status in TERMINAL
        self.events = [row for row in rows if row.seq is not None]
        self._told: dict[str, bytes] = {}

    def told_to(self, caller: Caller, links: MediaLinks) -> bytes:
        if caller.role not in self._told:
            told = [(event.seq, message_of(event, caller, links)) for event in self.events]
            self._told[caller.role] = b"".join(encode(str(seq), *message) for seq, message in told if message)
        return self._told[caller.role]


async def stream_task(state: State, task_id: UUID, caller: Caller, last_seen: str | None) -> Response[Any]:
    """204 when the story is over and the client has read all of it: that stops an EventSource."""
    row = await events.state(state.pool, task_id)
    if row is None or not caller.may_see(row.user_id):
        raise Problem(404, "task-not-found", f"there is no task {task_id}")
    after = read_position(last_seen, row.last_seq)
    if row.status in TERMINAL and after == row.last_seq:
        return Response(None, status_code=204)
    return EventStream(tell(state, task_id, caller, after), patience_seconds=state.settings.stream_patience_seconds)


def read_position(last_seen: str | None, last_seq: int) -> int:
    if last_seen is None or last_seen == "":
        return 0
    readable = last_seen.isascii() and last_seen.isdigit() and len(last_seen) <= len(str(last_seq))
    if not readable or int(last_seen) > last_seq:
        detail = f"the last event seen is a number from 0 to {last_seq}, not {last_seen[:40]!r}"
        raise Problem(400, "invalid-event-id", detail)
    return int(last_seen)


async def tell(state: State, task_id: UUID, caller: Caller, after: int) -> AsyncGenerator[bytes, None]:
    """Reads on from the last `seq` told whenever the hub says that there may be news."""

    async def read() -> Page:
        rows = await events.follow(state.pool, task_id, after=after, most_rows=PAGE_ROWS, most_bytes=PAGE_BYTES)
        return Page(rows)

    yield retry_hint()
    delay, is_following = STREAM_DELAY_SECONDS.labels("task"), False
    with state.hub.subscribe([task_id]) as subscription, state.keyring.stay(caller, subscription.wake) as stay:
        while not (state.hub.closing.is_set() or stay.is_over):
            subscription.clear()
            try:
                page = await state.hub.reads.once((task_id, after), read)
                if not await stay.goes_on():
                    return
            except db.AWAY_OR_BUSY:
                # Who came back now would get a 503, which ends an EventSource for good: so the stream stays open.
                yield PING
                is_following = False
                await subscription.bear_an_outage()
                continue
            if is_following and page.events:
                delay.observe(delay_of(page.events[0]))
            after = page.events[-1].seq if page.events else after
            if told := page.told_to(caller, state.media_links):
                yield told
            if after < page.last_seq:
                is_following = False
                continue
            if page.is_ended:
                return
            subscription.seen, is_following = after, True
            del page  # an idle stream holds on to nothing
            while not await subscription.news(state.settings.stream_ping_seconds):
                yield PING
