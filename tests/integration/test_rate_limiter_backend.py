"""Dramatiq's contract of a rate limiter backend: the same tests on Dramatiq's own backend and on ours."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import pytest
from dramatiq import RateLimitExceeded
from dramatiq.rate_limits import Barrier, BucketRateLimiter, WindowRateLimiter
from dramatiq.rate_limits.backends import StubBackend

from tests.support.engine.store import an_engine, empty_database
from tests.support.servers.databases import ask, execute
from tests.support.servers.private_servers import Servers
from tests.support.waiting import wait_until
from windlass.services.actors.worker.rate_backend import PostgresBackend
from windlass.services.janitor.duties.rates import forget_expired_rates
from windlass.shared import db
from windlass.shared.settings import Settings

T = TypeVar("T")

LONG = 60_000
THREADS = 12


class Backend(Protocol):
    """Dramatiq's contract, with types."""

    def add(self, key: str, value: int, ttl: int) -> bool: ...

    def incr(self, key: str, amount: int, maximum: int, ttl: int) -> bool: ...

    def decr(self, key: str, amount: int, minimum: int, ttl: int) -> bool: ...

    def incr_and_sum(
        self, key: str, keys: Callable[[], list[str]], amount: int, maximum: int, ttl: int
    ) -> bool: ...  # fmt: skip

    def wait(self, key: str, timeout: int) -> bool: ...

    def wait_notify(self, key: str, ttl: int) -> None: ...


class ManyConnections:
    """Unlike a worker, which makes one such call at a time: the calls of many threads meet in Postgres."""

    def __init__(self, loop: asyncio.AbstractEventLoop, pool: db.Database) -> None:
        self._loop = loop
        self._pool = pool

    def call(self, intent: Callable[[db.Database], Coroutine[Any, Any, T]]) -> T:
        return asyncio.run_coroutine_threadsafe(intent(self._pool), self._loop).result(60)


@contextmanager
def many_connections(database_url: str) -> Iterator[ManyConnections]:
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        pool = runner.run(db.open_pool(Settings(database_url=database_url), "test", most=THREADS))
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        try:
            yield ManyConnections(loop, pool)
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(60)
            runner.run(pool.close())


@pytest.fixture
def engine_url(servers: Servers, migrated_template: str) -> str:
    return empty_database(servers.database_url, migrated_template)


@pytest.fixture
def postgres(engine_url: str) -> Iterator[PostgresBackend]:
    with many_connections(engine_url) as caller:
        yield PostgresBackend(caller)


@pytest.fixture(params=["dramatiq", "windlass"])
def backend(request: pytest.FixtureRequest) -> Backend:
    if request.param == "dramatiq":
        return StubBackend()  # type: ignore[no-untyped-call]
    ours: Backend = request.getfixturevalue("postgres")
    return ours


def at_once(times: int, act: Callable[[int], bool]) -> int:
    """How many of so many simultaneous calls, each from a thread of its own, were granted."""
    start = threading.Barrier(THREADS)

    def wait_and_act(number: int) -> bool:
        if number < THREADS:
            start.wait(60)
        return act(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(wait_and_act, range(times)))


def test_a_key_is_added_once(backend: Backend) -> None:
    assert backend.add("key", 1, LONG)
    assert not backend.add("key", 1, LONG)
    assert backend.add("another", 1, LONG)


def test_a_key_can_be_added_again_when_it_has_expired(backend: Backend) -> None:
    assert backend.add("key", 5, 30)
    wait_until("it has expired", lambda: backend.add("key", 1, LONG))
    assert not backend.incr("key", 1, 1, LONG), "the new value counts"


def test_increments_stop_at_the_maximum(backend: Backend) -> None:
    assert [backend.incr("key", 2, 5, LONG) for _ in range(4)] == [True, True, False, False]
    assert backend.incr("key", 1, 5, LONG), "one more still fits"
    assert not backend.incr("key", 1, 5, LONG)
    assert backend.incr("key", 1, 6, LONG), "a raised maximum counts at once"


def test_what_never_fits_is_refused_and_changes_nothing(backend: Backend) -> None:
    assert not backend.incr("key", 6, 5, LONG)
    assert backend.incr("key", 5, 5, LONG)


def test_decrements_stop_at_the_minimum(backend: Backend) -> None:
    backend.add("key", 3, LONG)
    assert [backend.decr("key", 2, 0, LONG) for _ in range(2)] == [True, False]
    assert backend.decr("key", 1, 0, LONG)
    assert not backend.decr("key", 1, 0, LONG)


