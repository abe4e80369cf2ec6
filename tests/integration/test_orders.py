"""An attempt's order when the adapter does what nobody foresaw: refused, in doubt, and never left as a mere intent."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from ipaddress import ip_network
from typing import Any, Literal, TypeVar
from uuid import UUID

import httpx
import pytest
from asyncpg import Record as Row

from tests.support.engine.one_order import intend_one, latest_order
from tests.support.engine.store import Engine, on_the_engine, until
from tests.support.providers.small_server import HANG, Reply, answer, serving
from windlass.services.actors.media.counted_provider import CountedProvider
from windlass.services.actors.media.open_jobs import OpenJobs
from windlass.services.actors.media.orders import Orders
from windlass.services.actors.media.polling import Polling
from windlass.services.actors.worker.calls import Calls
from windlass.services.actors.worker.context.async_context import AsyncAttempt
from windlass.services.actors.worker.context.context import Context, Stopped
from windlass.services.actors.worker.coroutines.tether import to_its_end
from windlass.services.actors.worker.writing.writer import Writer
from windlass.shared.actors.payloads import MediaPayload
from windlass.shared.errors import Forbidden, InvalidInput, NetworkTimeout, NotFound, SubmitUnknown, TimedOut
from windlass.shared.providers import leonardo
from windlass.shared.providers.base import (
    CannotTell,
    Done,
    Failed,
    Found,
    MediaProvider,
    NotThere,
    Order,
    Ordered,
    OrderUnknown,
    Pending,
)
from windlass.shared.providers.http.addresses import Allowances
from windlass.shared.providers.http.network import open_client
from windlass.shared.settings import Settings
from windlass.shared.storage import open_storage
from windlass.shared.store import orders, tasks
from windlass.shared.store.order_steps import Intent
from windlass.shared.store.tasks import Claimed
from windlass.shared.toml_tables import Endpoint

HOSTILE = "http://xn--a-:9/"
"""A name that no library can decode: found out when somebody is on the way there."""

A_BOAT = MediaPayload.model_construct(action="txt2img", prompt="a boat", params={})

ONE = {"actor": "media", "limit": 1, "poll_seconds": 0.01}

Http = httpx.AsyncClient
T = TypeVar("T")


class Odd:
    """An adapter of somebody's own: `order` is what the test wants to go wrong."""

    def __init__(self, order: Callable[[], Awaitable[Ordered]], found: Found | NotThere | CannotTell) -> None:
        self._order = order
        self._found = found

    async def order(self, _order: Order) -> Ordered:
        return await self._order()

    async def poll(self, job_id: str) -> Pending | Done | Failed:
        raise KeyError(job_id)

    async def find(self, _order: Order, _intended_at: datetime) -> Found | NotThere | CannotTell:
        return self._found

    async def cancel(self, job_id: str) -> bool:
        raise KeyError(job_id)

    def job_of_callback(self, _body: Any) -> str | None:
        return None


@asynccontextmanager
async def orders_for(
    engine: Engine,
    attempt: Claimed,
    provider: MediaProvider,
    payload: MediaPayload,
    *,
    polling: Polling | None = None,
    wait_seconds: float = 900,
) -> AsyncIterator[Orders]:
    """As a worker has them: requests and statements on threads of their own."""
    provided = {**ONE, "callback_wait_seconds": wait_seconds}
    settings = Settings(database_url=engine.database_url, providers={"one": provided})
    writer, calls = Writer(settings, "worker-1", on_claim=lambda _tokens, _until: None), Calls(patience_seconds=2)
    writer.start()
    calls.start()
    context = Context(
        attempt,
        "worker-1",
        on_report=lambda _: None,
        calls=calls,
        begin_asking=writer.begin_call,
        begin_together=writer.begin_together,
        settings=settings,
    )
    context.begin()
    try:
        yield Orders(
            settings,
            AsyncAttempt(context),
            payload,
            CountedProvider("one", provider),
            polling=polling or Polling(),
        )
    finally:
        calls.close()
        await asyncio.to_thread(writer.close, timeout=60)
        writer._loop.close()


async def ending_in_time(orders: Orders, work: Coroutine[Any, Any, T]) -> T:
    """As an attempt does that is told to stop, or whose time is up."""
    return await to_its_end(attempt_of(orders), work)


def attempt_of(orders: Orders) -> Context:
    """Whose time it is; the orders see it as an `async` actor does."""
    context: Context = orders._context._context
    return context


