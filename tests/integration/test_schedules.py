"""Schedules: every due time has its row, and starts at most once, whoever looks and whenever."""

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest

from tests.support.engine.projects import Project
from tests.support.engine.schedules import HOUR, NOON, Schedule, a_key_for, a_task, a_workflow, look, started, wanted
from tests.support.engine.store import A_FAILURE, Engine, on_the_engine
from windlass.shared.features.handling import handle_pending
from windlass.shared.features.schedules import changing, firing
from windlass.shared.features.schedules.subscriber import SCHEDULES
from windlass.shared.features.workflows import operations
from windlass.shared.schedules.words import Cause, Overlap
from windlass.shared.store import outbox
from windlass.shared.store.access import keys
from windlass.shared.store.schedules import reading
from windlass.shared.store.workflows import reading as workflows


@on_the_engine
async def test_a_due_time_starts_a_task_that_knows_its_schedule(engine: Engine) -> None:
    schedule = await Schedule.made(engine)
    assert await schedule.after(HOUR / 2) == []
    (decided,) = await schedule.after(HOUR / 2)
    assert (decided.outcome, decided.kind) == ("started", "task")
    row = await engine.row(await schedule.task())
    assert (row.schedule_id, row.user_id, row.status) == (schedule.schedule_id, "ann", "queued")
    assert (await schedule.row()).next_at == NOON + 2 * HOUR
    assert await schedule.after(HOUR / 60) == [], "once"
    assert await schedule.told() == [(1, "started", None)]


@on_the_engine
async def test_three_who_look_at_once_start_it_once(engine: Engine) -> None:
    for number in range(20):
        await Schedule.made(engine, f"number {number}", overlap="allow")
    for hour in (1, 2, 3):
        await asyncio.gather(*(look(engine, NOON + hour * HOUR) for _ in range(3)))
        assert await started(engine) == 20 * hour


@on_the_engine
async def test_who_planned_before_somebody_else_was_quicker_writes_nothing(engine: Engine) -> None:
    """Frozen between the look and the call, and thawed when it is long over."""
    schedule = await Schedule.made(engine, overlap="allow")
    (seen,) = await firing.due_now(engine.pool, now=NOON + HOUR, at_most=10)
    late = firing.planned(seen)
    await schedule.after(HOUR)
    assert await firing.fire(engine.pool, late) == []
    await schedule.after(HOUR)
    assert await firing.fire(engine.pool, late) == []
    assert await started(engine) == 2


@on_the_engine
async def test_the_row_is_the_fence_even_where_the_schedule_forgot(engine: Engine) -> None:
    """A restored row, time zone data of another year: what has its row is not started again."""
    schedule = await Schedule.made(engine, overlap="allow")
    await schedule.after(HOUR)
    await engine.sql(f"UPDATE schedules SET last_due_at = '{NOON}', next_at = '{NOON + HOUR}'")
    await look(engine, schedule.now)
    assert await started(engine) == 1
    assert len(await schedule.runs()) == 1


@on_the_engine
async def test_who_dies_in_the_middle_leaves_nothing_half_done(engine: Engine) -> None:
    """It is one transaction: the connection is cut while somebody else holds it up, and the next one does it."""
    schedule = await Schedule.made(engine)
    (seen,) = await firing.due_now(engine.pool, now=NOON + HOUR, at_most=10)
    async with engine.pool.acquire() as holder, holder.transaction():
        await holder.execute("LOCK TABLE schedule_runs IN EXCLUSIVE MODE")
        async with engine.pool.acquire() as dying:
            pid = await dying.fetchval("SELECT pg_backend_pid()")
            call = asyncio.ensure_future(firing.fire(dying, firing.planned(seen)))
            await engine.until_waiting(1)
            await holder.fetchval("SELECT pg_terminate_backend($1)", pid)
            with pytest.raises(Exception, match=r"terminat|closed"):
                await call
    assert await started(engine) == 0
    await schedule.after(HOUR)
    assert await schedule.told() == [(1, "started", None)]


@on_the_engine
async def test_a_clock_that_jumps_an_hour_either_way_doubles_nothing_and_leaves_nothing_out(engine: Engine) -> None:
    schedule = await Schedule.made(engine, overlap="allow", catch_up="all")
    await schedule.after(HOUR)
    await schedule.after(-HOUR)
    await schedule.after(HOUR)
    await schedule.after(2 * HOUR)
    assert await schedule.told() == [(1, "started", None), (2, "started", None), (3, "started", None)]


