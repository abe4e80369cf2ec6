"""Wakes streams: one LISTEN connection per process, one flag per subscriber. What happened is read from rows."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from uuid import UUID

from windlass.services.api.streams.scout import Scout
from windlass.services.api.streams.single_flight import SingleFlight
from windlass.services.api.streams.subscription import Subscription
from windlass.shared import db
from windlass.shared.settings import Settings
from windlass.shared.store.reading import commit_order, events
from windlass.shared.store.reading.commit_order import Position


class Hub:
    """Who waits for which task."""

    def __init__(
        self,
        settings: Settings,
        also: Mapping[str, Callable[[str], None]] | None = None,
        *,
        look_too: Callable[[db.Database], Awaitable[None]] | None = None,
    ) -> None:
        """`also` is what else this process wants to hear, and `look_too` what it wants to look at now and then, on the
        same connection."""
        self._settings = settings
        self._also = dict(also or {})
        self._look_too = look_too
        self._of_task: defaultdict[UUID, set[Subscription]] = defaultdict(set)
        self._of_any: set[Subscription] = set()
        self.reads = SingleFlight()
        self.scout = Scout(self)
        self.closing = asyncio.Event()

    @contextmanager
    def subscribe(self, task_ids: Collection[UUID] | None) -> Iterator[Subscription]:
        """A flag that is set when one of the tasks (none: any task) may have news.

        Subscribe before the first read, or miss what comes between. Leaving is synchronous: a client's disconnection
        cancels whatever the stream still awaits.
        """
        subscription = Subscription()
        places = [self._of_any] if task_ids is None else [self._of_task[task_id] for task_id in task_ids]
        for place in places:
            place.add(subscription)
        try:
            yield subscription
        finally:
            for place in places:
                place.discard(subscription)
            for task_id in task_ids or ():
                if not self._of_task[task_id]:
                    del self._of_task[task_id]

    async def run(self) -> None:
        # Events last: after a time without a connection nobody is woken to tell more before it knows of its key.
        channels = {**self._also, "windlass_events": self._wake}
        await db.Listener(self._settings, "api", channels, beat=self._look_around).run()

    def close(self) -> None:
        """Lets every stream end; clients resume elsewhere."""
        self.closing.set()
        self._wake("*")
        for follower in self.scout.everybody():
            follower.wake()

    def _wake(self, payload: str) -> None:
        # A read under way may be older than this news: who is woken now must not join it.
        self.reads.forget()
        for subscription in self._of_any:
            subscription.wake()
        for task_id in self._of_task if payload == "*" else map(UUID, payload.split(",")):
            for subscription in self._of_task.get(task_id, ()):
                subscription.wake()

    async def _look_around(self, connection: db.Database) -> float:
        """The safety net under NOTIFY, and the proof that the connection lives: one question for all subscribed tasks.

        The connection would have been asked something anyway, so that idle streams, however many, cost no query.
        """
        if not self._of_task and not self._of_any:
            await connection.fetchval("SELECT 1")  # the tables may not even be there yet
        if self._of_task:
            self._wake_where_behind(await events.newest(connection, list(self._of_task)))
        if over_many := [each for each in self._everybody() if isinstance(each.seen, Position)]:
            position = await commit_order.newest(connection)
            for subscription in over_many:
                if subscription.seen != position:
                    subscription.wake()
        if self._look_too is not None:
            await self._look_too(connection)
        return self._settings.safety_poll_seconds

    def _wake_where_behind(self, newest: dict[UUID, int]) -> None:
        for task_id, seq in newest.items():
            for subscription in self._of_task.get(task_id, ()):
                if isinstance(subscription.seen, int) and subscription.seen < seq:
                    subscription.wake()

    def _everybody(self) -> set[Subscription]:
        return self._of_any.union(*self._of_task.values())
