"""API keys: only a hash is kept, and only the right, living secret opens."""

import asyncio
import hashlib
from datetime import timedelta

import pytest

from tests.support.engine.store import Engine, on_the_engine
from windlass.shared.settings import Settings
from windlass.shared.store.access import audit, keys

SECRET = "abcdefghijklmnopqrstuvwxyz"
KEY = f"wl_tests1_{SECRET}"


async def given(engine: Engine, key: str = KEY, *, role: str = "admin", user_id: str = "root") -> str | None:
    """As an api does with the key in its settings."""
    return await keys.ensure(engine.pool, key, role=role, user_id=user_id, created_by="settings")


@on_the_engine
async def test_a_key_opens_as_its_owner_in_its_role(engine: Engine) -> None:
    await given(engine, role="user", user_id="ann")
    row = await keys.authenticate(engine.pool, KEY)
    assert row is not None
    assert (row["key_id"], row["role"], row["user_id"]) == ("tests1", "user", "ann")


@on_the_engine
async def test_the_secret_itself_is_nowhere_in_the_database(engine: Engine) -> None:
    await given(engine)
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
    await given(engine)
    assert await keys.authenticate(engine.pool, key) is None


@on_the_engine
async def test_an_expired_key_does_not_open(engine: Engine) -> None:
    await given(engine)
    await engine.sql("UPDATE api_keys SET expires_at = clock_timestamp() + interval '1 h'")
    assert await keys.authenticate(engine.pool, KEY) is not None
    await engine.sql("UPDATE api_keys SET expires_at = clock_timestamp() - interval '1 s'")
    assert await keys.authenticate(engine.pool, KEY) is None


@on_the_engine
async def test_a_revoked_key_does_not_open(engine: Engine) -> None:
    await given(engine)
    await engine.sql("UPDATE api_keys SET revoked_at = clock_timestamp()")
    assert await keys.authenticate(engine.pool, KEY) is None


@pytest.mark.parametrize(("field", "why"), [("revoked_at", "it was revoked at 20"), ("expires_at", "it has expired")])
@on_the_engine
async def test_a_key_that_the_operator_gives_stays_what_became_of_it_and_says_so(
    engine: Engine, field: str, why: str
) -> None:
    assert await given(engine, role="user", user_id="ann") is None
    await engine.sql(f"UPDATE api_keys SET {field} = clock_timestamp()")
    before = await engine.pool.fetch("SELECT * FROM api_keys")
    refusal = await given(engine)
    assert refusal is not None
    assert refusal.startswith(why)
    assert await engine.pool.fetch("SELECT * FROM api_keys") == before
    assert await keys.authenticate(engine.pool, KEY) is None


@on_the_engine
async def test_a_key_that_the_operator_gives_with_another_s_id_replaces_nothing(engine: Engine) -> None:
    await given(engine, role="user", user_id="ann")
    refusal = await given(engine, f"wl_tests1_{SECRET[::-1]}")
    assert refusal == "there is another key of the same id"
    row = await keys.authenticate(engine.pool, KEY)
    assert row is not None
    assert (row["role"], row["user_id"]) == ("user", "ann")


@on_the_engine
async def test_the_making_of_a_key_that_the_operator_gives_is_in_the_audit_log_once(engine: Engine) -> None:
    assert await asyncio.gather(*(given(engine) for _ in range(5))) == [None] * 5
    await engine.sql("UPDATE api_keys SET revoked_at = clock_timestamp()")
    await given(engine)
    (entry,) = await audit.newest(engine.pool, action=None, user_id=None, before=None, limit=5)
    assert (entry["key_id"], entry["user_id"], entry["action"]) == ("settings", "settings", "key.create")
    assert (entry["target"], entry["details"]) == ("tests1", {"role": "admin", "user_id": "root"})


@on_the_engine
async def test_a_key_of_another_shape_cannot_be_made(engine: Engine) -> None:
    with pytest.raises(ValueError, match="wl_<id>_<secret>"):
        await given(engine, "secret")


def test_a_new_key_has_the_shape_that_settings_accept() -> None:
    made = {keys.new_key() for _ in range(100)}
    assert len(made) == 100
    for key in made:
        assert Settings(api_key=key).api_key == key
        assert keys.split(key) is not None


@on_the_engine
async def test_a_key_made_for_somebody_opens_for_as_long_as_it_was_made_for(engine: Engine) -> None:
    key = keys.new_key()
    row = await keys.create(
        engine.pool, key, role="viewer", user_id="eve", name="dashboard", expires_in_seconds=600, created_by="root"
    )
    assert row["expires_at"] - row["created_at"] > timedelta(seconds=599)
    assert (row["name"], row["created_by"], row["revoked_at"]) == ("dashboard", "root", None)
    opened = await keys.authenticate(engine.pool, key)
    assert opened is not None
    assert (opened["role"], opened["user_id"]) == ("viewer", "eve")
    assert 500 < opened["seconds_left"] <= 600


@on_the_engine
async def test_a_revoked_key_stays_in_the_list_and_revoking_it_again_changes_nothing(engine: Engine) -> None:
    key = keys.new_key()
    row = await keys.create(engine.pool, key, role="user", user_id="ann")
    first = await keys.revoke(engine.pool, row["key_id"])
    again = await keys.revoke(engine.pool, row["key_id"])
    assert first is not None
    assert first == again
    assert await keys.authenticate(engine.pool, key) is None
    assert [each["revoked_at"] for each in await keys.newest(engine.pool, before=None, limit=10)] == [
        first["revoked_at"]
    ]
    assert await keys.revoke(engine.pool, "nobody") is None


@on_the_engine
async def test_keys_are_listed_in_pages_the_latest_first_without_their_secrets(engine: Engine) -> None:
    made = [(await keys.create(engine.pool, keys.new_key(), role="user", user_id="ann"))["key_id"] for _ in range(5)]
    seen: list[str] = []
    while page := await keys.newest(engine.pool, before=seen[-1] if seen else None, limit=2):
        assert all("secret_hash" not in row.keys() for row in page)  # noqa: SIM118 - a row is no dictionary
        seen += [row["key_id"] for row in page]
    assert seen == made[::-1]


@on_the_engine
async def test_the_first_key_is_only_made_while_no_admin_s_key_is_alive(engine: Engine) -> None:
    async def bootstrap() -> str | None:
        row = await keys.create_first(engine.pool, keys.new_key(), role="admin", user_id="root", created_by="bootstrap")
        return None if row is None else str(row["key_id"])

    await keys.create(engine.pool, keys.new_key(), role="user", user_id="ann")
    first = await bootstrap()
    assert first is not None
    assert await bootstrap() is None
    await keys.revoke(engine.pool, first)
    second = await bootstrap()
    assert second is not None
    await engine.sql("UPDATE api_keys SET expires_at = clock_timestamp() - interval '1 s'")
    assert await bootstrap() is not None