@pytest.mark.parametrize(("catch_up", "caught_up"), [("none", []), ("latest", [24]), ("all", [22, 23, 24])])
@on_the_engine
async def test_after_a_days_downtime(engine: Engine, catch_up: str, caught_up: list[int]) -> None:
    schedule = await Schedule.made(engine, overlap="allow", catch_up=catch_up, catch_up_window_seconds=3 * 3600)
    await schedule.after(24 * HOUR + HOUR / 2)
    told = await schedule.told()
    assert [hour for hour, _, _ in told] == list(range(1, 25)), "every due time has its row"
    assert [hour for hour, outcome, _ in told if outcome == "started"] == caught_up
    assert {outcome for hour, outcome, _ in told if hour not in caught_up} == {"missed"}
    assert await started(engine) == len(caught_up)


@on_the_engine
async def test_skip_leaves_a_due_time_out_while_the_last_one_lives_and_says_so(engine: Engine) -> None:
    schedule = await Schedule.made(engine)
    await schedule.after(HOUR)
    await schedule.after(HOUR)
    await schedule.finish("bury", error=A_FAILURE)
    await engine.revive(await schedule.task())
    await schedule.after(HOUR)
    await schedule.finish()
    await schedule.after(HOUR)
    assert await schedule.told() == [
        (1, "started", None),
        (2, "skipped", "previous-live"),
        (3, "skipped", "previous-live"),
        (4, "started", None),
    ]


@on_the_engine
async def test_queue_one_starts_the_one_that_waits_when_the_last_one_has_ended(engine: Engine) -> None:
    schedule = await Schedule.made(engine, overlap="queue-one")
    for _ in range(3):
        await schedule.after(HOUR)
    assert await schedule.told() == [
        (1, "started", None),
        (2, "waiting", "previous-live"),
        (3, "skipped", "another-waits"),
    ]
    assert await schedule.settle() == []
    await schedule.finish()
    (decided,) = await schedule.settle()
    assert decided.outcome == "started"
    assert [outcome for _, outcome, _ in await schedule.told()] == ["started", "started", "skipped"]
    assert await started(engine) == 2
    assert [each.ended_as for each in await schedule.runs()] == ["completed", None, None]


@on_the_engine
async def test_cancel_previous_starts_when_the_last_one_has_verifiably_ended(engine: Engine) -> None:
    schedule = await Schedule.made(engine, overlap="cancel-previous")
    await schedule.after(HOUR)
    await schedule.after(HOUR)
    assert [outcome for _, outcome, _ in await schedule.told()] == ["started", "started"], "nobody had taken it"
    hanging = await engine.start(await schedule.task())
    await schedule.after(HOUR)
    await schedule.after(HOUR)
    assert (await schedule.told())[2:] == [(3, "skipped", "superseded"), (4, "waiting", "previous-stopping")]
    assert (await engine.row(hanging.task_id)).cancel_requested
    assert await schedule.settle() == [], "asked for, and not stopped"
    await engine.finish(hanging, "interrupt")
    await schedule.settle()
    assert (await schedule.told())[3:] == [(4, "started", None)]
    assert await started(engine) == 3


@on_the_engine
async def test_every_overlap_beside_a_task_that_hangs(engine: Engine) -> None:
    """It runs, renews its lease and does not end, whatever is asked of it."""
    schedules = {each: await Schedule.made(engine, each.value, overlap=each.value) for each in Overlap}
    await look(engine, NOON + HOUR)
    for schedule in schedules.values():
        await engine.start(await schedule.task())
    for hour in (2, 3):
        await look(engine, NOON + hour * HOUR)
    told = {each: [(outcome, why) for _, outcome, why in await made.told()] for each, made in schedules.items()}
    begun = ("started", None)
    assert told == {
        Overlap.SKIP: [begun, ("skipped", "previous-live"), ("skipped", "previous-live")],
        Overlap.QUEUE_ONE: [begun, ("waiting", "previous-live"), ("skipped", "another-waits")],
        Overlap.ALLOW: [begun, begun, begun],
        Overlap.CANCEL_PREVIOUS: [begun, ("skipped", "superseded"), ("waiting", "previous-stopping")],
    }
    assert await started(engine) == 6


