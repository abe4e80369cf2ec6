"""What an operator sets over a provider: in force for the next claim, kept over restarts, taken back by null."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.support.engine.dispatching import would_start
from tests.support.engine.flow import (
    change,
    open_the_breaker,
    pause,
    provider,
    provider_story,
    refusal,
    serve,
)
from tests.support.engine.store import RULES, Engine, on_the_engine
from windlass.services.api.access.auth import Caller
from windlass.services.api.operators.providers import provider_document
from windlass.shared.settings import Settings
from windlass.shared.store.flow_control import flow, providers
from windlass.shared.store.tasks import Claimed
from windlass.shared.toml_tables import LaneSettings

ADMIN = Caller("key", "admin", "root")
VIEWER = Caller("key", "viewer", "vic")
USER = Caller("key", "user", "ann")


async def document(engine: Engine, caller: Caller = ADMIN, name: str = "probe") -> dict[str, Any]:
    (row,) = await flow.overview(engine.pool, RULES, LaneSettings(), heard_within_seconds=30, only=name)
    return provider_document(row, await flow.holders(engine.pool), caller, Settings())


async def granted(engine: Engine, number: int) -> int:
    """How many of so many more tasks may start."""
    answers = [await engine.claim(task_id) for task_id in await engine.submit_many(number)]
    return sum(isinstance(answer, Claimed) for answer in answers)


@on_the_engine
async def test_a_limit_counts_for_the_very_next_claim_and_wakes_the_dispatcher(engine: Engine) -> None:
    async with engine.listening("windlass_dispatch") as heard:
        await change(engine, limit=2)
    assert heard == ["probe"]
    assert await granted(engine, 4) == 2
    await change(engine, limit=3)
    assert await granted(engine, 4) == 1
    assert await provider_story(engine) == ["change", "change"]


@on_the_engine
async def test_lowered_below_what_runs_it_starts_nothing_until_it_fits(engine: Engine) -> None:
    running = [await engine.running() for _ in range(3)]
    await change(engine, limit=1)
    waiting = await engine.submit()
    for attempt in running:
        assert not isinstance(await engine.claim(waiting), Claimed)
        assert await would_start(engine) == []
        await engine.finish(attempt)
    assert await would_start(engine) == [waiting]
    assert isinstance(await engine.claim(waiting), Claimed)


@on_the_engine
async def test_zero_starts_nothing_and_null_goes_back_to_what_is_configured(engine: Engine) -> None:
    await engine.provide("probe", limit=2)
    await change(engine, limit=0)
    assert await granted(engine, 3) == 0
    await change(engine, limit=None)
    assert await granted(engine, 3) == 2


@on_the_engine
async def test_what_is_not_named_stays(engine: Engine) -> None:
    await change(engine, limit=2, rate={"limit": 5, "per_seconds": 10}, paused=True, breaker="closed")
    before = dict(await provider(engine))
    await change(engine)
    await change(engine, limit=4)
    after = dict(await provider(engine))
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"limit_override"}


@on_the_engine
async def test_an_operator_s_pause_starts_nothing_until_it_is_taken_back(engine: Engine) -> None:
    await change(engine, paused=True)
    await engine.submit()
    assert await refusal(engine) == "provider-paused"
    assert await would_start(engine) == []
    await change(engine, paused=None)
    assert await granted(engine, 1) == 1
    assert await provider_story(engine) == ["pause", "resume"]


@pytest.mark.parametrize("word", [False, None])
@on_the_engine
async def test_the_end_of_an_operator_s_pause_is_the_end_of_a_rate_limit_s(engine: Engine, word: bool | None) -> None:
    await pause(engine)
    await change(engine, paused=True)
    assert await refusal(engine) == "provider-paused"
    await change(engine, paused=word)
    assert await granted(engine, 1) == 1


@on_the_engine
async def test_changes_at_the_same_time_are_all_kept(engine: Engine) -> None:
    await asyncio.gather(change(engine, limit=4), change(engine, paused=True), change(engine, breaker="open"))
    row = await provider(engine)
    assert (row["limit_override"], row["paused"], row["breaker_mode"]) == (4, True, "open")


@on_the_engine
async def test_there_is_no_changing_a_provider_that_does_not_exist(engine: Engine) -> None:
    assert not await flow.change(engine.pool, "nobody", {"limit": 1})


@on_the_engine
async def test_the_configuration_writes_rates_and_leaves_what_was_set_over_them(engine: Engine) -> None:
    rate = {"limit": 5, "per_seconds": 10}
    settings = Settings(providers={"probe": {"limit": 3, "rate": rate}})
    await change(engine, rate={"limit": 1, "per_seconds": 1})
    await providers.configure(engine.pool, settings)
    shown = await document(engine)
    assert shown["limit"] == {"configured": 3, "override": None, "effective": 3}
    assert shown["rate"] == {
        "configured": rate,
        "override": {"limit": 1, "per_seconds": 1},
        "effective": {"limit": 1, "per_seconds": 1},
        "left": 1,
        "free_at": None,
    }
    await change(engine, rate=None)
    assert (await document(engine))["rate"]["effective"] == rate


@on_the_engine
async def test_a_rate_is_shown_with_what_is_left_of_it_and_when_the_next_may_start(engine: Engine) -> None:
    await change(engine, rate={"limit": 2, "per_seconds": 60})
    attempt = await engine.running()
    assert (await document(engine))["rate"]["left"] == 1
    await engine.running()
    shown = (await document(engine))["rate"]
    assert shown["left"] == 0
    assert shown["free_at"] - (await engine.row(attempt.task_id))["started_at"] >= timedelta(seconds=63)


@on_the_engine
async def test_a_quiet_provider_is_shown_whole(engine: Engine) -> None:
    assert await document(engine) == {
        "name": "probe",
        "actor": "probe",
        "actors": ["probe"],
        "queue": "probe.probe",
        "queues": ["probe.probe"],
        "limit": {"configured": None, "override": None, "effective": None},
        "rate": {"configured": None, "override": None, "effective": None, "left": None, "free_at": None},
        "slots": {"held": 0, "holders": []},
        "paused": False,
        "pause": None,
        "breaker": {
            "mode": "auto", "state": "closed", "until": None, "reason": None, "failures": 0, "results": 0,
        },
        "lane_credit": 0,
        "retry_ratio": 0.3,
        "workers": 0,
    }  # fmt: skip


@on_the_engine
async def test_a_busy_provider_shows_who_holds_its_slots_and_since_when(engine: Engine) -> None:
    await engine.provide("other", limit=None)
    await serve(engine)
    attempt = await engine.running(worker="worker-7")
    await engine.running(provider="other")
    shown = await document(engine)
    since = (await engine.row(attempt.task_id))["started_at"]
    assert shown["slots"] == {
        "held": 1,
        "holders": [{"task_id": attempt.task_id, "worker_id": "worker-7", "since": since}],
    }
    assert shown["workers"] == 1


@pytest.mark.parametrize(("caller", "tells"), [(ADMIN, True), (VIEWER, True), (USER, False)])
@on_the_engine
async def test_users_see_counts_and_times_but_neither_holders_nor_reasons(
    engine: Engine, caller: Caller, tells: bool
) -> None:
    await engine.running()
    await open_the_breaker(engine)
    await engine.sql("UPDATE providers SET paused_until = now(), pause_reason = 'slow down'")
    shown = await document(engine, caller)
    assert shown["slots"]["held"] == 1
    assert (shown["slots"]["holders"] is not None) == tells
    assert (shown["breaker"]["state"], shown["breaker"]["failures"], shown["breaker"]["results"]) == ("open", 0, 0)
    assert (shown["breaker"]["reason"] is not None) == tells
    assert shown["pause"]["until"] is not None
    assert (shown["pause"]["reason"] == "slow down") == tells


@on_the_engine
async def test_the_breaker_s_window_is_shown(engine: Engine) -> None:
    await engine.completed()
    await engine.finish(await engine.running(), "retry", provider_failed=True)
    shown = (await document(engine))["breaker"]
    assert (shown["failures"], shown["results"]) == (1, 2)


@on_the_engine
async def test_a_breaker_that_an_operator_opened_shows_no_end(engine: Engine) -> None:
    await change(engine, breaker="open")
    shown = (await document(engine))["breaker"]
    assert (shown["mode"], shown["state"], shown["until"]) == ("open", "open", None)
    assert shown["reason"] == "opened by an operator"


@on_the_engine
async def test_its_events_come_newest_first_page_by_page(engine: Engine) -> None:
    for limit in range(5):
        await change(engine, limit=limit)
    first = await flow.events(engine.pool, "probe", before=None, limit=3)
    rest = await flow.events(engine.pool, "probe", before=first[-1]["event_id"], limit=3)
    assert [row["data"]["limit"] for row in [*first, *rest]] == [4, 3, 2, 1, 0]
    assert {row["reason"] for row in first} == {"by an operator"}


@on_the_engine
async def test_its_story_says_who_did_it_and_why(engine: Engine) -> None:
    await engine.provide("probe", limit=3)
    for changes in ({"limit": 1}, {"rate": None}, {"paused": True}, {"paused": False}, {"breaker": "open"}):
        assert await flow.change(engine.pool, "probe", changes, by="ann", why="they asked us to")
    story = await flow.events(engine.pool, "probe", before=None, limit=10)
    assert [row["type"] for row in story] == ["open", "resume", "pause", "change", "change"]
    assert {(row["data"]["by"], row["data"]["why"]) for row in story} == {("ann", "they asked us to")}
    assert story[-1]["data"]["limit"] == 1
    assert "operator" not in story[-1]["data"]


@on_the_engine
async def test_breakers_that_are_not_closed_are_known_by_name(engine: Engine) -> None:
    assert await flow.open_breakers(engine.pool) == []
    await change(engine, breaker="open")
    assert await flow.open_breakers(engine.pool) == ["probe"]