def test_an_absent_key_counts_from_zero(backend: Backend) -> None:
    assert not backend.decr("key", 1, 0, LONG)
    assert backend.decr("key", 3, -3, LONG), "the minimum may be below zero"
    assert backend.incr("key", 5, 2, LONG), "and the way up begins there"
    assert not backend.incr("key", 1, 2, LONG)


def test_an_expired_counter_counts_from_zero(backend: Backend) -> None:
    assert backend.incr("key", 5, 5, 30)
    wait_until("it has expired", lambda: backend.incr("key", 5, 5, LONG))
    assert not backend.incr("key", 1, 5, LONG)


def test_every_change_prolongs_the_life(backend: Backend) -> None:
    backend.add("key", 1, 400)
    assert backend.incr("key", 1, 9, LONG)
    time.sleep(0.45)
    assert not backend.add("key", 1, LONG)


def test_a_sum_over_many_keys_stops_at_the_maximum(backend: Backend) -> None:
    keys = ["w@1", "w@2", "w@3"]
    backend.add("w@1", 2, LONG)
    backend.add("w@2", 1, LONG)
    backend.add("w@9", 7, LONG)
    assert [backend.incr_and_sum("w@3", lambda: keys, 1, 5, LONG) for _ in range(3)] == [True, True, False]
    assert backend.incr_and_sum("w@3", lambda: keys[1:], 1, 5, LONG), "what has left the window no longer counts"
    assert not backend.incr_and_sum("w@3", lambda: keys[1:], 2, 5, LONG)


def test_the_key_itself_stays_below_the_maximum_though_the_sum_may_leave_it_out(backend: Backend) -> None:
    backend.add("w@1", 5, LONG)
    assert not backend.incr_and_sum("w@1", list, 1, 5, LONG)
    assert backend.incr_and_sum("w@1", list, 1, 6, LONG)


def test_expired_keys_do_not_count_in_a_sum(backend: Backend) -> None:
    backend.add("w@1", 5, 30)
    wait_until("it has expired", lambda: backend.incr_and_sum("w@2", lambda: ["w@1", "w@2"], 1, 5, LONG))


def test_no_increment_is_lost_or_given_away_twice_among_threads(backend: Backend) -> None:
    assert at_once(100, lambda _: backend.incr("key", 1, 37, LONG)) == 37
    assert at_once(100, lambda _: backend.decr("key", 1, 0, LONG)) == 37


def test_one_thread_of_many_adds_a_key(backend: Backend) -> None:
    assert at_once(THREADS, lambda _: backend.add("key", 1, LONG)) == 1


def test_a_sum_is_never_exceeded_by_threads_that_increment_different_keys(backend: Backend) -> None:
    keys = [f"w@{number}" for number in range(8)]
    assert at_once(100, lambda number: backend.incr_and_sum(keys[number % 8], lambda: keys, 1, 37, LONG)) == 37


def test_a_sum_is_never_exceeded_though_its_keys_belong_to_different_limiters(backend: Backend) -> None:
    keys = [f"limiter-{number}" for number in range(8)]
    assert at_once(100, lambda number: backend.incr_and_sum(keys[number % 8], lambda: keys, 1, 37, LONG)) == 37


def test_a_notification_lets_everybody_through_who_waits(backend: Backend) -> None:
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(backend.wait, "key@events", LONG) for _ in range(4)]
        until_they_wait(backend, "key@events", 4)
        assert not any(each.done() for each in waiting)
        backend.wait_notify("key@events", LONG)
        assert all(each.result(60) for each in waiting)


def until_they_wait(backend: Backend, key: str, number: int) -> None:
    """Dramatiq's own lets those through who wait already, and nobody who comes later; ours both."""
    if isinstance(backend, StubBackend):
        wait_until(f"{number} wait", lambda: len(backend.conditions[key]._waiters) == number)


def test_who_is_not_notified_has_waited_in_vain(backend: Backend) -> None:
    began = time.monotonic()
    assert not backend.wait("key@events", 100)
    assert 0.1 <= time.monotonic() - began < 60


def test_a_notification_is_only_for_its_key(backend: Backend) -> None:
    backend.wait_notify("other@events", LONG)
    assert not backend.wait("key@events", 100)


def test_a_window_limiter_grants_its_limit(backend: Backend) -> None:
    limiter = WindowRateLimiter(backend, "calls", limit=5, window=60)  # type: ignore[no-untyped-call]
    assert at_once(40, lambda _: acquired(limiter)) == 5
    with pytest.raises(RateLimitExceeded), limiter.acquire():
        pass


