"""The audit log: entries in the order in which they were made, the latest first, by action and by who."""

from tests.support.engine.store import Engine, on_the_engine
from windlass.shared.store.access import audit


async def entries(engine: Engine, *, action: str | None = None, user_id: str | None = None) -> list[str | None]:
    seen: list[str | None] = []
    before: int | None = None
    while page := await audit.newest(engine.pool, action=action, user_id=user_id, before=before, limit=2):
        seen += [row["target"] for row in page]
        before = page[-1]["audit_id"]
    return seen


@on_the_engine
async def test_entries_are_read_in_pages_and_filtered(engine: Engine) -> None:
    for number in range(6):
        await audit.record(
            engine.pool,
            key_id="k1",
            user_id="root" if number % 2 else "ann",
            action="key.create" if number < 3 else "key.revoke",
            target=str(number),
            details={"number": number},
        )
    assert await entries(engine) == ["5", "4", "3", "2", "1", "0"]
    assert await entries(engine, action="key.revoke") == ["5", "4", "3"]
    assert await entries(engine, user_id="root") == ["5", "3", "1"]
    assert await entries(engine, action="key.create", user_id="ann") == ["2", "0"]


@on_the_engine
async def test_an_entry_says_who_did_what_to_what_and_when(engine: Engine) -> None:
    await audit.record(engine.pool, key_id="k1", user_id="root", action="bulk.start", details={"matched": 3})
    (row,) = await audit.newest(engine.pool, action=None, user_id=None, before=None, limit=5)
    assert set(row.keys()) == {"audit_id", "at", "key_id", "user_id", "action", "target", "details"}
    assert (row["key_id"], row["action"], row["target"], row["details"]) == ("k1", "bulk.start", None, {"matched": 3})
