"""Verified keys are kept for moments: no question per request, and never longer than they may open."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from tests.support.engine.store import Engine, on_the_engine
from windlass.services.api.access.keyring import KEPT_SECONDS, MOST_KEPT, Keyring
from windlass.shared import db
from windlass.shared.settings import Settings
from windlass.shared.store.access import keys, sessions


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Counting:
    """The pool, counting what it is asked; `meanwhile` happens after the answer and before it is handed on."""

    def __init__(self, pool: db.Database) -> None:
        self.pool = pool
        self.questions = 0
        self.meanwhile: Any = None

    async def fetchrow(self, *question: Any, **options: Any) -> Any:
        self.questions += 1
        answer = await self.pool.fetchrow(*question, **options)
        if self.meanwhile is not None:
            await self.meanwhile()
        return answer


def keyring_of(engine: Engine) -> tuple[Keyring, Counting, Clock]:
    counting, clock = Counting(engine.pool), Clock()
    return Keyring(cast(db.Database, counting), clock), counting, clock


async def made(engine: Engine, **fields: Any) -> str:
    key = keys.new_key()
    await keys.create(engine.pool, key, role="user", user_id="ann", **fields)
    return key


def key_id(key: str) -> str:
    parts = keys.split(key)
    assert parts is not None
    return parts[0]


@on_the_engine
async def test_a_key_is_asked_about_once_and_again_when_its_moment_is_over(engine: Engine) -> None:
    key = await made(engine)
    keyring, counting, clock = keyring_of(engine)
    callers = [await keyring.open(key) for _ in range(50)]
    assert {caller.user_id for caller in callers if caller} == {"ann"}
    assert None not in callers
    assert counting.questions == 1
    clock.now += KEPT_SECONDS
    assert await keyring.open(key) is not None
    assert counting.questions == 2


@on_the_engine
async def test_a_wrong_key_is_never_kept_and_one_of_another_shape_costs_no_question(engine: Engine) -> None:
    key = await made(engine)
    keyring, counting, _ = keyring_of(engine)
    assert await keyring.open(key) is not None
    for wrong in (key[:-1] + ("x" if key[-1] != "x" else "y"), keys.new_key()):
        assert await keyring.open(wrong) is None
        assert await keyring.open(wrong) is None
    assert counting.questions == 5
    for malformed in ("", "x" * 100_000, "wl__", "wl_ü_ü", key + "\n", key + "\0"):
        assert await keyring.open(malformed) is None
    assert counting.questions == 5
    assert len(keyring) == 1


@on_the_engine
async def test_a_key_is_not_kept_beyond_its_expiry(engine: Engine) -> None:
    key = await made(engine, expires_in_seconds=KEPT_SECONDS)
    keyring, counting, clock = keyring_of(engine)
    caller = await keyring.open(key)
    assert caller is not None
    assert caller.until is not None
    assert caller.until < clock.now + KEPT_SECONDS
    await engine.sql("UPDATE api_keys SET expires_at = clock_timestamp() - interval '1 s'")
    clock.now = caller.until - 0.001
    assert await keyring.open(key) is not None
    clock.now = caller.until
    assert await keyring.open(key) is None
    assert counting.questions == 2


@on_the_engine
async def test_a_change_that_comes_while_the_key_is_looked_up_is_not_overlooked(engine: Engine) -> None:
    key = await made(engine)
    keyring, counting, _ = keyring_of(engine)

    async def revoked_and_told() -> None:
        counting.meanwhile = None
        await keys.revoke(engine.pool, key_id(key))
        keyring.forget(key_id(key))

    counting.meanwhile = revoked_and_told
    assert await keyring.open(key) is not None, "it was valid when it was looked up"
    assert await keyring.open(key) is None


@on_the_engine
async def test_when_a_key_expires_is_known_to_whoever_holds_something_open_under_it(engine: Engine) -> None:
    lasting, ending = await made(engine), await made(engine, expires_in_seconds=600)
    keyring, _, clock = keyring_of(engine)
    callers = [await keyring.open(lasting), await keyring.open(ending), await keyring.vouched_for(key_id(ending))]
    until = [caller.until for caller in callers if caller is not None]
    assert until[0] is None
    assert [each is not None and clock.now + 500 < each <= clock.now + 600 for each in until] == [False, True, True]
    assert await keyring.vouched_for("nobody") is None


@on_the_engine
async def test_any_number_of_keys_takes_bounded_memory(engine: Engine) -> None:
    keyring, _, _ = keyring_of(engine)
    secret = "s" * 24
    await engine.sql(
        "INSERT INTO api_keys (key_id, secret_hash, role, user_id) "
        "SELECT 'number' || n, sha256($1), 'user', 'ann' FROM generate_series(1, $2) n",
        secret.encode(),
        MOST_KEPT + 20,
    )
    for number in range(1, MOST_KEPT + 21):
        assert await keyring.open(f"wl_number{number}_{secret}") is not None
    assert len(keyring) == MOST_KEPT


@asynccontextmanager
async def listening(engine: Engine, keyring: Keyring) -> AsyncIterator[None]:
    connected = asyncio.Event()

    def heard(key_id: str) -> None:
        keyring.forget(key_id)
        connected.set()

    settings = Settings(database_url=engine.database_url)
    running = asyncio.create_task(db.Listener(settings, "test", {keys.CHANNEL: heard}).run())
    await asyncio.wait_for(connected.wait(), 60)
    yield
    running.cancel()


@on_the_engine
async def test_postgres_tells_of_a_revocation(engine: Engine) -> None:
    keyring, _, _ = keyring_of(engine)
    async with listening(engine, keyring):
        key = await made(engine)
        other = await made(engine)
        assert await keyring.open(key) is not None
        assert await keyring.open(other) is not None
        await keys.revoke(engine.pool, key_id(key))
        await until_forgotten(keyring, 1)
        assert await keyring.open(key) is None
        assert await keyring.open(other) is not None


async def until_forgotten(keyring: Keyring, left: int) -> None:
    async with asyncio.timeout(60):
        while len(keyring) != left:  # noqa: ASYNC110 - nobody else is to know when
            await asyncio.sleep(0.01)


async def signed_in(engine: Engine, key: str) -> str:
    secret = sessions.new_secret()
    assert await sessions.begin(engine.pool, secret, key_id(key), secure=False) is not None
    return secret


@on_the_engine
async def test_a_session_is_asked_about_once_and_ends_with_its_key(engine: Engine) -> None:
    key = await made(engine)
    secret = await signed_in(engine, key)
    keyring, counting, _clock = keyring_of(engine)
    opened = [await keyring.open_session(secret) for _ in range(50)]
    assert {each and each[0].user_id for each in opened} == {"ann"}
    assert counting.questions == 1
    assert await keyring.open(secret) is None, "as a key it opens nothing, also while it is kept"
    await keys.revoke(engine.pool, key_id(key))
    keyring.forget(key_id(key))
    assert await keyring.open_session(secret) is None


class ReadOnly(Counting):
    """Postgres that takes nothing at the moment."""

    async def execute(self, *statement: Any) -> Any:
        pool: Any = self.pool
        async with pool.acquire() as connection, connection.transaction(readonly=True):
            return await connection.execute(*statement)


@on_the_engine
async def test_a_session_that_cannot_be_renewed_goes_on_while_it_lasts(engine: Engine) -> None:
    secret = await signed_in(engine, await made(engine))
    await engine.sql("UPDATE sessions SET expires_at = expires_at - interval '11 h'")
    keyring = Keyring(cast(db.Database, ReadOnly(engine.pool)), Clock())
    opened = await keyring.open_session(secret)
    assert opened is not None
    assert (opened[0].user_id, opened[1]) == ("ann", None)
