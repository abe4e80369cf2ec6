"""Lists of tasks: newest first, stable while rows arrive, by any combination of filters."""

import itertools
import random
import re
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import msgspec
import pytest
from asyncpg import Record as Row

from tests.support.engine.store import A_FAILURE, RULES, Engine, a_submission, an_ending, on_the_engine
from windlass.shared import db
from windlass.shared.filters import Filter
from windlass.shared.settings import Settings
from windlass.shared.states import State
from windlass.shared.store import tasks
from windlass.shared.store.reading import listing
from windlass.shared.store.reading.listing import Selection
from windlass.shared.store.tasks import TASK_FIELDS, Claim, Claimed

PARENTS = [UUID(int=7), UUID(int=8)]
WORDS = ["golden city", "Winter Forest", "100% sure_thing", "back\\slash", "a robot"]
ERRORS = [("NetworkTimeout", "no answer from host 17"), ("ContentRejected", "the Forest was rejected")]


@asynccontextmanager
async def reading(engine: Engine) -> AsyncIterator[asyncpg.Pool]:
    """The pool that the api reads lists with."""
    pool = await db.open_reading_pool(Settings(database_url=engine.database_url), "test", most=2)
    try:
        yield pool
    finally:
        await pool.close()


async def listed(engine: Engine, limit: int = 500, before: UUID | None = None, **wanted: Any) -> list[UUID]:
    rows = await listing.newest(engine.pool, Filter(**wanted), before=before, limit=limit)
    return [row["task_id"] for row in rows]


