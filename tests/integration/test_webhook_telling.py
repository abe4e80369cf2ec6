"""Events become deliveries: one for each endpoint that subscribes to the event."""

import re
from statistics import median
from typing import NamedTuple

import asyncpg
import pytest

from tests.integration.test_project_plain_ends import CALLED, END
from tests.support.engine.projects import Project
from tests.support.engine.store import RULES, Engine, an_ending, on_the_engine
from tests.support.engine.webhooks import Endpoint, a_key, by_name, catch_up, ready, told_of
from tests.support.engine.workflows import a_workflow
from windlass.shared import db
from windlass.shared.features.webhooks import endpoints
from windlass.shared.features.workflows import operations as workflows
from windlass.shared.features.workflows.operations import Resumption
from windlass.shared.store import tasks
from windlass.shared.store.functions import named
from windlass.shared.store.tasks import Claimed

READ = """
SELECT relname FROM pg_stat_xact_user_tables
WHERE relname IN ('webhooks', 'webhook_bodies', 'deliveries') AND coalesce(idx_tup_fetch, 0) + seq_tup_read > 0
"""


@on_the_engine
async def test_every_end_of_a_task_is_told_and_every_retry(engine: Engine) -> None:
    await ready(engine)
    endpoint = await Endpoint.made(engine, "task.*")
    done = await engine.completed(**told_of(tags=["blue"]))
    await engine.dead(**told_of())
    await engine.cancel(await engine.submit(**told_of()))
    again = await engine.running(**told_of())
    await engine.finish(again, "retry")
    await engine.finish(await engine.running(**told_of()), "interrupt")
    told = await endpoint.told()
    assert [kind for kind, _ in told] == ["task.completed", "task.dead", "task.cancelled", "task.retrying"]
    first, died = told[0][1], told[1][1]
    assert (first["task_id"], first["status"], first["life"], first["tags"]) == (str(done), "completed", 1, ["blue"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", first["completed_at"])
    assert died["error"] == {"type": "ServiceUnavailable", "kind": "transient", "message": "busy", "attempt": 1}
    assert "payload" not in first
    carriers = [await engine.row(each.task_id) for each in await endpoint.deliveries()]
    assert {(row.actor, row.provider, row.concurrency_key) for row in carriers} == {
        ("webhook", "http", str(endpoint.webhook_id))
    }


@on_the_engine
async def test_ends_by_cascade_expiry_and_a_lost_worker_are_told(engine: Engine) -> None:
    await ready(engine)
    endpoint = await Endpoint.made(engine, "task.dead", "task.retrying")
    parent = await engine.running(**told_of())
    await engine.submit(**told_of(depends_on=[parent.task_id]))
    await engine.finish(parent, "bury")
    old = await engine.submit(**told_of(max_age_seconds=60))
    await engine.outlive(old)
    await tasks.expire(engine.pool)
    lost = await engine.running(**told_of())
    await engine.lapse(lost.task_id)
    await tasks.stall(engine.pool)
    said = [(kind, data["error"]["type"]) for kind, data in await endpoint.told()]
    assert sorted(said) == [
        ("task.dead", "DependencyFailed"),
        ("task.dead", "Expired"),
        ("task.dead", "ServiceUnavailable"),
        ("task.retrying", "WorkerLost"),
    ]


@on_the_engine
async def test_a_task_that_lives_twice_is_told_twice_under_two_ids(engine: Engine) -> None:
    await ready(engine)
    endpoint = await Endpoint.made(engine, "task.*")
    task_id = await engine.dead(**told_of())
    await engine.revive(task_id)
    await engine.finish(await engine.start(task_id))
    told = await endpoint.told()
    assert [(kind, data["life"]) for kind, data in told] == [("task.dead", 1), ("task.completed", 2)]
    assert len({each.delivery_id for each in await endpoint.deliveries()}) == 2


@on_the_engine
async def test_who_hears_what(engine: Engine) -> None:
    await ready(engine)
    own = await Endpoint.made(engine, "task.completed")
    all_of_it = await Endpoint.made(engine, "task.completed", user_id="root", scope="all")
    narrow = await Endpoint.made(engine, "task.completed", user_id="root", scope="own")
    foreign = await Endpoint.made(engine, "task.*", user_id="bob")
    tagged = await Endpoint.made(engine, "task.*", filter={"tag": "blue", "actor": "summarize"})
    deaf = await Endpoint.made(engine, "workflow.*")
    await engine.completed(**told_of())
    await engine.completed(**told_of(tags=["blue"]))
    heard = [len(await each.deliveries()) for each in (own, all_of_it, narrow, foreign, tagged, deaf)]
    assert heard == [2, 2, 0, 0, 1, 0]
    bodies: int = await engine.pool.fetchval("SELECT count(*) FROM webhook_bodies")
    assert bodies == 2, "each is stored once, however many hear it"
    late = await Endpoint.made(engine, "task.*")
    assert await late.deliveries() == []


@on_the_engine
async def test_silent_actors_and_deliveries_tell_nobody(engine: Engine) -> None:
    await ready(engine)
    endpoint = await Endpoint.made(engine, "task.*", user_id="root", scope="all")
    await engine.completed()
    assert await endpoint.deliveries() == [], "a probe"
    await engine.completed(**told_of())
    (delivery,) = await endpoint.deliveries()
    await endpoint.answer(delivery, 500)
    await endpoint.answer(delivery, 200)
    assert await endpoint.states() == ["delivered"], "its own task is told of to nobody"


@on_the_engine
async def test_a_task_that_names_an_url_makes_an_endpoint_once(engine: Engine) -> None:
    await ready(engine)
    await a_key(engine, "ann")
    first = await engine.running(**by_name())
    second = await engine.running(**by_name())
    one, other = await engine.row(first.task_id), await engine.row(second.task_id)
    assert one.webhook_id == other.webhook_id
    assert one.webhook_id is not None
    endpoint = Endpoint(engine, one.webhook_id)
    assert (await endpoint.row()).events == []
    await engine.finish(first, "retry")
    assert await endpoint.deliveries() == [], "its end is what was asked for"
    await engine.finish(await _again(engine, first))
    await engine.cancel(second.task_id)
    await engine.finish(second, "interrupt")
    assert [kind for kind, _ in await endpoint.told()] == ["task.completed", "task.cancelled"]
    plain = await engine.completed(**told_of())
    assert (await engine.row(plain)).webhook_id is None
    assert len(await endpoint.deliveries()) == 2, "it subscribes to nothing else"


async def _again(engine: Engine, attempt: Claimed) -> Claimed:
    await engine.become_due(attempt.task_id)
    return await engine.start(attempt.task_id)


@on_the_engine
async def test_an_url_that_is_subscribed_is_that_endpoint_and_told_once(engine: Engine) -> None:
    await ready(engine)
    endpoint = await Endpoint.made(engine, "task.*", url="https://example.org/hook")
    await engine.completed(**told_of(**by_name()))
    assert [kind for kind, _ in await endpoint.told()] == ["task.completed"]


@on_the_engine
async def test_large_results_are_links_and_no_body_is_too_long(engine: Engine) -> None:
    await ready(engine)
    endpoint = await Endpoint.made(engine, "task.completed")
    small = await engine.running(**told_of())
    await engine.finish(small, result={"summary": "short"})
    large = await engine.running(**told_of(tags=["t" * 200 + str(number) for number in range(200)]))
    await engine.finish(large, result={"summary": "long " * 2000})
    (_, first), (_, second) = await endpoint.told()
    assert first["result"] == {"summary": "short"}
    assert second["result_url"] == f"/api/v1/tasks/{large.task_id}"
    assert second["truncated"] is True
    assert "result" not in second
    assert all(len(each.body.encode()) <= 20_000 for each in await endpoint.deliveries())


@on_the_engine
async def test_projects_workflows_and_providers_are_told_of(engine: Engine) -> None:
    await ready(engine)
    own = await Endpoint.made(engine, "project.*", "workflow.*", "provider.*")
    everything = await Endpoint.made(engine, "provider.*", user_id="root", scope="all")
    project = await Project.made(engine, "one")
    await project.start()
    await engine.finish(await project.claimed())
    assert await project.state() == ("idle", "finished")
    flow = await a_workflow(engine, {"a": []})
    await flow.finish("a", "bury")
    assert await flow.status() == "failed"
    for change in ({"paused": True}, {"paused": False}, {"breaker": "open"}, {"breaker": "auto"}):
        await engine.pool.execute(
            f"SELECT {named('change_provider')}('openrouter', $1::text::jsonb)", db.as_json(change)
        )
    assert [kind for kind, _ in await own.told()] == ["project.started", "project.stopped", "workflow.failed"]
    assert [kind for kind, _ in await everything.told()] == [
        "provider.paused", "provider.resumed", "provider.breaker-opened", "provider.breaker-closed",
    ]  # fmt: skip


@on_the_engine
async def test_whoever_waits_for_a_word_is_told_of_each_time(engine: Engine) -> None:
    await ready(engine)
    endpoint = await Endpoint.made(engine, "approval.requested")
    asking = {**told_of(), "approval": {"message": "publish it?", "expires_in_seconds": 60.0}}
    at_once = await engine.submit(**asking)
    parent = await engine.running()
    later = await engine.submit(depends_on=[parent.task_id], **asking)
    assert len(await endpoint.deliveries()) == 1, "the other waits for somebody first"
    await engine.finish(parent)
    await engine.cancel(at_once)
    await engine.revive(at_once)
    told = await endpoint.told()
    assert [(data["task_id"], data["life"]) for _, data in told] == [
        (str(at_once), 1),
        (str(later), 1),
        (str(at_once), 2),
    ]
    assert (told[0][1]["message"], told[0][1]["status"]) == ("publish it?", "blocked")
    assert told[0][1]["expires_at"].endswith("Z")


@on_the_engine
async def test_every_standstill_of_a_workflow_is_told(engine: Engine) -> None:
    await ready(engine)
    endpoint = await Endpoint.made(engine, "workflow.*")
    done = await a_workflow(engine, {"a": []})
    await done.finish("a")
    assert await done.status() == "completed"
    stopped = await a_workflow(engine, {"a": [], "b": []}, failure_threshold=1)
    await stopped.finish("a", "bury")
    assert await stopped.status() == "escalated"
    await workflows.cancel(engine.pool, stopped.workflow_id)
    told = await endpoint.told()
    assert [kind for kind, _ in told] == ["workflow.completed", "workflow.escalated", "workflow.cancelled"]
    assert told[1][1]["counts"] == {"total": 2, "live": 1, "completed": 0, "dead": 1, "cancelled": 0}
    assert [data["workflow_id"] for _, data in told] == [
        str(done.workflow_id), str(stopped.workflow_id), str(stopped.workflow_id),
    ]  # fmt: skip


@on_the_engine
async def test_an_escalation_that_a_cancel_or_a_resume_finds_is_told_too(engine: Engine) -> None:
    await ready(engine)
    endpoint = await Endpoint.made(engine, "workflow.*")
    for mode in (None, Resumption.NONE):
        flow = await a_workflow(engine, {"a": [], "b": []}, failure_threshold=1)
        await flow.finish("a", "bury")
        if mode is None:
            await workflows.cancel(engine.pool, flow.workflow_id)
        else:
            await workflows.resume(engine.pool, flow.workflow_id, mode)
        assert (await flow.story())[1] == "escalate"
    kinds = [kind for kind, _ in await endpoint.told()]
    assert sorted(kinds) == ["workflow.cancelled", "workflow.escalated", "workflow.escalated"]
    escalated = next(data for kind, data in await endpoint.told() if kind == "workflow.escalated")
    assert escalated["counts"] == {"total": 2, "live": 1, "completed": 0, "dead": 1, "cancelled": 0}
    assert escalated["completed_at"] is None


@on_the_engine
async def test_a_failing_subscriber_fails_no_end_and_delivers_later(engine: Engine) -> None:
    await ready(engine)
    endpoint = await Endpoint.made(engine, "task.*", "workflow.*")
    await engine.sql("ALTER TABLE webhook_bodies ADD CONSTRAINT fault CHECK (body IS NULL)")
    try:
        task_id = await engine.completed(**told_of())
        flow = await a_workflow(engine, {"a": []})
        await engine.finish(await flow.start("a"))
        assert (await engine.status(task_id), await flow.status()) == ("completed", "completed")
        assert await endpoint.deliveries() == []
    finally:
        await engine.sql("ALTER TABLE webhook_bodies DROP CONSTRAINT fault")
    await Endpoint.made(engine, "task.*", "workflow.*", url="https://example.org/late")
    await engine.sql("UPDATE outbox_subjects SET next_try_at = clock_timestamp()")
    assert sorted(kind for kind, _ in await endpoint.told()) == ["task.completed", "workflow.completed"]
    number: int = await engine.pool.fetchval("SELECT count(*) FROM deliveries")
    assert number == 2, "an endpoint that was created later receives nothing of it"


class TakenByAnEnd(NamedTuple):
    called: set[str]
    touched: set[str]
    pages: int


async def taken_by_ends(engine: Engine, *attempts: Claimed) -> list[list[TakenByAnEnd]]:
    """Each several times over and taken back, in turns: what that leaves behind, and who vacuums it, hits all alike.
    The first turn, for which nothing is warm, tells nothing."""
    connection = await asyncpg.connect(engine.database_url, server_settings={"track_functions": "all"})
    endings = [(db.as_json([an_ending(attempt, "complete")]), db.as_json(RULES)) for attempt in attempts]
    try:
        turns = [[await _taken_by(connection, ending) for ending in endings] for _ in range(8)]
        return turns[1:]
    finally:
        await connection.close()


async def _taken_by(connection: asyncpg.Connection, ending: tuple[str, str]) -> TakenByAnEnd:
    transaction = connection.transaction()
    await transaction.start()
    plan = await connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {END}", *ending)
    called = {row["funcname"] for row in await connection.fetch(CALLED)}
    touched = {row["relname"] for row in await connection.fetch(READ)}
    await transaction.rollback()
    blocks = re.findall(r"Shared (?:Hit|Read) Blocks\": (\d+)", plan)[:2]
    return TakenByAnEnd(called, touched, sum(map(int, blocks)))


@pytest.mark.parametrize("made_by_url", [0, 200])
@on_the_engine
async def test_with_no_subscription_an_end_takes_two_more_pages_at_most(engine: Engine, made_by_url: int) -> None:
    """A probe's end does not even ask."""
    await ready(engine)
    for number in range(made_by_url):
        await Endpoint.made(engine, url=f"https://example.org/{number}")
    silent, heard = await engine.running(), await engine.running(**told_of())
    await engine.sql("ANALYZE")  # now, and not in the middle by the autovacuum, after which plans are others
    turns = await taken_by_ends(engine, silent, heard)
    for of_silent, of_heard in turns:
        assert (of_heard.called, of_heard.touched) == (of_silent.called, set())
    assert median(of_heard.pages - of_silent.pages for of_silent, of_heard in turns) <= 2
    await Endpoint.made(engine, "task.*")
    *_, (told,) = await taken_by_ends(engine, await engine.running(**told_of()))
    assert {"write_outbox"} <= told.called, "the same measure sees a subscription"
    assert told.touched == set(), "the end of a task writes nothing of a webhook"


@on_the_engine
async def test_a_deleted_endpoint_is_told_nothing_more(engine: Engine) -> None:
    await ready(engine)
    endpoint = await Endpoint.made(engine, "task.*")
    await engine.completed(**told_of())
    await catch_up(engine)
    await endpoints.delete(engine.pool, endpoint.webhook_id)
    await engine.completed(**told_of())
    (delivery,) = await endpoint.deliveries()
    assert (delivery.state, delivery.reason) == ("failed", "deleted")
    assert await engine.status(delivery.task_id) == "cancelled"
    assert await endpoints.redeliver(engine.pool, delivery.delivery_id) == "webhook-deleted"
