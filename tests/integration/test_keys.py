"""API keys: only a hash is kept, and only the right, living secret opens."""

import hashlib

import pytest

from shared.store import keys
from tests.integration.engine import Engine, on_the_engine

SECRET = "abcdefghijklmnopqrstuvwxyz"
KEY = f"wl_tests1_{SECRET}"


@on_the_engine
async def test_a_key_opens_as_its_owner_in_its_role(engine: Engine) -> None:
    await keys.ensure(engine.pool, KEY, role="user", user_id="ann")
    row = await keys.authenticate(engine.pool, KEY)
    assert row is not None
    assert (row["key_id"], row["role"], row["user_id"]) == ("tests1", "user", "ann")


@on_the_engine
async def test_the_secret_itself_is_nowhere_in_the_database(engine: Engine) -> None:
    await keys.ensure(engine.pool, KEY, role="admin", user_id="root")
    row = await engine.pool.fetchrow("SELECT * FROM api_keys")
    assert row is not None
    assert SECRET not in str(dict(row))
    assert SECRET.encode() not in row["secret_hash"]
    assert row["secret_hash"] == hashlib.sha256(SECRET.encode()).digest()


@pytest.mark.parametrize(
    "key",
    [
        f"wl_tests1_{SECRET[:-1]}",
        f"wl_tests1_{SECRET}x",
        f"wl_tests1_{SECRET.upper()}",
        f"wl_tests2_{SECRET}",
        f"xx_tests1_{SECRET}",
        f"wl__{SECRET}",
        "wl_tests1_",
        "wl_tests1",
        "",
        "wl_tests1_ü",
    ],
)
@on_the_engine
async def test_another_key_does_not_open(engine: Engine, key: str) -> None:
    await keys.ensure(engine.pool, KEY, role="admin", user_id="root")
    assert await keys.authenticate(engine.pool, key) is None


@on_the_engine
async def test_an_expired_key_does_not_open(engine: Engine) -> None:
    await keys.ensure(engine.pool, KEY, role="admin", user_id="root")
    await engine.sql("UPDATE api_keys SET expires_at = clock_timestamp() + interval '1 h'")
    assert await keys.authenticate(engine.pool, KEY) is not None
    await engine.sql("UPDATE api_keys SET expires_at = clock_timestamp() - interval '1 s'")
    assert await keys.authenticate(engine.pool, KEY) is None


@on_the_engine
async def test_a_revoked_key_does_not_open(engine: Engine) -> None:
    await keys.ensure(engine.pool, KEY, role="admin", user_id="root")
    await engine.sql("UPDATE api_keys SET revoked_at = clock_timestamp()")
    assert await keys.authenticate(engine.pool, KEY) is None


@pytest.mark.parametrize("field", ["revoked_at", "expires_at"])
@on_the_engine
async def test_a_key_that_the_operator_gives_works_whatever_became_of_it_before(engine: Engine, field: str) -> None:
    await keys.ensure(engine.pool, KEY, role="user", user_id="ann")
    await engine.sql(f"UPDATE api_keys SET {field} = clock_timestamp()")
    await keys.ensure(engine.pool, KEY, role="admin", user_id="root")
    row = await keys.authenticate(engine.pool, KEY)
    assert row is not None
    assert (row["role"], row["user_id"]) == ("admin", "root")


@on_the_engine
async def test_a_new_secret_replaces_the_old_one(engine: Engine) -> None:
    await keys.ensure(engine.pool, KEY, role="admin", user_id="root")
    await keys.ensure(engine.pool, f"wl_tests1_{SECRET[::-1]}", role="admin", user_id="root")
    assert await keys.authenticate(engine.pool, KEY) is None
    assert await keys.authenticate(engine.pool, f"wl_tests1_{SECRET[::-1]}") is not None


@on_the_engine
async def test_a_key_of_another_shape_cannot_be_made(engine: Engine) -> None:
    with pytest.raises(ValueError, match="wl_<id>_<secret>"):
        await keys.ensure(engine.pool, "secret", role="admin", user_id="root")
