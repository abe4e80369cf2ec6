"""Which queue a free place asks for, and what becomes of doorbells and of calls that are not answered."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import pytest

from windlass.services.actors.worker.capacity import Capacity
from windlass.services.actors.worker.starting import starts as module
from windlass.services.actors.worker.starting.ring import Ring
from windlass.services.actors.worker.starting.starts import Starts
from windlass.shared import db
from windlass.shared.store.tasks import Ask, Claimed, Granted


@dataclass
class Postgres:
    """As many of each queue as are due, and no more of a provider than it has slots."""

    due: Counter[str] = field(default_factory=Counter)
    slots: dict[str, int] = field(default_factory=dict)
    asked: list[Mapping[str, int]] = field(default_factory=list)
    lost: bool = False
    recalled: list[Sequence[UUID]] = field(default_factory=list)
    open: asyncio.Event = field(default_factory=asyncio.Event)
    given: list[Claimed] = field(default_factory=list)

    async def claim_next(self, ask: Ask, epoch: int) -> Granted:
        assert epoch == len(self.recalled)
        self.asked.append(dict(ask.places))
        await self.open.wait()
        answer = self.give(ask)
        if self.lost:
            self.lost = False
            self.given = answer.claimed
            raise db.AWAY_OR_BUSY[0]
        return answer

    def give(self, ask: Ask) -> Granted:
        tokens = iter(ask.tokens)
        claimed = []
        for queue, places in ask.places.items():
            provider = queue.partition(".")[2]
            number = min(places, self.due[queue], self.slots.get(provider, 10**6))
            self.due[queue] -= number
            if provider in self.slots:
                self.slots[provider] -= number
            claimed += [an_attempt(queue, next(tokens)) for _ in range(number)]
        return Granted(claimed, {queue for queue in ask.places if self.due[queue] > 0}, set())

    async def recall(self, tokens: Sequence[UUID], epoch: int) -> Granted:
        self.recalled.append(tokens)
        assert epoch == len(self.recalled)
        return Granted(self.given, set(), set())

    async def unclaimable(self, queues: Sequence[str], aside: Sequence[UUID]) -> Mapping[UUID, str]:
        return {}


def an_attempt(queue: str, token: UUID) -> Claimed:
    actor, _, provider = queue.partition(".")
    usual: dict[str, Any] = {"payload": {}, "checkpoint": None, "attempt": 1, "retry_count": 0, "max_retries": 3}
    counts: dict[str, Any] = {"interrupt_count": 0, "stall_count": 0, "rate_limited_count": 0}
    return Claimed(uuid4(), token, actor, provider, timeout_seconds=1, **usual, **counts)


@dataclass(eq=False)
class Bell:
    queue: str
    starts: int = 1
    was_elsewhere: bool = False
    fate: str = "waits"
    is_back: asyncio.Event = field(default_factory=asyncio.Event)

    def ack(self) -> None:
        self.fate = "acked"

    def put_back(self) -> None:
        self.fate = "put back"
        self.is_back.set()


class Process:
    """Its places, and what it runs."""

    def __init__(
        self, postgres: Postgres, *, places: int, queues: Sequence[str] = ("probe.a", "probe.b"), on_the_loop: int = 0
    ) -> None:
        """`probe.b` is served on the loop, if there are places there."""
        self.postgres = postgres
        self.running: list[Claimed] = []
        self.starts = Starts(
            postgres,
            capacity=Capacity(places, on_the_loop, {"probe.b"} if on_the_loop else frozenset()),
            queues=queues,
            on_granted=lambda claimed, _sent_at: self.running.extend(claimed),
            on_suspect=lambda: None,
        )
        self.starts.begin()
        self.serving = asyncio.ensure_future(self.starts.serve())

    async def settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    async def end_and_ask(self, number: int) -> Ask | None:
        """As the writer does it, in one call."""
        ended, self.running = self.running[:number], self.running[number:]
        tokens = [each.claim_token for each in ended]
        ask = self.starts.ask_with(tokens)
        self.starts.ended(tokens)
        if ask is not None:
            for each in ended:
                if each.provider in self.postgres.slots:
                    self.postgres.slots[each.provider] += 1
            self.starts.answered(ask, self.postgres.give(ask), 0.0)
        return ask

    def count(self, queue: str) -> int:
        return sum(f"{each.actor}.{each.provider}" == queue for each in self.running)


def played(scene: Callable[[Postgres], Any]) -> Callable[[], None]:
    def run() -> None:
        async def play() -> None:
            postgres = Postgres()
            postgres.open.set()
            await scene(postgres)
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

        asyncio.run(play())

    run.__name__ = scene.__name__
    return run


def test_places_are_dealt_out_evenly_and_the_next_time_begins_with_the_next() -> None:
    ring = Ring()
    for queue in ("a", "b", "c"):
        ring.add(queue, 10)

    def share(places: int, without: str = "") -> Mapping[str, int]:
        return ring.share(places, lambda queue, number: 0 if queue == without else number)

    assert share(4) == {"a": 2, "b": 1, "c": 1}
    assert share(2) == {"b": 1, "c": 1}
    ring.drop("b")
    assert share(4) == {"a": 2, "c": 2}
    assert share(4, without="a") == {"c": 4}
    assert share(100) == {"a": 10, "c": 10}
    ring.add("a", 20)
    ring.add("a", 1)
    assert share(100) == {"a": 20, "c": 10}


@played
async def test_while_ten_thousand_of_one_queue_wait_one_of_another_starts_within_two_calls(postgres: Postgres) -> None:
    postgres.due["probe.a"] = 10_000
    process = Process(postgres, places=16)
    process.starts.ring(Bell("probe.a", 64))
    await process.settle()
    assert process.count("probe.a") == 16
    postgres.due["probe.b"] = 1
    process.starts.ring(Bell("probe.b", 1))
    for _ in range(2):
        await process.end_and_ask(8)
        process.starts.ring(Bell("probe.a", 64))
    assert process.count("probe.b") == 1


@played
async def test_nothing_is_asked_for_without_a_place(postgres: Postgres) -> None:
    postgres.due["probe.a"] = 100
    postgres.open.clear()
    process = Process(postgres, places=5)
    process.starts.ring(Bell("probe.a", 64))
    await process.settle()
    process.starts.ring(Bell("probe.a", 64))
    await process.settle()
    assert postgres.asked == [{"probe.a": 5}], "all places are asked for"
    assert process.starts.free() == 0
    postgres.open.set()
    await process.settle()
    assert len(process.running) == 5
    await process.end_and_ask(2)
    assert (len(process.running), process.starts.free()) == (5, 0)


@played
async def test_a_call_that_was_not_answered_is_recalled_before_anything_else_is_asked(postgres: Postgres) -> None:
    postgres.due["probe.a"], postgres.lost = 100, True
    process = Process(postgres, places=5)
    process.starts.ring(Bell("probe.a", 3))
    await process.settle()
    assert [len(tokens) for tokens in postgres.recalled] == [3]
    assert process.count("probe.a") == 5, "what had been granted, and then for the places that were left"
    assert len({each.claim_token for each in process.running}) == 5
    assert process.starts.free() == 0


@played
async def test_a_queue_whose_provider_is_full_is_asked_for_again_when_one_of_it_has_ended(postgres: Postgres) -> None:
    postgres.due["probe.a"], postgres.slots = Counter({"probe.a": 100})["probe.a"], {"a": 3}
    process = Process(postgres, places=16)
    process.starts.ring(Bell("probe.a", 64))
    await process.settle()
    assert (process.count("probe.a"), len(postgres.asked)) == (3, 1), "and not again and again"
    ask = await process.end_and_ask(1)
    assert ask is not None
    assert (ask.places, process.count("probe.a")) == ({"probe.a": 1}, 3)
    await process.settle()
    assert len(postgres.asked) == 1, "and it is not asked by another call whether there is more"


@played
async def test_what_is_rung_for_while_a_call_is_under_way_is_asked_for_after_it(postgres: Postgres) -> None:
    """The call may have come too early for it."""
    postgres.open.clear()
    process = Process(postgres, places=4)
    process.starts.ring(Bell("probe.a", 1))
    await process.settle()
    process.starts.ring(later := Bell("probe.a", 1))
    postgres.open.set()
    await process.settle()
    assert postgres.asked == [{"probe.a": 1}, {"probe.a": 1}]
    assert later.fate == "acked"
    await process.settle()
    assert len(postgres.asked) == 2, "nothing is there, and it asks no more"


@played
async def test_a_call_that_was_given_all_and_told_of_more_is_followed_by_one_for_twice_as_many(
    postgres: Postgres,
) -> None:
    """A doorbell names a part of a burst, so that idle workers share it; the rest is anybody's."""
    postgres.due["probe.a"] = 100
    process = Process(postgres, places=16)
    process.starts.ring(Bell("probe.a", 2))
    await process.settle()
    assert [each["probe.a"] for each in postgres.asked] == [2, 4, 8, 2]