async def take_up(
    engine: Engine,
    provider: MediaProvider,
    *,
    action: Literal["txt2img", "img2img"] = "txt2img",
    source: str | None = None,
    params: dict[str, Any] | None = None,
) -> tuple[Claimed, Row | Exception]:
    """One attempt's order at a provider with one place: the row, or what the attempt ends with."""
    await engine.provide("one", limit=1)
    attempt = await engine.running(provider="one")
    # As it was submitted before anybody looked so closely.
    payload = MediaPayload.model_construct(action=action, prompt="a boat", source_image=source, params=params or {})
    async with orders_for(engine, attempt, provider, payload) as orders:
        try:
            return attempt, await ending_in_time(orders, orders.take_up(source))
        except Exception as error:  # noqa: BLE001 - it is what the test is about
            return attempt, error


async def status_of(engine: Engine, attempt: Claimed) -> str | None:
    row = await latest_order(engine.pool, attempt.task_id)
    return None if row is None else row["status"]


async def is_free(engine: Engine, attempt: Claimed) -> bool:
    """Whether somebody else may start when the attempt has ended."""
    await engine.finish(attempt, "bury")
    return isinstance(await engine.claim(await engine.submit(provider="one")), Claimed)


def leave_seconds(orders: Orders, seconds: float) -> None:
    """The attempt's time is up so soon, however long the machine took to come this far."""
    attempt_of(orders).deadline = time.monotonic() + seconds
    attempt_of(orders).nudge()


@asynccontextmanager
async def a_client(reply: Callable[[], Reply]) -> AsyncIterator[tuple[Http, str]]:
    async with (
        serving(lambda _: reply()) as server,
        open_client(Allowances((ip_network("127.0.0.1"),)), timeout_seconds=20) as http,
    ):
        yield http, server.url


# Before the request


@on_the_engine
async def test_a_picture_that_cannot_be_fetched_is_found_out_before_anything_is_intended(engine: Engine) -> None:
    async with open_client(Allowances(), timeout_seconds=5) as http:
        adapter = leonardo.Adapter("one", Endpoint("https://nowhere.invalid", "key"), http)
        attempt, error = await take_up(
            engine, adapter, action="img2img", source=HOSTILE, params={"enhancePrompt": True}
        )
    assert isinstance(error, Forbidden), error
    assert error.kind == "permanent"
    assert await status_of(engine, attempt) is None
    assert await is_free(engine, attempt)


@on_the_engine
async def test_an_error_that_nobody_foresaw_is_a_refusal_while_nobody_was_reached(engine: Engine) -> None:
    async def order() -> Ordered:
        raise UnicodeError("no such name")

    attempt, error = await take_up(engine, Odd(order, CannotTell()))
    assert isinstance(error, UnicodeError), "it is told as it is: a bug, until proven otherwise"
    latest = await latest_order(engine.pool, attempt.task_id)
    assert latest is not None
    assert (latest["status"], latest["response"]["error"]["message"]) == ("refused", "no such name")
    assert await is_free(engine, attempt)


@on_the_engine
async def test_a_parameter_that_the_action_does_not_know_is_refused_before_anything_is_intended(engine: Engine) -> None:
    async with open_client(Allowances(), timeout_seconds=5) as http:
        adapter = leonardo.Adapter("one", Endpoint("https://nowhere.invalid", "key"), http)
        attempt, error = await take_up(engine, adapter, params={"init_image_id": "somebody-else-s"})
    assert isinstance(error, InvalidInput), error
    assert "params/init_image_id" in error.message
    assert "num_images" in error.message, "those that are allowed are named"
    assert await status_of(engine, attempt) is None


# After it


@pytest.mark.parametrize(
    ("found", "kind", "status"),
    [
        (CannotTell(), SubmitUnknown, "unknown"),
        (NotThere(), NetworkTimeout, "refused"),
        (Found("job-1"), None, "open"),
    ],
)
@on_the_engine
async def test_an_error_that_nobody_foresaw_is_a_doubt_once_somebody_was_reached(
    engine: Engine, found: Found | NotThere | CannotTell, kind: type[Exception] | None, status: str
) -> None:
    async with a_client(lambda: answer(200, {"job": None})) as (http, url):

        async def order() -> Ordered:
            said = (await http.post(url)).json()
            return Ordered(said["job"]["id"], said)

        attempt, ended = await take_up(engine, Odd(order, found))
    assert isinstance(ended, kind) if kind else ended["status"] == "open", ended  # type: ignore[index]
    assert await status_of(engine, attempt) == status