def test_who_waited_while_the_window_moved_on_sees_what_was_taken_meanwhile(postgres: Backend) -> None:
    """It has counted the old part of the window; others have used up the limit in the new one before it could."""
    older, newer = ["calls@1", "calls@0"], ["calls@2", "calls@1", "calls@0"]
    told = iter([older, newer])
    for _ in range(5):
        assert postgres.incr_and_sum("calls@2", lambda: newer, 1, 5, LONG)
    assert not postgres.incr_and_sum("calls@1", lambda: next(told), 1, 5, LONG)
    assert not postgres.incr_and_sum("calls@2", lambda: newer, 1, 5, LONG)
    assert postgres.incr_and_sum("calls@2", lambda: newer, 1, 6, LONG), "and it has given back what it took"
    assert not postgres.incr_and_sum("calls@2", lambda: newer, 1, 6, LONG)


def test_a_window_limiter_grants_more_when_its_window_has_moved_on(backend: Backend) -> None:
    limiter = WindowRateLimiter(backend, "calls", limit=1, window=1)  # type: ignore[no-untyped-call]
    assert acquired(limiter)
    wait_until("the next one", lambda: acquired(limiter))


def test_a_bucket_limiter_grants_its_limit(backend: Backend) -> None:
    now = int(time.time() * 1000)
    limiter = BucketRateLimiter(backend, "calls", limit=5, bucket=2 * now)  # type: ignore[no-untyped-call]
    assert at_once(40, lambda _: acquired(limiter)) == 5


def test_a_bucket_limiter_grants_more_in_the_next_bucket(backend: Backend) -> None:
    limiter = BucketRateLimiter(backend, "calls", limit=1, bucket=100)  # type: ignore[no-untyped-call]
    assert acquired(limiter)
    wait_until("the next one", lambda: acquired(limiter))


def test_a_barrier_opens_when_the_last_party_has_come(backend: Backend) -> None:
    barrier = Barrier(backend, "barrier", ttl=LONG)  # type: ignore[no-untyped-call]
    assert barrier.create(parties=3)  # type: ignore[no-untyped-call]
    assert not barrier.create(parties=3)  # type: ignore[no-untyped-call]
    with ThreadPoolExecutor(2) as pool:
        early = [pool.submit(barrier.wait, timeout=LONG) for _ in range(2)]
        until_they_wait(backend, "barrier@events", 2)
        assert not any(each.done() for each in early)
        assert barrier.wait(timeout=LONG)  # type: ignore[no-untyped-call]
        assert all(each.result(60) for each in early)


def acquired(limiter: WindowRateLimiter | BucketRateLimiter) -> bool:
    with limiter.acquire(raise_on_failure=False) as granted:
        return bool(granted)


# What only ours has to show: other processes, other clocks, and rows that go away.


def test_a_sum_is_never_exceeded_by_processes_that_count_at_once(engine_url: str) -> None:
    command = [sys.executable, "-m", "tests.support.engine.rate_counting", engine_url, "shared", "60", "97"]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]  # fmt: skip
    try:
        for process in processes:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin
            process.stdin.write("go\n")
            process.stdin.flush()
        granted = [int(process.communicate(timeout=120)[0]) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert sum(granted) == 97
    assert ask(engine_url, "SELECT sum(value) FROM rate_counters")[0][0] == 97


def test_a_notification_lives_for_its_time_as_with_redis(postgres: PostgresBackend) -> None:
    postgres.wait_notify("key@events", LONG)
    assert postgres.wait("key@events", 1000), "who comes late is let through"
    postgres.wait_notify("brief@events", 300)
    wait_until("it has expired", lambda: not postgres.wait("brief@events", 0))


def test_lives_end_by_postgres_clock(postgres: PostgresBackend, engine_url: str) -> None:
    postgres.add("key", 1, LONG)
    execute(engine_url, "UPDATE rate_counters SET expires_at = clock_timestamp() - interval '1 ms'")
    assert postgres.add("key", 1, LONG)


def test_the_janitor_removes_what_has_expired_and_nothing_else(postgres: PostgresBackend, engine_url: str) -> None:
    async def sweep() -> None:
        async with an_engine(engine_url) as engine:
            await forget_expired_rates(engine.pool)

    execute(
        engine_url,
        """
        INSERT INTO rate_counters (key, value, expires_at)
        SELECT 'old@' || n, 1, clock_timestamp() - interval '1 ms' FROM generate_series(1, 2500) AS n
        """,
    )
    postgres.add("alive", 1, LONG)
    asyncio.run(sweep())
    assert [row["key"] for row in ask(engine_url, "SELECT key FROM rate_counters")] == ["alive"]