async def a_random_history(engine: Engine, chance: random.Random, number: int) -> list[Row]:
    """Tasks of every kind in every state."""
    for name in ("probe", "slow", "odd"):
        await engine.provide(name, limit=None, actors=["probe", "media"])
    waiting = await engine.submit(user_id="bob", tags=["a"])
    submissions = [a_random_submission(chance, waiting) for _ in range(number)]
    for start in range(0, number, 40):
        await tasks.submit(engine.pool, submissions[start : start + 40])
    free = [each.task_id for each in submissions if not each.depends_on]
    claims = [Claim(task_id, uuid4()) for task_id in chance.sample(free, len(free) * 4 // 5)]
    attempts = [each for each in await tasks.claim(engine.pool, "worker-1", claims, 300) if isinstance(each, Claimed)]
    ways = ["complete", "complete", "retry", "bury", "stay"]
    endings = [
        an_ending(attempt, way, **({} if way == "complete" else {"error": a_random_error(chance)}))
        for attempt in attempts
        if (way := chance.choice(ways)) != "stay"
    ]
    await tasks.end(engine.pool, endings, RULES)
    for task_id in chance.sample(free, len(free) // 5):
        await engine.cancel(task_id)
    rows = await engine.pool.fetch("SELECT * FROM tasks ORDER BY task_id DESC")
    assert {row["status"] for row in rows} == set(State), "else not every state is tried"
    return rows


def a_random_submission(chance: random.Random, waiting: UUID) -> tasks.Submission:
    kind = chance.choice([{}, {"prompt": chance.choice(WORDS)}, {"content": chance.choice(WORDS)}])
    return a_submission(
        actor=chance.choice(["probe", "media"]),
        provider=chance.choice(["probe", "slow", "odd"]),
        user_id=chance.choice(["ann", "bob", "carol"]),
        tags=chance.choices(["a", "b", "c"], k=chance.randrange(5)),
        project_id=chance.choice([None, "p", "q"]),
        workflow_id=chance.choice([None, "w"]),
        workflow_run_id=chance.choice([None, "r"]),
        interaction_id=chance.choice([None, "i"]),
        parent_task_id=chance.choice([None, *PARENTS]),
        depends_on=[waiting] if chance.random() < 0.1 else [],
        payload=kind,
    )


def a_random_error(chance: random.Random) -> dict[str, Any]:
    kind, message = chance.choice(ERRORS)
    return {**A_FAILURE, "type": kind, "message": message}


def searched(row: Row) -> str:
    text = row["payload"].get("prompt", row["payload"].get("content", ""))[:300]
    return f"{text} {(row['error'] or {}).get('message', '')[:300]}".lower()


MEANINGS: dict[str, Callable[[Row, Any], bool]] = {
    "status": lambda row, value: row["status"] in value,
    "tag": lambda row, value: set(value) <= set(row["tags"]),
    "error_type": lambda row, value: (row["error"] or {}).get("type") == value,
    "fingerprint": lambda row, value: row["error_fingerprint"] == value,
    "created_after": lambda row, value: row["created_at"] > value,
    "created_before": lambda row, value: row["created_at"] < value,
    "updated_after": lambda row, value: row["updated_at"] > value,
    "q": lambda row, value: value.lower() in searched(row),
}


def means(row: Row, wanted: dict[str, Any]) -> bool:
    """The filters once more, in the plainest words."""
    return all(MEANINGS[name](row, value) if name in MEANINGS else row[name] == value for name, value in wanted.items())


def values_to_try(rows: list[Row]) -> dict[str, list[Any]]:
    times = sorted(row["created_at"] for row in rows)
    changes = sorted(row["updated_at"] for row in rows)
    return {
        "status": [[state] for state in State] + [["queued", "dead"], ["completed", "dead", "cancelled"], []],
        "actor": ["probe", "media", "nobody"],
        "provider": ["slow", "odd", "nobody"],
        "lane": ["fresh", "retry"],
        "user_id": ["ann", "carol", "nobody", "' OR true --"],
        "tag": [["a"], ["b", "a"], ["a", "a"], ["a", "b", "c"], ["a", "b", "a", "c"], ["{a,b}"], []],
        "project_id": ["p", "nothing"],
        "workflow_id": ["w"],
        "workflow_run_id": ["r"],
        "interaction_id": ["i"],
        "parent_task_id": PARENTS,
        "error_type": ["NetworkTimeout", "ContentRejected", "NotFound"],
        "fingerprint": ["NetworkTimeout: no answer from host #"],
        "created_after": [times[0], times[len(times) // 2], times[-1]],
        "created_before": [times[0], times[len(times) // 2], times[-1]],
        "updated_after": [changes[0], changes[len(changes) // 2], changes[-1]],
        "q": ["forest", "CITY", "100%", "sure_thing", "sureXthing", "k\\s", "host 17", "nowhere"],
    }


@on_the_engine
async def test_every_filter_alone_and_in_pairs_finds_what_it_means(engine: Engine) -> None:
    chance = random.Random(20)
    rows = await a_random_history(engine, chance, 240)
    values = values_to_try(rows)
    tries = [{name: value} for name, some in values.items() for value in some]
    tries += [{one: chance.choice(values[one]), other: chance.choice(values[other])}
              for one, other in itertools.combinations(values, 2)]  # fmt: skip
    tries += [{name: chance.choice(values[name]) for name in chance.sample(list(values), 3)} for _ in range(40)]
    found = 0
    async with reading(engine) as lists:
        for wanted in tries:
            expected = [row["task_id"] for row in rows if means(row, wanted)]
            page = await listing.newest(lists, Filter(**wanted), limit=500)
            assert [row["task_id"] for row in page] == expected, wanted
            first = await listing.newest(lists, Filter(**wanted), limit=5, before=rows[30]["task_id"])
            later = [task_id for task_id in expected if task_id < rows[30]["task_id"]]
            assert [row["task_id"] for row in first] == later[:5], wanted
            found += bool(expected)
    assert found > len(tries) / 2, "else the tries say little"


@on_the_engine
async def test_an_owner_is_shown_his_own_tasks_whatever_the_filter_says(engine: Engine) -> None:
    own = await engine.submit(user_id="ann", tags=["a"])
    await engine.submit(user_id="bob", tags=["a"])
    rows = await listing.newest(engine.pool, Filter(tag=["a"]), owner="ann", limit=10)
    assert [row["task_id"] for row in rows] == [own]
    assert await listing.newest(engine.pool, Filter(user_id="bob"), owner="ann", limit=10) == []


@on_the_engine
async def test_pages_follow_each_other_while_rows_arrive_and_change_their_state(engine: Engine) -> None:
    first = await engine.submit_many(15) + [await engine.dead() for _ in range(5)] + await engine.submit_many(15)
    seen: list[UUID] = []
    while page := await listed(engine, limit=4, before=seen[-1] if seen else None):
        seen += page
        await engine.submit_many(3)
        await engine.cancel(page[-1])
        for task_id in first[: len(page)]:
            await engine.cancel(task_id)
            await engine.revive(task_id)
    assert seen == first[::-1]


@on_the_engine
async def test_times_are_bounds_that_are_not_included(engine: Engine) -> None:
    first, second, third = [await engine.submit() for _ in range(3)]
    created = (await engine.row(second))["created_at"]
    assert await listed(engine, created_after=created) == [third]
    assert await listed(engine, created_before=created) == [first]
    await engine.start(first)
    updated = (await engine.row(first))["updated_at"]
    assert await listed(engine, updated_after=updated - timedelta(microseconds=1)) == [first]


@pytest.mark.parametrize("skew", [timedelta(minutes=-50), timedelta(minutes=50)])
@on_the_engine
async def test_a_clock_that_is_wrong_by_less_than_an_hour_hides_nothing(engine: Engine, skew: timedelta) -> None:
    """Ids begin with the time of the api that made them up, and are used as a bound beside the exact condition."""
    submission = a_submission()
    wrong = submission.task_id.int + (int(skew.total_seconds() * 1000) << 80)
    await tasks.submit(engine.pool, [a_submission(), msgspec.structs.replace(submission, task_id=UUID(int=wrong))])
    created = (await engine.row(UUID(int=wrong)))["created_at"]
    assert len(await listed(engine, created_after=created - timedelta(seconds=1))) == 2
    assert len(await listed(engine, created_before=created + timedelta(seconds=1))) == 2


@on_the_engine
async def test_a_page_carries_payloads_and_stack_traces_only_when_it_is_asked_to(engine: Engine) -> None:
    await engine.dead(payload={"prompt": "p"})
    (light,) = await listing.newest(engine.pool, Filter(), limit=1)
    (full,) = await listing.whole(engine.pool, [light.task_id])
    assert (light["payload"], light["error"].get("stack_trace")) == (None, None)
    assert (full["payload"], full["error"]["stack_trace"]) == ({"prompt": "p"}, "Traceback: …")
    assert dict(full) == {**dict(full), **{k: v for k, v in dict(light).items() if k not in {"payload", "error"}}}


@on_the_engine
async def test_a_page_has_titles_and_reads_no_large_payload_for_them(engine: Engine) -> None:
    payloads: list[dict[str, Any]] = [
        {"prompt": "a golden city " * 20, "content": "no"},
        {"style": "aquarelle", "content": "Once upon a time"},
        {"seconds": 2, "result": "<img src=x>"},
        {"seconds": 2},
        {"prompt": secrets.token_hex(listing.LARGEST_TITLED)},
    ]
    for payload in payloads:
        await engine.submit(payload=payload)
    light = await listing.newest(engine.pool, Filter(), limit=9)
    for rows in (light, await listing.whole(engine.pool, [row.task_id for row in light])):
        titles = [row.title for row in rows]
        assert titles[::-1] == [("a golden city " * 20)[:120], "Once upon a time", "<img src=x>", None, None]


@on_the_engine
async def test_tasks_are_found_by_what_the_provider_calls_the_work(engine: Engine) -> None:
    await engine.provide("probe", limit=None)
    task_id, _ = await engine.submit(), await engine.submit()
    await engine.sql(
        """
        INSERT INTO generations (generation_id, task_id, attempt, user_id, provider, operation, status, request,
                                 provider_job_id, callback_hash, created_at, updated_at)
        VALUES ($1, $1, 1, 'ann', 'probe', 'generate', 'open', '{}', 'job-7', 'x', now(), now())
        """,
        task_id,
    )
    assert await listed(engine, provider_job_id="job-7") == [task_id]
    assert await listed(engine, provider_job_id="job-7", status=[State.COMPLETED]) == []
    assert await listed(engine, provider_job_id="job-8") == []


@on_the_engine
async def test_tasks_are_found_by_the_request_that_submitted_them(engine: Engine) -> None:
    mine, also_mine = await engine.submit(request_id="mine"), await engine.submit(request_id="mine")
    nobody_s = await engine.submit()
    assert await listed(engine, request_id="mine") == [also_mine, mine]
    assert await listed(engine, request_id=nobody_s.hex) == [nobody_s], "what the api called it"
    assert await listed(engine, request_id=str(nobody_s)) == []
    assert "request_id" not in TASK_FIELDS
    await engine.submit_many(300)
    await engine.sql("ANALYZE tasks")
    selection = Selection(Filter(request_id=nobody_s.hex))
    async with engine.pool.acquire() as connection, connection.transaction():
        await connection.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off")
        plan = await connection.fetch(f"EXPLAIN {selection.page('*', order='DESC', limit=9)}", *selection.values)
    assert {"BitmapOr", "tasks_request"} <= set(re.findall(r"\w+", str(plan))), "each half by an index of its own"


@on_the_engine
async def test_the_error_of_every_attempt_is_told(engine: Engine) -> None:
    task_id, clean = await engine.submit(), await engine.completed()
    for kind in ("first", "second"):
        await engine.finish(await engine.start(task_id), "retry", error={**A_FAILURE, "type": kind})
        await engine.become_due(task_id)
    attempt = await engine.start(task_id)
    await engine.lapse(task_id)
    await tasks.stall(engine.pool)
    await engine.become_due(task_id)
    attempt = await engine.start(task_id)
    await engine.finish(attempt, "bury", error={**A_FAILURE, "type": "last"})
    histories = await listing.error_histories(engine.pool, [task_id, clean])
    assert [error["type"] for error in histories[task_id]] == ["first", "second", "WorkerLost", "last"]
    assert all(error["at"] and "stack_trace" in error for error in histories[task_id])
    assert histories[clean] == []


@on_the_engine
async def test_new_texts_are_found_before_and_after_they_are_sorted_in(engine: Engine) -> None:
    await engine.sql("ALTER TABLE tasks SET (autovacuum_enabled = off)")  # it would sort them in when it pleases
    meant = await engine.completed(payload={"prompt": "a zeppelin over the harbour"})
    await engine.completed(payload={"prompt": "nothing"})
    pending = "SELECT pending_tuples FROM pgstatginindex('tasks_finished_text')"
    async with reading(engine) as lists:
        await lists.execute("CREATE EXTENSION IF NOT EXISTS pgstattuple")
        try:
            assert await lists.fetchval(pending) >= 2
            for _ in range(2):
                rows = await listing.newest(lists, Filter(q="zeppelin"), limit=10)
                assert [row["task_id"] for row in rows] == [meant]
                await listing.sort_in_new_texts(lists)
            assert await lists.fetchval(pending) == 0
        finally:
            await lists.execute("DROP EXTENSION pgstattuple")
            await engine.sql("ALTER TABLE tasks RESET (autovacuum_enabled)")


@pytest.mark.parametrize(
    ("wanted", "index"),
    [(Filter(task_type="rare"), "tasks_finished_type"), (Filter(subagent_type="rare"), "tasks_finished_agent")],
)
@on_the_engine
async def test_a_rare_word_in_a_long_history_is_looked_up(engine: Engine, wanted: Filter, index: str) -> None:
    await engine.sql(
        """
        INSERT INTO tasks (task_id, actor, provider, task_type, payload, status, completed_at, user_id, timeout_seconds)
        SELECT gen_random_uuid(), CASE n % 2 WHEN 0 THEN 'agent' ELSE 'probe' END, 'probe', 'common',
               jsonb_build_object('subagent_type', 'common', 'prompt', repeat('x', 300)), 'completed', now(), 'ann', 1
        FROM generate_series(1, 3000) AS n
        """
    )
    await engine.sql("ANALYZE tasks")
    selection = listing.Selection(wanted)
    query = selection.page("task_id", order="DESC", limit=50)
    plan = "\n".join(row[0] for row in await engine.pool.fetch(f"EXPLAIN {query}", *selection.values))
    assert index in plan
    assert "Seq Scan" not in plan