@on_the_engine
async def test_an_attempt_whose_time_is_up_in_the_middle_leaves_the_intent_to_be_asked_for(engine: Engine) -> None:
    arrived = asyncio.Event()

    def say_nothing() -> Reply:
        arrived.set()
        return HANG

    async with a_client(say_nothing) as (http, url):

        async def order() -> Ordered:
            await http.post(url)
            raise AssertionError("nobody answers")

        await engine.provide("one", limit=1)
        attempt = await engine.running(provider="one")
        async with orders_for(engine, attempt, Odd(order, CannotTell()), A_BOAT) as orders:
            taking_up = asyncio.create_task(ending_in_time(orders, orders.take_up(None)))
            async with asyncio.timeout(60):
                await arrived.wait()
            leave_seconds(orders, 0)
            with pytest.raises(TimedOut):
                await taking_up
    assert await status_of(engine, attempt) == "intended", "it may have been taken: a refusal would be paid for twice"


# How often it is asked about


class Slow(Odd):
    """Its job has ended at the second look."""

    def __init__(self, calls_back: Sequence[Callable[[], None]]) -> None:
        async def order() -> Ordered:
            return Ordered("job", {})

        super().__init__(order, CannotTell())
        self._calls_back = calls_back
        self._looks = 0

    async def poll(self, _job_id: str) -> Pending | Done | Failed:
        self._looks += 1
        if self._looks > 1:
            return Done((), {})
        for call in self._calls_back:
            call()
        return Pending()


@on_the_engine
async def test_polls_grow_at_a_provider_that_was_heard_to_call_back_and_no_longer_at_one_that_was_not(
    engine: Engine,
) -> None:
    await engine.provide("one", limit=None)
    polling = Polling()

    async def wait_for_a_job(*, called_back: bool) -> list[float]:
        attempt = await engine.running(provider="one")
        payload = MediaPayload.model_construct(action="txt2img", prompt="a boat", source_image=None, params={})
        nudges: list[Callable[[], None]] = []
        async with orders_for(engine, attempt, Slow(nudges), payload, polling=polling) as orders:
            nudges.extend([orders._context.nudge] if called_back else [])
            await orders.wait(await orders.take_up(None))
        pauses = polling.pauses("one", 3)
        return [pauses.pause() for _ in range(4)]

    assert await wait_for_a_job(called_back=True) == [10, 20, 40, 60]
    assert await wait_for_a_job(called_back=False) == [3, 3, 3, 3]


# A provider that cannot be asked, and calls back


class Forgetful(Odd):
    """Loses every answer, has no list, knows one job, and counts what is ordered."""

    calls_back = True

    def __init__(self) -> None:
        super().__init__(self._lose, CannotTell())
        self.taken = 0
        self.when_asked: Callable[[], None] = lambda: None

    async def _lose(self) -> Ordered:
        self.taken += 1
        raise OrderUnknown("the answer was lost")

    async def find(self, _order: Order, _intended_at: datetime) -> CannotTell:
        self.when_asked()
        return CannotTell()

    async def poll(self, job_id: str) -> Pending | Done | Failed:
        return Pending() if job_id == "job-1" else Failed(NotFound(f"there is no {job_id}"), {})


class Finished(Forgetful):
    async def poll(self, _job_id: str) -> Pending | Done | Failed:
        return Done(("https://there/1.png",), None)


async def call_back(engine: Engine, task_id: UUID, job_id: str) -> None:
    callback_hash = await engine.pool.fetchval("SELECT callback_hash FROM generations WHERE task_id = $1", task_id)
    assert await orders.hear(engine.pool, {}, callback_hash=callback_hash, job_id=job_id) == task_id


@on_the_engine
async def test_the_callback_is_waited_for_also_by_the_next_attempt_and_nothing_is_ordered_twice(engine: Engine) -> None:
    await engine.provide("one", limit=1)
    attempt, provider = await engine.running(provider="one"), Forgetful()

    async def has_ordered() -> bool:
        return provider.taken == 1

    async with orders_for(engine, attempt, provider, A_BOAT) as first:
        waiting = asyncio.create_task(ending_in_time(first, first.take_up(None)))
        await until(has_ordered)
        assert await status_of(engine, attempt) == "intended"
        first._context.stop()
        with pytest.raises(Stopped):
            await waiting
    await engine.lapse(attempt.task_id)
    await tasks.stall(engine.pool)
    assert not isinstance(await engine.claim(await engine.submit(provider="one")), Claimed), "the slot is held"
    async with orders_for(engine, await engine.start(attempt.task_id), provider, A_BOAT) as orders:

        async def waits_for_others() -> bool:
            return attempt_of(orders).deadline == math.inf

        provider.when_asked = lambda: leave_seconds(orders, 1)
        going_on = asyncio.create_task(ending_in_time(orders, orders.take_up(None)))
        await until(waits_for_others)
        await call_back(engine, attempt.task_id, "forged")
        await asyncio.wait([going_on], timeout=1.2)
        assert not going_on.done(), "neither is somebody else's word believed, nor is its own time up"
        await call_back(engine, attempt.task_id, "job-1")
        order = await going_on
    assert (order["status"], order["provider_job_id"], provider.taken) == ("open", "job-1", 1)


