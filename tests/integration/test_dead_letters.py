"""Dead tasks by kinds of errors: numbers and ids make no difference, words do."""

import pytest

from tests.support.engine.store import A_FAILURE, Engine, on_the_engine
from windlass.shared.store.reading import dead_letters
from windlass.shared.store.reading.listing import Filter

ALIKE = [
    ("task 01890000-0000-7000-8000-0000000000ab died", "task deadbeef-abcd-abcd-abcd-abcdefabcdef died"),
    ("no answer after 30 s", "no answer after 2.5 s"),
    ("GET https://api.test/v1/jobs/Ab3xK9/image: 503", "GET https://api.test/v1/jobs/77/image: 500"),
    ("worker host-17-9f3a died", "worker host-4-00c1 died"),
    ("at 2026-11-16T04:44:16.123+00:00 the connection broke", "at 2025-01-02T03:04:05Z the connection broke"),
    ("10.0.0.1:443 refused", "192.168.17.4:8080 refused"),
    ("job_12ab failed with 0xdeadbeef1", "job_99 failed with 0x12"),
]
DIFFERENT = [
    ("the prompt was rejected", "the image was rejected"),
    ("host a did not answer", "host b did not answer"),
]


async def die(engine: Engine, message: str, kind: str = "NetworkTimeout", **fields: str) -> str:
    attempt = await engine.running(**fields)
    await engine.finish(attempt, "bury", error={**A_FAILURE, "type": kind, "message": message})
    return str((await engine.row(attempt.task_id))["error_fingerprint"])


@pytest.mark.parametrize(("one", "other"), ALIKE)
@on_the_engine
async def test_errors_that_differ_in_numbers_and_ids_are_one_kind(engine: Engine, one: str, other: str) -> None:
    assert await die(engine, one) == await die(engine, other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
@on_the_engine
async def test_errors_that_differ_in_words_are_two_kinds(engine: Engine, one: str, other: str) -> None:
    assert await die(engine, one) != await die(engine, other)


@on_the_engine
async def test_kinds_are_counted_the_most_frequent_first(engine: Engine) -> None:
    for number in range(3):
        await die(engine, f"no answer after {number} s")
    await die(engine, "no answer after 4 s", kind="ServiceUnavailable")
    await die(engine, "no answer after 5 s", user_id="bob")
    revived = await engine.dead()
    await engine.revive(revived)
    dead = await engine.pool.fetch("SELECT * FROM tasks WHERE status = 'dead' ORDER BY task_id")

    first, second = await dead_letters.group_by_error(engine.pool, Filter(), limit=10)
    assert (first["error_type"], first["fingerprint"], first["count"]) == (
        "NetworkTimeout",
        "NetworkTimeout: no answer after # s",
        4,
    )
    assert (first["example_task_id"], first["message"]) == (dead[-1]["task_id"], "no answer after 5 s")
    assert (first["oldest_at"], first["newest_at"]) == (dead[0]["completed_at"], dead[-1]["completed_at"])
    assert (second["error_type"], second["count"]) == ("ServiceUnavailable", 1)

    (own,) = await dead_letters.group_by_error(engine.pool, Filter(), owner="bob", limit=10)
    assert (own["count"], own["example_task_id"]) == (1, dead[-1]["task_id"])
    assert len(await dead_letters.group_by_error(engine.pool, Filter(), limit=1)) == 1
    assert await dead_letters.group_by_error(engine.pool, Filter(status=["completed"]), limit=1) == []
