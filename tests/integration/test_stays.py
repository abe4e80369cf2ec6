"""What stays open under a key (streams, long polls) ends with the key, and asks for nothing until then."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, cast
from uuid import UUID

import pytest
from litestar.datastructures import State

from tests.support.engine.store import Engine, on_the_engine, until
from windlass.services.api.access.auth import Caller
from windlass.services.api.access.keyring import Keyring
from windlass.services.api.media.links import MediaLinks
from windlass.services.api.streams.cursors import Cursor
from windlass.services.api.streams.hub import Hub
from windlass.services.api.streams.many_tasks import tell_many
from windlass.services.api.streams.one_task import tell
from windlass.services.api.tasks.long_poll import KeyEnded, wait_for_end
from windlass.shared.db import Database
from windlass.shared.settings import Settings
from windlass.shared.store.access import keys
from windlass.shared.store.reading import commit_order
from windlass.shared.store.reading.commit_order import Wanted

ALL = Wanted(None, None, None, None, None)


class Counting:
    """The pool as the keyring sees it, counting what it is asked."""

    def __init__(self, pool: Database) -> None:
        self.pool = pool
        self.questions = 0

    async def fetchrow(self, *question: Any, **options: Any) -> Any:
        self.questions += 1
        return await self.pool.fetchrow(*question, **options)


@dataclass
class House:
    """What an api process has around its streams."""

    engine: Engine
    state: State
    keyring: Keyring
    counting: Counting

    async def caller(self, **fields: Any) -> Caller:
        key = keys.new_key()
        await keys.create(self.engine.pool, key, role="viewer", user_id="eve", **fields)
        caller = await self.keyring.open(key)
        assert caller is not None
        return caller

    async def every_kind(self, caller: Caller, task_id: UUID) -> list[asyncio.Task[bytes]]:
        """A stream of one task, one of all, and a long poll."""
        place = Cursor(await commit_order.newest_settled(self.engine.pool))
        return [
            asyncio.create_task(whole(tell(self.state, task_id, caller, 0))),
            asyncio.create_task(whole(tell_many(self.state, caller, ALL, place))),
            asyncio.create_task(self.polled(caller, task_id)),
        ]

    async def polled(self, caller: Caller, task_id: UUID) -> bytes:
        with pytest.raises(KeyEnded):
            await wait_for_end(self.state, caller, task_id, 110)
        return b""

    async def are_waiting(self, caller: Caller, number: int) -> bool:
        hub: Hub = self.state.hub
        waiting = [
            each for each in {*hub._everybody(), *hub.scout.everybody()} if each.seen and not each._flag.is_set()
        ]
        return len(self.keyring._stays[caller.key_id]) == number and len(waiting) >= number


async def whole(messages: AsyncGenerator[bytes, None]) -> bytes:
    return b"".join([message async for message in messages])


@asynccontextmanager
async def a_house(engine: Engine) -> AsyncIterator[House]:
    settings = Settings(database_url=engine.database_url, safety_poll_seconds=60, stream_ping_seconds=60)
    counting = Counting(engine.pool)
    keyring = Keyring(cast(Database, counting))
    hub = Hub(settings, {keys.CHANNEL: keyring.forget})
    running = asyncio.create_task(hub.run())
    state = State({"hub": hub, "pool": engine.pool, "settings": settings, "keyring": keyring})
    state["media_links"] = MediaLinks(settings, engine.pool)
    try:
        with hub.subscribe(None) as subscription:
            await subscription.news(60)  # it hears from now on
        async with asyncio.timeout(120):
            yield House(engine, state, keyring, counting)
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


@on_the_engine
async def test_what_is_open_under_a_key_ends_when_it_is_revoked_and_tells_nothing_more(engine: Engine) -> None:
    async with a_house(engine) as house:
        attempt = await engine.running()
        eve, other = await house.caller(), await house.caller()
        hers = await house.every_kind(eve, attempt.task_id)
        await until(lambda: house.are_waiting(eve, len(hers)))
        others = asyncio.create_task(whole(tell(house.state, attempt.task_id, other, 0)))
        asked = house.counting.questions
        await keys.revoke(engine.pool, eve.key_id)
        later = await engine.running()
        await engine.finish(later, result={"answer": "told too late"})
        await engine.finish(attempt, result={"answer": "told too late"})
        told = await asyncio.gather(*hers)
        assert b"told too late" not in b"".join(told)
        assert b"told too late" in await others, "another key's streams go on"
        assert asked < house.counting.questions <= asked + len(hers), "it is asked when there is a doubt"
        assert not house.keyring._stays


@on_the_engine
async def test_what_is_open_under_a_key_ends_when_it_expires(engine: Engine) -> None:
    async with a_house(engine) as house:
        attempt = await engine.running()
        eve = replace(await house.caller(), until=time.monotonic() + 1.5)
        asked = house.counting.questions
        await asyncio.gather(*await house.every_kind(eve, attempt.task_id))
        assert house.counting.questions == asked, "its time was known"


def revoked_unheard(key_id: str) -> tuple[str, str]:
    return "UPDATE api_keys SET revoked_at = clock_timestamp() WHERE key_id = $1", key_id


@on_the_engine
async def test_what_was_revoked_while_nobody_listened_ends_when_somebody_does_again(engine: Engine) -> None:
    async with a_house(engine) as house:
        attempt = await engine.running()
        eve, other = await house.caller(), await house.caller()
        hers = await house.every_kind(eve, attempt.task_id)
        await until(lambda: house.are_waiting(eve, len(hers)))
        others = asyncio.create_task(whole(tell(house.state, attempt.task_id, other, 0)))
        await engine.sql(*revoked_unheard(eve.key_id))
        listening = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'windlass-api-listen %'"
        )
        await engine.sql(listening + " AND datname = current_database()")
        await asyncio.gather(*hers)
        await engine.finish(attempt, result={"answer": 42})
        assert b"42" in await others


@on_the_engine
async def test_a_change_between_the_look_at_the_key_and_the_opening_is_not_overlooked(engine: Engine) -> None:
    async with a_house(engine) as house:
        attempt = await engine.running()
        eve = await house.caller()
        await keys.revoke(engine.pool, eve.key_id)
        await until(lambda: nothing_kept(house.keyring))
        assert b"event:" not in await whole(tell(house.state, attempt.task_id, eve, 0))


async def nothing_kept(keyring: Keyring) -> bool:
    return not len(keyring)


@on_the_engine
async def test_a_doubt_is_asked_about_again_when_another_comes_during_the_question(engine: Engine) -> None:
    async with a_house(engine) as house:
        eve = await house.caller()
        with house.keyring.stay(eve, lambda: None) as stay:
            asking: Callable[..., Any] = house.counting.fetchrow

            async def overtaken(*question: Any, **options: Any) -> Any:
                house.counting.fetchrow = asking  # type: ignore[method-assign]
                row = await asking(*question, **options)
                await engine.sql(*revoked_unheard(eve.key_id))
                house.keyring.forget(eve.key_id)
                return row

            house.counting.fetchrow = overtaken  # type: ignore[method-assign]
            house.keyring.forget(eve.key_id)
            assert not await stay.goes_on()