@on_the_engine
async def test_who_is_not_called_back_in_time_gives_up(engine: Engine) -> None:
    await engine.provide("one", limit=1)
    attempt = await engine.running(provider="one")
    async with orders_for(engine, attempt, Forgetful(), A_BOAT, wait_seconds=0.1) as orders:
        with pytest.raises(SubmitUnknown, match="has not called back"):
            await orders.take_up(None)
    assert await status_of(engine, attempt) == "unknown"


@pytest.mark.parametrize(("group_id", "becomes"), [(None, "queued"), (UUID(int=2), "dead")])
@on_the_engine
async def test_a_callback_that_crossed_the_end_is_found_by_who_looks_after_open_jobs(
    engine: Engine, group_id: UUID | None, becomes: str, tmp_path: Any
) -> None:
    await engine.provide("one", limit=None)
    attempt = await engine.running(provider="one", group_id=group_id)
    assert await intend_one(engine.pool, attempt, Intent(UUID(int=1), "txt2img", {"prompt": "a"}, "ab" * 32))
    assert await orders.move(engine.pool, attempt, UUID(int=1), "lose")
    await call_back(engine, attempt.task_id, "job-1")
    unknown = {"type": "SubmitUnknown", "kind": "permanent", "message": "", "details": {}, "attempt": 1}
    assert await engine.finish(attempt, "bury", error=unknown) == "dead"
    adapter = Finished()

    async def ask(intent: Callable[..., Awaitable[Any]]) -> Any:
        return await intent(engine.pool)

    settings = Settings(database_url=engine.database_url, data_dir=tmp_path)
    await OpenJobs(settings, open_storage(settings), ["one"], lambda _: adapter, ask).look_after_all()
    assert await engine.status(attempt.task_id) == becomes
    if becomes == "dead":
        assert await status_of(engine, attempt) == "unknown", "what was made is there for whoever revives it"
        assert await engine.count("job_open") == 0


# Nobody waits any more


async def abandoned(engine: Engine, number: int) -> list[UUID]:
    """Jobs whose tasks have died."""
    await engine.provide("one", limit=None)
    made = []
    for each in range(number):
        attempt = await engine.running(provider="one")
        intent = Intent(UUID(int=each + 1), "txt2img", {"prompt": "a boat"}, f"{each + 1:064x}")
        assert await intend_one(engine.pool, attempt, intent)
        assert await orders.move(engine.pool, attempt, intent.generation_id, "place", job_id=f"job-{each}")
        await engine.finish(attempt, "bury")
        made.append(attempt.task_id)
    return made


class Fussy(Odd):
    """Cannot read what it is told about one job, and knows that the others have failed."""

    async def poll(self, job_id: str) -> Pending | Done | Failed:
        if job_id == "job-0":
            raise KeyError(job_id)
        return Failed(NetworkTimeout("it has ended"), None)


@pytest.mark.parametrize(("patience", "left"), [(900, 1), (1e-6, 0)], ids=["at-first", "in-the-end"])
@on_the_engine
async def test_a_job_that_cannot_be_understood_keeps_neither_the_others_slots_nor_its_own_for_ever(
    engine: Engine, patience: float, left: int, tmp_path: Any
) -> None:
    async def order() -> Ordered:
        raise NotImplementedError

    async def ask(intent: Callable[..., Awaitable[Any]]) -> Any:
        return await intent(engine.pool)

    await abandoned(engine, 3)
    settings = Settings(database_url=engine.database_url, abandoned_job_seconds=patience, data_dir=tmp_path)
    adapter = Fussy(order, CannotTell())
    await OpenJobs(settings, open_storage(settings), ["one"], lambda _: adapter, ask).look_after_all()
    assert await engine.count("job_open") == left