@played
async def test_closed_it_asks_for_nothing_and_waits_for_the_last_answer(postgres: Postgres) -> None:
    postgres.due["probe.a"] = 10
    postgres.open.clear()
    process = Process(postgres, places=4)
    process.starts.ring(Bell("probe.a", 2))
    await process.settle()
    closing = asyncio.ensure_future(process.starts.close())
    await process.settle()
    assert not closing.done()
    postgres.open.set()
    await process.settle()
    assert closing.done()
    assert len(process.running) == 2, "an answer that comes late is not forgotten"
    process.starts.ring(bell := Bell("probe.a", 2))
    process.starts.ask_for_all()
    assert await process.end_and_ask(1) is None
    await process.settle()
    assert (bell.fate, len(postgres.asked)) == ("put back", 1)


@played
async def test_a_worker_helps_itself_for_all_its_queues(postgres: Postgres) -> None:
    postgres.due.update({"probe.a": 1, "probe.b": 1})
    process = Process(postgres, places=4)
    process.starts.ask_for_all()
    await process.settle()
    assert (process.count("probe.a"), process.count("probe.b")) == (1, 1)


def test_a_doorbell_waits_for_a_place_and_goes_to_others_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HIDDEN_SECONDS", 0.01)

    @played
    async def scene(postgres: Postgres) -> None:
        postgres.due.update({"probe.a": 1, "probe.b": 1})
        process = Process(postgres, places=1)
        process.starts.ring(taken := Bell("probe.a", 1))
        assert taken.fate == "acked"
        await process.settle()
        process.starts.ring(first := Bell("probe.b", 1))
        await first.is_back.wait()  # another process may have a place
        process.starts.ring(back := Bell("probe.b", 1, was_elsewhere=True))
        assert back.fate == "acked", "it is remembered"
        await process.end_and_ask(1)
        assert process.count("probe.b") == 1
        process.starts.ring(waiting := Bell("probe.b", 1))
        await process.starts.close()
        assert waiting.fate == "put back"

    scene()


