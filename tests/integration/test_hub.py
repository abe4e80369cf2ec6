"""The hub on a real database: who is woken by what, and how many questions that takes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import UUID

import asyncpg
from litestar.datastructures import State

from tests.support.engine.store import Engine, on_the_engine, until
from windlass.services.api.access.auth import Caller
from windlass.services.api.access.keyring import Keyring
from windlass.services.api.media.links import MediaLinks
from windlass.services.api.streams.cursors import Cursor
from windlass.services.api.streams.hub import Hub
from windlass.services.api.streams.many_tasks import tell_many
from windlass.services.api.streams.one_task import tell
from windlass.services.api.streams.single_flight import SingleFlight
from windlass.shared.db import _speak_json
from windlass.shared.settings import Settings
from windlass.shared.store.reading import commit_order
from windlass.shared.store.reading.commit_order import BEGINNING, Wanted
from windlass.shared.store.tasks import Claimed

ADMIN = Caller("a", "admin", "root")


@asynccontextmanager
async def a_hub(engine: Engine, **settings: Any) -> AsyncIterator[Hub]:
    """A hub that hears."""
    hub = Hub(Settings(database_url=engine.database_url, **{"safety_poll_seconds": 60, **settings}))
    running = asyncio.create_task(hub.run())
    try:
        with hub.subscribe(None) as subscription:
            await subscription.news(60)  # it says that everything may be new once it is connected
        yield hub
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


@on_the_engine
async def test_a_commit_wakes_those_who_wait_for_that_task_or_for_any(engine: Engine) -> None:
    mine, other = await engine.running(), await engine.running()
    async with a_hub(engine) as hub:
        with (
            hub.subscribe([mine.task_id]) as waiting,
            hub.subscribe([other.task_id]) as indifferent,
            hub.subscribe([other.task_id, mine.task_id]) as both,
            hub.subscribe(None) as any_task,
        ):
            await engine.finish(mine)
            assert await waiting.news(60)
            assert await both.news(60)
            assert await any_task.news(60)
            assert not await indifferent.news(0)


@on_the_engine
async def test_what_is_said_without_a_notification_is_found_by_the_next_look(engine: Engine) -> None:
    attempt = await engine.running()
    async with a_hub(engine, safety_poll_seconds=0.05) as hub:
        with (
            hub.subscribe([attempt.task_id]) as behind,
            hub.subscribe([attempt.task_id]) as up_to_date,
            hub.subscribe(None) as many,
        ):
            up_to_date.seen, behind.seen, many.seen = 3, 2, BEGINNING
            await engine.sql("UPDATE tasks SET last_seq = 3 WHERE task_id = $1", attempt.task_id)
            assert await behind.news(60)
            assert await many.news(60)
            assert not await up_to_date.news(0.2)


@on_the_engine
async def test_streams_at_the_same_place_share_one_read(engine: Engine) -> None:
    attempt = await engine.running()
    questions: list[str] = []

    class Counting(asyncpg.Connection):
        async def _execute(self, query: str, *arguments: Any, **options: Any) -> Any:
            questions.append(query)
            return await super()._execute(query, *arguments, **options)  # type: ignore[misc]

    async with (
        a_hub(engine) as hub,
        asyncpg.create_pool(
            engine.database_url, min_size=4, max_size=4, init=_speak_json, connection_class=Counting
        ) as pool,
    ):
        settings = Settings(database_url=engine.database_url)
        state = State({"hub": hub, "pool": pool, "settings": settings, "media_links": MediaLinks(settings, pool)})
        state["keyring"] = Keyring(pool)
        streams = [asyncio.create_task(whole_story(state, attempt.task_id)) for _ in range(60)]
        await until(lambda: waiting(hub, attempt.task_id, 60))
        questions.clear()
        for number in range(1, 6):
            await say(engine, attempt, f"step {number}")
            await until(lambda seen=2 + number: waiting(hub, attempt.task_id, 60, seen=seen))  # type: ignore[misc]
        assert 5 <= len(questions) <= 15, "5 steps for 60 streams"
        await engine.finish(attempt)
        stories = await asyncio.gather(*streams)
    assert len(stories) == 60
    assert len(set(stories)) == 1
    assert stories[0].count(b"event: ") == 8


@on_the_engine
async def test_streams_that_an_event_does_not_concern_read_nothing(engine: Engine) -> None:
    attempt = await engine.running()
    questions: list[str] = []

    class Counting(asyncpg.Connection):
        async def _execute(self, query: str, *arguments: Any, **options: Any) -> Any:
            questions.append(query)
            return await super()._execute(query, *arguments, **options)  # type: ignore[misc]

    async with (
        a_hub(engine) as hub,
        asyncpg.create_pool(
            engine.database_url, min_size=4, max_size=4, init=_speak_json, connection_class=Counting
        ) as pool,
    ):
        settings = Settings(database_url=engine.database_url)
        state = State({"hub": hub, "pool": pool, "settings": settings, "media_links": MediaLinks(settings, pool)})
        state["keyring"] = Keyring(pool)
        place = Cursor(await commit_order.newest_settled(pool))
        told: asyncio.Queue[bytes] = asyncio.Queue()

        async def follow(wanted: Wanted) -> None:
            async for message in tell_many(state, ADMIN, wanted, place):
                if b"event: " in message:
                    told.put_nowait(message)

        filters = [Wanted(project_id=f"project {number}") for number in range(60)]
        filters += [Wanted(task_ids=frozenset([attempt.task_id])), Wanted(project_id="none", user_id="ann")]
        streams = [asyncio.create_task(follow(wanted)) for wanted in filters]
        await until(lambda: all_wait(hub, len(filters)))
        questions.clear()
        for number in range(1, 6):
            await say(engine, attempt, f"step {number}")
            async with asyncio.timeout(60):
                assert f"step {number}".encode() in await told.get()
        assert told.empty()
        # Each stream reading would be 600; an open transaction anywhere on the server lets the scout look again.
        assert len(questions) <= 300
        for stream in streams:
            stream.cancel()
        await asyncio.gather(*streams, return_exceptions=True)
        assert not hub.scout.everybody()


async def all_wait(hub: Hub, number: int) -> bool:
    """Whether so many have read what there was, and the scout looks for them."""
    followers = hub.scout.everybody()
    caught_up = [each for each in followers if each.seen and not each._flag.is_set()]
    return hub.scout.position != BEGINNING and len(followers) == len(caught_up) == number


async def whole_story(state: State, task_id: UUID) -> bytes:
    messages = [message async for message in tell(state, task_id, ADMIN, 0)]
    return b"".join(messages[1:])


async def waiting(hub: Hub, task_id: UUID, number: int, *, seen: int = 2) -> bool:
    """Whether so many have read so far, and wait."""
    return sum(subscription.seen == seen for subscription in hub._of_task[task_id]) == number


async def say(engine: Engine, attempt: Claimed, text: str) -> None:
    assert await engine.say(attempt, events=[{"type": "output", "data": {"text": text}}])


def test_who_is_woken_does_not_join_a_read_that_is_older_than_the_news() -> None:
    """It began before the commit, and would be believed to have seen it."""

    async def scenario() -> None:
        reads = SingleFlight()
        row = "old"
        finish = asyncio.Event()

        async def read() -> str:
            seen = row
            await finish.wait()
            return seen

        first, second = (asyncio.create_task(reads.once("place", read)) for _ in range(2))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        row = "new"
        reads.forget()
        third = asyncio.create_task(reads.once("place", read))
        await asyncio.sleep(0)
        second.cancel()
        finish.set()
        assert await first == "old"
        assert await third == "new"

    asyncio.run(scenario())