@on_the_engine
async def test_a_workflow_is_made_anew_each_time(engine: Engine) -> None:
    schedule = await Schedule.made(engine, kind="workflow", prepared=a_workflow())
    await schedule.after(HOUR)
    await schedule.after(HOUR)
    first, second = await schedule.runs()
    assert (first.outcome, second.outcome, second.reason) == ("started", "skipped", "previous-live")
    assert first.workflow_id is not None
    await operations.cancel(engine.pool, first.workflow_id)
    await schedule.after(HOUR)
    third = await schedule.last()
    assert third.outcome == "started"
    assert third.workflow_id not in {None, first.workflow_id}
    row = await workflows.get(engine.pool, third.workflow_id)
    assert row is not None
    assert (row.schedule_id, row.status, row.live) == (schedule.schedule_id, "running", 2)
    assert [each.workflow_key for each in await workflows.tasks_of(engine.pool, row.workflow_id)] == ["first", "second"]


@on_the_engine
async def test_a_project_is_started_and_one_that_runs_already_is_left_alone(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two", "three", "four")
    prepared = {"project_id": str(project.project_id), "mode": "loop"}
    schedule = await Schedule.made(engine, kind="project", prepared=prepared)
    await schedule.after(HOUR)
    assert await project.state() == ("running", None)
    await project.finish()
    await schedule.after(HOUR)
    assert {run.schedule_id for run in await project.runs()} == {schedule.schedule_id}
    for _ in range(3):
        await project.finish()
    await schedule.after(HOUR)
    await project.add("five")
    await project.start()
    await schedule.after(HOUR)
    assert await schedule.told() == [
        (1, "started", None),
        (2, "skipped", "previous-live"),
        (3, "skipped", "backlog-empty"),
        (4, "skipped", "queue-already-running"),
    ]
    assert [each.ended_as for each in await schedule.runs()] == ["finished", None, None, None]


@on_the_engine
async def test_a_project_that_is_not_its_owners_is_refused(engine: Engine) -> None:
    project = await Project.made(engine, "one")
    await engine.sql("UPDATE projects SET user_id = 'bob'")
    prepared = {"project_id": str(project.project_id), "mode": "single"}
    schedule = await Schedule.made(engine, kind="project", prepared=prepared)
    await schedule.after(HOUR)
    assert await schedule.told() == [(1, "refused", "project-not-found")]
    assert await schedule.story() == ["create", "failed"]


@on_the_engine
async def test_what_cannot_be_started_is_refused_with_its_reason_and_the_next_time_is_tried(engine: Engine) -> None:
    schedule = await Schedule.made(engine, prepared={**a_task(), "priority": 99})
    healthy = await Schedule.made(engine, "healthy")
    await schedule.after(HOUR)
    ((_, outcome, reason),) = await schedule.told()
    assert outcome == "refused"
    assert "priority" in str(reason)
    assert (await schedule.row()).next_at == NOON + 2 * HOUR
    assert await healthy.told() == [(1, "started", None)]


@on_the_engine
async def test_failures_in_a_row_are_told_and_pause_it(engine: Engine) -> None:
    schedule = await Schedule.made(engine, pause_after_failures=2)
    for transition in ("bury", "complete", "bury", "bury"):
        await schedule.after(HOUR)
        await schedule.finish(transition, **({"error": A_FAILURE} if transition == "bury" else {}))
        await schedule.settle()
    row = await schedule.row()
    assert (row.state, row.pause_reason, row.failures, row.next_at) == ("paused", "failures", 2, None)
    assert await schedule.story() == ["create", "failed", "failed", "failed", "pause"]
    assert await schedule.after(3 * HOUR) == []
    await schedule.resume()
    assert (await schedule.row()).failures == 0
    assert (await schedule.told())[4:] == [(hour, "missed", "paused") for hour in (5, 6, 7)]
    await schedule.after(HOUR)
    assert (await schedule.last()).outcome == "started"


@on_the_engine
async def test_an_owner_without_a_key_starts_nothing(engine: Engine) -> None:
    schedule = await Schedule.made(engine)
    await a_key_for(engine, "ann, too")
    await engine.sql(
        "UPDATE api_keys SET user_id = 'ann', expires_at = now() - interval '1 s' WHERE key_id = 'ann, too'"
    )
    await keys.revoke(engine.pool, "ann, too")
    assert (await schedule.row()).state == "active", "the owner has another key"
    await engine.sql("UPDATE api_keys SET revoked_at = now() WHERE key_id = 'ann'")
    await schedule.after(HOUR)
    assert await schedule.told() == [(1, "refused", "owner-has-no-key")]
    row = await schedule.row()
    assert (row.state, row.pause_reason) == ("paused", "owner-has-no-key")
    other = await changing.create(engine.pool, wanted("other"), now=NOON)
    await keys.revoke(engine.pool, "ann")
    await handle_pending(engine.pool, SCHEDULES, [other])
    halted = await reading.get(engine.pool, other)
    assert halted is not None
    assert halted.pause_reason == "owner-has-no-key"


@on_the_engine
async def test_an_edit_between_due_and_fire_leaves_neither_a_gap_nor_a_double(engine: Engine) -> None:
    schedule = await Schedule.made(engine, overlap="allow")
    schedule.now += HOUR + HOUR / 60
    (seen,) = await firing.due_now(engine.pool, now=schedule.now, at_most=10)
    late = firing.planned(seen)
    await schedule.change(cron="30 * * * *", overlap="allow")
    assert await firing.fire(engine.pool, late) == [], "what was planned for the former is void"
    assert await started(engine) == 1, "what was due is due"
    await schedule.after(HOUR)
    times = [each.due_at - NOON for each in await schedule.runs()]
    assert times == [HOUR, HOUR * 1.5]


@on_the_engine
async def test_an_edit_while_the_jitter_runs_is_no_silent_gap(engine: Engine) -> None:
    schedule = await Schedule.made(engine, jitter_seconds=1200)
    row = await schedule.row()
    assert row.next_at is not None
    assert row.next_due_at == NOON + HOUR
    assert NOON + HOUR < row.next_at < NOON + HOUR + timedelta(seconds=1200)
    schedule.now = NOON + HOUR
    await schedule.change(cron="30 * * * *")
    assert await schedule.told() == [(1, "missed", "changed")]


@on_the_engine
async def test_who_deletes_one_while_its_jitter_runs_leaves_no_silent_gap(engine: Engine) -> None:
    schedule = await Schedule.made(engine, jitter_seconds=1200)
    await changing.delete(engine.pool, schedule.schedule_id, now=NOON + HOUR)
    assert await schedule.told() == [(1, "missed", "deleted")]


@on_the_engine
async def test_edits_and_looks_at_once(engine: Engine) -> None:
    schedule = await Schedule.made(engine, overlap="allow", catch_up="all", every=60)
    for number in range(1, 31):
        schedule.now += HOUR / 60
        await asyncio.gather(
            look(engine, schedule.now), schedule.change(every=60, overlap="allow", jitter_seconds=0),
            look(engine, schedule.now),
        )  # fmt: skip
        assert await started(engine) == number
    assert [each.due_at for each in await schedule.runs()] == [NOON + number * HOUR / 60 for number in range(1, 31)]


@on_the_engine
async def test_paused_over_due_times_nothing_bursts_and_what_waited_is_dropped(engine: Engine) -> None:
    schedule = await Schedule.made(engine, overlap="queue-one", catch_up="all", catch_up_window_seconds=86400)
    await schedule.after(HOUR)
    await schedule.after(HOUR)
    await schedule.pause()
    await schedule.pause()
    await schedule.finish()
    await schedule.settle()
    await schedule.after(2.5 * HOUR)
    await schedule.resume()
    await schedule.after(HOUR)
    assert await schedule.told() == [
        (1, "started", None),
        (2, "missed", "paused"),
        (3, "missed", "paused"),
        (4, "missed", "paused"),
        (5, "started", None),
    ]
    assert await schedule.story() == ["create", "pause", "resume"]


@on_the_engine
async def test_a_trigger_obeys_the_overlap_and_a_backfill_starts_what_was_not(engine: Engine) -> None:
    schedule = await Schedule.made(engine)
    await schedule.after(4.5 * HOUR)
    row = await schedule.row()
    (now,) = await firing.fire_one(engine.pool, row, [schedule.now], Cause.TRIGGER)
    assert now.outcome == "skipped"
    times = [NOON + hour * HOUR for hour in (0, 1, 2, 3, 4)]
    decided = await firing.fire_one(engine.pool, row, times, Cause.BACKFILL)
    assert [each.outcome for each in decided] == ["started"] * 5
    assert await started(engine) == 5, "the one that had been started was not started again"
    again = await firing.fire_one(engine.pool, row, times, Cause.BACKFILL)
    assert [each.outcome for each in again] == ["started"] * 5
    assert await started(engine) == 5
    assert (await schedule.row()).next_at == NOON + 5 * HOUR


@on_the_engine
async def test_a_name_is_one_schedule_of_its_owner_until_it_is_deleted(engine: Engine) -> None:
    schedule = await Schedule.made(engine)
    with pytest.raises(changing.NameTaken):
        await Schedule.made(engine)
    other = await Schedule.made(engine, "other")
    with pytest.raises(changing.NameTaken):
        await other.change(name="nightly")
    await changing.delete(engine.pool, schedule.schedule_id, now=NOON)
    assert await reading.get(engine.pool, schedule.schedule_id) is None
    assert (await Schedule.made(engine)).schedule_id != schedule.schedule_id
    assert await look(engine, NOON + HOUR) != []
    assert await schedule.runs() == []


@on_the_engine
async def test_after_a_restore_what_was_due_since_the_backup_is_not_started(engine: Engine) -> None:
    now = await reading.now(engine.pool)
    schedule = await Schedule.made(
        engine, now=now - 3 * HOUR, every=3600, catch_up="all", catch_up_window_seconds=86400
    )
    assert await changing.miss_all(engine.pool, "restored", step=1000) == 1
    assert [(each.outcome, each.reason) for each in await schedule.runs()] == [("missed", "restored")] * 3
    assert await look(engine, await reading.now(engine.pool)) == []
    assert (await schedule.row()).last_seq > 1000


@on_the_engine
async def test_ends_of_tasks_workflows_and_projects_reach_the_schedule_through_the_outbox(engine: Engine) -> None:
    project = await Project.made(engine, "one")
    of_project = {"project_id": str(project.project_id), "mode": "single"}
    task = await Schedule.made(engine, "task")
    workflow = await Schedule.made(engine, "workflow", kind="workflow", prepared=a_workflow())
    queue = await Schedule.made(engine, "project", kind="project", prepared=of_project)
    await look(engine, NOON + HOUR)
    assert await pending(engine) == set()
    await task.finish()
    assert await pending(engine) == {task.schedule_id}
    workflow_id = (await workflow.last()).workflow_id
    assert workflow_id is not None
    await operations.cancel(engine.pool, workflow_id)
    await project.finish()
    assert await project.state() == ("idle", "finished"), "the project follows its run, and the schedule its project"
    schedules = {task.schedule_id, workflow.schedule_id, queue.schedule_id}
    assert await pending(engine) == schedules
    for schedule_id in schedules:
        await handle_pending(engine.pool, SCHEDULES, [schedule_id])
    ends = [(await schedule.last()).ended_as for schedule in (task, workflow, queue)]
    assert ends == ["completed", "cancelled", "finished"]
    assert await pending(engine) == set()


@on_the_engine
async def test_a_schedule_follows_its_projects_before_it_decides(engine: Engine) -> None:
    """The run's end is committed, and no orchestrator has handled it."""
    project = await Project.made(engine, "one", "two", "three")
    of_project = {"project_id": str(project.project_id), "mode": "single"}
    queue = await Schedule.made(engine, "project", kind="project", prepared=of_project, overlap="skip")
    await queue.after(HOUR)
    await project.finish()
    await queue.after(HOUR)
    await queue.after(HOUR)
    assert await queue.told() == [(1, "started", None), (2, "started", None), (3, "skipped", "previous-live")]
    await project.finish()
    assert await firing.is_behind(engine.pool, await queue.row())
    row = await firing.caught_up(engine.pool, await queue.row())
    assert row is not None
    assert not await firing.is_behind(engine.pool, row)
    assert (await queue.runs())[1].ended_as == "finished"


async def pending(engine: Engine) -> set[UUID]:
    """The schedules that have rows in the outbox."""
    page = await outbox.walk(engine.pool, after=None, at_most=100, feature=SCHEDULES.name)
    return {schedule_id for _, schedule_id in page.keys}