def test_each_kind_of_place_is_asked_for_by_a_call_of_its_own() -> None:
    @played
    async def scene(postgres: Postgres) -> None:
        process = Process(postgres, places=2, on_the_loop=5)
        postgres.due.update({"probe.a": 9, "probe.b": 9})
        for queue in ("probe.a", "probe.b"):
            process.starts.ring(Bell(queue, starts=9))
        await process.settle()
        assert sorted(map(sorted, (each.items() for each in postgres.asked))) == [[("probe.a", 2)], [("probe.b", 5)]]
        assert Counter(each.provider for each in process.running) == {"a": 2, "b": 5}
        assert (process.starts.free(), process.starts.free("loop")) == (0, 0)

        process.running.sort(key=lambda each: each.provider)
        ask = await process.end_and_ask(2)
        assert ask is not None
        assert ask.places == {"probe.a": 2}, "what has ended leaves two threads, and nothing on the loop"

    scene()


def test_of_ends_of_both_kinds_the_most_are_asked_for_and_then_the_others() -> None:
    @played
    async def scene(postgres: Postgres) -> None:
        process = Process(postgres, places=2, on_the_loop=5)
        postgres.due.update({"probe.a": 9, "probe.b": 20})
        for queue in ("probe.a", "probe.b"):
            process.starts.ring(Bell(queue, starts=20))
        await process.settle()
        process.running.sort(key=lambda each: each.provider)
        ask = await process.end_and_ask(6)
        assert ask is not None
        assert ask.places == {"probe.b": 4}
        await process.settle()
        assert postgres.asked[-1] == {"probe.a": 2}

    scene()
