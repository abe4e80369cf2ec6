"""Steps of orders that many attempts take at once: one call for all that gathered, and each is answered for itself."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from uuid import UUID, uuid4

import pytest
from uuid_utils.compat import uuid7

from tests.support.engine.one_order import intend_one
from tests.support.engine.store import Engine, on_the_engine
from tests.support.engine.store_from_threads import ask, held_up
from tests.support.waiting import wait_until
from windlass.services.actors.worker.writing.gathered_calls import CallOfMany
from windlass.services.actors.worker.writing.writer import Writer
from windlass.shared import db
from windlass.shared.settings import Settings
from windlass.shared.store import orders, tasks
from windlass.shared.store.order_steps import Intent, NewContent, OrderMove, intend_each, latest_of_each, move_each
from windlass.shared.store.tasks import Claimed

MANY = 30
A_TASK = "SELECT 1 FROM tasks WHERE task_id = $1 FOR NO KEY UPDATE"


@pytest.fixture
def writer(database_url: str) -> Iterator[Writer]:
    writer = Writer(
        Settings(database_url=database_url, stop_grace_seconds=240, lease_seconds=2000),
        "worker-1",
        on_claim=lambda _tokens, _lease_end: None,
    )
    writer.start()
    yield writer
    writer.close(timeout=60)
    writer._loop.close()


class Watched:
    """A call of many, and how many each one was made for."""

    def __init__(self, call: CallOfMany[OrderMove, bool]) -> None:
        self._call = call
        self.sizes: list[int] = []

    async def __call__(self, pool: db.Database, moves: Sequence[OrderMove], /, *, briefly: bool = False) -> list[bool]:
        self.sizes.append(len(moves))
        return list(await self._call(pool, moves, briefly=briefly))


@contextmanager
def another_call_under_way(writer: Writer) -> Iterator[None]:
    """Whatever is asked inside the block gathers behind it."""
    begun, over = threading.Event(), threading.Event()

    async def take_long(_pool: db.Database) -> None:
        begun.set()
        await asyncio.to_thread(over.wait, 300)

    calling = writer.begin_call(take_long)
    assert begun.wait(60)
    try:
        yield
    finally:
        over.set()
        calling.result(60)


def an_intent(callback_hash: str | None = None) -> Intent:
    return Intent(uuid7(), "txt2img", {"prompt": "a boat"}, callback_hash or uuid4().hex * 2)


async def running(engine: Engine, number: int) -> list[Claimed]:
    return [await engine.start(task_id) for task_id in await engine.submit_many(number)]


async def open_orders(engine: Engine, number: int = MANY) -> list[tuple[Claimed, UUID]]:
    """Each of a task that runs, and whose job the provider works on."""
    intents = [(attempt, an_intent()) for attempt in await running(engine, number)]
    assert all(await intend_each(engine.pool, intents))
    made = [(attempt, intent.generation_id) for attempt, intent in intents]
    assert all(await move_each(engine.pool, [OrderMove(*each, "place", job_id=str(each[1])) for each in made]))
    return made


def states(database_url: str, generation_ids: Sequence[UUID]) -> list[str]:
    async def read(engine: Engine) -> list[str]:
        query = "SELECT generation_id, status FROM generations WHERE generation_id = ANY ($1)"
        found = {row["generation_id"]: row["status"] for row in await engine.pool.fetch(query, list(generation_ids))}
        return [found[generation_id] for generation_id in generation_ids]

    return ask(database_url, read)


def is_waiting(writer: Writer, call: CallOfMany[OrderMove, bool], number: int) -> bool:
    """Whether as many as that are either taken up, and wait for their turn, or have gathered behind these."""
    return len(writer._gathered._kinds[call]._gathered) >= number


# The calls of the store


@on_the_engine
async def test_each_of_many_steps_is_answered_for_itself_in_the_order_they_came(engine: Engine) -> None:
    made = await open_orders(engine, 4)
    lost = made[1][0]
    await engine.lapse(lost.task_id)
    await tasks.stall(engine.pool)
    moves = [OrderMove(*each, "fetch") for each in reversed(made)]
    expected = [each.task is not lost for each in moves]
    # Once more is harmless: all of them stand where the move leads.
    for _ in range(2):
        assert await move_each(engine.pool, moves) == expected
    newest = await latest_of_each(engine.pool, [attempt.task_id for attempt, _ in made])
    assert [order is not None and order.status for order in newest] == ["fetching", "open", "fetching", "fetching"]


@on_the_engine
async def test_an_intent_is_refused_to_who_has_lost_its_task_and_written_for_the_others(engine: Engine) -> None:
    attempts = await running(engine, 3)
    await engine.lapse(attempts[1].task_id)
    await tasks.stall(engine.pool)
    intents = [(attempt, an_intent()) for attempt in reversed(attempts)]
    for _ in range(2):
        assert await intend_each(engine.pool, intents) == [True, False, True]
    newest = await latest_of_each(engine.pool, [attempt.task_id for attempt in attempts])
    assert [order and order.generation_id for order in newest] == [
        intents[2][1].generation_id,
        None,
        intents[0][1].generation_id,
    ]


@on_the_engine
async def test_files_and_costs_that_are_told_twice_are_kept_once(engine: Engine) -> None:
    attempt = (await running(engine, 1))[0]
    intent = an_intent()
    assert await intend_one(engine.pool, attempt, intent)
    order = intent.generation_id
    file = NewContent(uuid4(), 0, "https://there/1.png", "image/png", "png", "place/0", 4, "00")
    steps = [
        OrderMove(attempt, order, "place", job_id="job-1", cost_usd=0.5),
        OrderMove(attempt, order, "fetch", response={"done": True}),
        OrderMove(attempt, order, "complete", contents=[file]),
    ]
    for step in steps:
        assert await move_each(engine.pool, [step, step]) == [True, True]
    assert [row.content_id for row in await orders.contents(engine.pool, order)] == [file.content_id]
    assert (await engine.row(attempt.task_id))["usage"]["cost_usd"] == 0.5


# The writer, which gathers them


def test_what_gathers_behind_a_call_goes_as_one(database_url: str, writer: Writer) -> None:
    made, call = ask(database_url, open_orders), Watched(move_each)
    with another_call_under_way(writer):
        first = writer.begin_together(call, OrderMove(*made[0], "fetch"))
        wait_until("the first waits for its turn", lambda: not is_waiting(writer, call, 1))
        others = [writer.begin_together(call, OrderMove(*each, "fetch")) for each in made[1:]]
    assert first.result(60)
    assert [other.result(60) for other in others] == [True] * (MANY - 1)
    assert call.sizes == [1, MANY - 1]
    assert states(database_url, [order for _, order in made]) == ["fetching"] * MANY


def test_a_value_that_cannot_be_stored_fails_the_culprit_alone(database_url: str, writer: Writer) -> None:
    made = ask(database_url, open_orders)
    with another_call_under_way(writer):
        asked: list[Future[bool]] = [
            writer.begin_together(move_each, OrderMove(*each, "fetch", response="nul\0" if number == 7 else "good"))
            for number, each in enumerate(made)
        ]
    culprit = asked.pop(7)
    with pytest.raises(db.UNSTORABLE):
        culprit.result(60)
    assert [each.result(60) for each in asked] == [True] * (MANY - 1)
    found = states(database_url, [order for _, order in made])
    assert (found.pop(7), found) == ("open", ["fetching"] * (MANY - 1))


def test_an_intent_whose_address_is_taken_fails_the_culprit_alone(database_url: str, writer: Writer) -> None:
    attempts = ask(database_url, lambda engine: running(engine, 3))
    intents = [an_intent("ab" * 32), an_intent("cd" * 32), an_intent("ab" * 32)]
    with another_call_under_way(writer):
        asked = [writer.begin_together(intend_each, each) for each in zip(attempts, intents, strict=True)]
    assert [each.result(60) for each in asked[:2]] == [True, True]
    with pytest.raises(db.UNSTORABLE):
        asked[2].result(60)


def test_only_whose_task_somebody_keeps_locked_waits(database_url: str, writer: Writer) -> None:
    made = ask(database_url, open_orders)
    with held_up(database_url, A_TASK, made[3][0].task_id):
        with another_call_under_way(writer):
            asked = [writer.begin_together(move_each, OrderMove(*each, "fetch")) for each in made]
        locked = asked.pop(3)
        assert [each.result(60) for each in asked] == [True] * (MANY - 1)
        assert not locked.done()
    assert locked.result(60)


def test_what_has_not_begun_in_time_never_will(database_url: str, writer: Writer) -> None:
    """Who gave up may be told to stop next; a step that came after that would be of nobody."""
    (early, late) = ask(database_url, lambda engine: open_orders(engine, 2))
    call = Watched(move_each)
    with another_call_under_way(writer):
        given_up = writer._gathered.begin(call, OrderMove(*early, "fetch"), patience_seconds=0)
        patient = writer.begin_together(call, OrderMove(*late, "fetch"))
    with pytest.raises(TimeoutError):
        given_up.result(60)
    assert patient.result(60)
    assert states(database_url, [early[1], late[1]]) == ["open", "fetching"]
