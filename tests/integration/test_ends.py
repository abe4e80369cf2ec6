"""Ends: written whole, by the owner alone, once."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from tests.support.engine.store import ENDS, RULES, Engine, an_ending, on_the_engine
from windlass.services.actors.worker.context.context import Context
from windlass.services.actors.worker.ending.retries import ending_of_failure, ending_of_interrupt, ending_of_success
from windlass.services.actors.worker.writing.last_words import before_the_end
from windlass.shared import db
from windlass.shared.errors import RateLimited, ServiceUnavailable, TimedOut
from windlass.shared.store import tasks
from windlass.shared.store.tasks import Claimed

TERMINAL = {"completed", "dead"}

each_end = pytest.mark.parametrize(("transition", "status"), ENDS)


@each_end
@on_the_engine
async def test_an_end_moves_the_task_and_frees_its_lease(engine: Engine, transition: str, status: str) -> None:
    attempt = await engine.running()
    assert await engine.finish(attempt, transition) == status
    row = await engine.row(attempt.task_id)
    assert (row["status"], row["lease_expires_at"]) == (status, None)
    assert (row["completed_at"] is not None) == (status in TERMINAL)


@each_end
@on_the_engine
async def test_an_end_writes_state_and_event_in_one_transaction(engine: Engine, transition: str, status: str) -> None:
    attempt = await engine.running()
    await engine.finish(attempt, transition)
    event = (await engine.history(attempt.task_id))[-1]
    assert (event["type"], event["attempt"], event["data"]["status"]) == (transition, 1, status)
    same: bool = await engine.pool.fetchval(
        """
        SELECT t.xmin::text::bigint = e.xid::text::bigint % 4294967296 AND e.at = t.updated_at
        FROM tasks t JOIN task_events e ON e.task_id = t.task_id AND e.seq = t.last_seq
        """
    )
    assert same


@each_end
@on_the_engine
async def test_an_end_whose_event_cannot_be_written_is_not_written_at_all(
    engine: Engine, transition: str, status: str
) -> None:
    attempt = await engine.running()
    await engine.sql(
        "INSERT INTO task_events (task_id, seq, type, attempt) VALUES ($1, 3, 'in the way', 1)", attempt.task_id
    )
    before = await engine.row(attempt.task_id)
    with pytest.raises(asyncpg.UniqueViolationError):
        await engine.finish(attempt, transition)
    assert await engine.row(attempt.task_id) == before


@on_the_engine
async def test_completion_stores_the_result_and_forgets_earlier_errors(engine: Engine) -> None:
    attempt = await engine.running()
    await engine.finish(attempt, "retry")
    again = await engine.start(attempt.task_id)
    assert await engine.finish(again, result={"answer": [1, None, "ü"]}) == "completed"
    row = await engine.row(attempt.task_id)
    assert (row["result"], row["error"], row["attempt"]) == ({"answer": [1, None, "ü"]}, None, 2)
    errors = [event["data"]["error"]["message"] for event in await engine.history(attempt.task_id)
              if "error" in event["data"]]  # fmt: skip
    assert errors == ["busy"], "the history keeps them"


@on_the_engine
async def test_a_retry_waits_in_its_lane_for_as_long_as_it_was_told(engine: Engine) -> None:
    attempt = await engine.running()
    await engine.finish(attempt, "retry", delay_seconds=42.5)
    row = await engine.row(attempt.task_id)
    assert (row["lane"], row["retry_count"], row["error"]["message"]) == ("retry", 1, "busy")
    assert (row["available_at"] - row["updated_at"]).total_seconds() == 42.5


@on_the_engine
async def test_an_interrupted_task_waits_in_the_lane_that_it_was_in_and_pays_nothing(engine: Engine) -> None:
    attempt = await engine.running()
    await engine.finish(attempt, "interrupt")
    row = await engine.row(attempt.task_id)
    assert (row["status"], row["lane"], row["retry_count"], row["interrupt_count"]) == ("queued", "fresh", 0, 1)
    assert row["available_at"] == row["updated_at"]
    assert isinstance(await engine.claim(attempt.task_id), Claimed)


@on_the_engine
async def test_the_tenth_interrupt_costs_a_retry(engine: Engine) -> None:
    task_id = await engine.submit()
    retries = []
    for _ in range(11):
        await tasks.end(engine.pool, [ending_of_interrupt(await engine.start(task_id))], RULES)
        retries.append((await engine.row(task_id))["retry_count"])
    assert retries == [0] * 9 + [1, 2]


@on_the_engine
async def test_429s_are_counted_in_a_row(engine: Engine) -> None:
    task_id = await engine.submit()
    seen = []
    for error in (
        RateLimited("slow", retry_after=0),
        RateLimited("slow", retry_after=0),
        ServiceUnavailable("busy"),
        RateLimited("slow", retry_after=0),
    ):
        await engine.become_due(task_id)
        await tasks.end(engine.pool, [ending_of_failure(await engine.start(task_id), error)], RULES)
        row = await engine.row(task_id)
        seen.append((row["rate_limited_count"], row["retry_count"]))
    assert seen == [(1, 0), (2, 0), (0, 1), (1, 1)]


@on_the_engine
async def test_after_a_timeout_the_next_attempt_gets_half_as_much_time_again(engine: Engine) -> None:
    attempt = await engine.running(timeout_seconds=100.0)
    await tasks.end(engine.pool, [ending_of_failure(attempt, TimedOut("too slow"))], RULES)
    assert (await engine.start(attempt.task_id)).timeout_seconds == 150


@on_the_engine
async def test_a_retry_that_would_come_after_the_task_has_expired_buries_it(engine: Engine) -> None:
    attempt = await engine.running(max_age_seconds=60)
    assert await engine.finish(attempt, "retry", delay_seconds=61) == "dead"
    row = await engine.row(attempt.task_id)
    assert row["error"]["message"] == "busy", "what went wrong is still told"
    assert await engine.story(attempt.task_id) == ["submit", "claim", "bury"]


@on_the_engine
async def test_a_retry_that_comes_before_the_task_expires_is_a_retry(engine: Engine) -> None:
    attempt = await engine.running(max_age_seconds=600)
    assert await engine.finish(attempt, "retry", delay_seconds=500) == "retrying"


@on_the_engine
async def test_a_report_that_comes_again_is_not_written_twice(engine: Engine) -> None:
    """Its answer may have been lost."""
    attempt = await engine.running()
    line = [{"type": "output", "data": {"text": "once"}}]
    for _ in range(2):
        await engine.say(attempt, number=1, events=line)
    await engine.say(attempt, number=2, events=line)
    assert await engine.story(attempt.task_id) == ["submit", "claim", "output", "output"]
    assert (await engine.row(attempt.task_id))["last_seq"] == 4


@on_the_engine
async def test_a_later_attempt_s_reports_are_numbered_anew(engine: Engine) -> None:
    attempt = await engine.running()
    await engine.say(attempt, number=7, checkpoint="first")
    await engine.finish(attempt, "interrupt")
    again = await engine.start(attempt.task_id)
    assert await engine.say(again, number=1, checkpoint="second")
    assert (await engine.row(attempt.task_id))["checkpoint"] == "second"


@each_end
@on_the_engine
async def test_a_repeated_end_is_answered_as_the_first_time_and_changes_nothing(
    engine: Engine, transition: str, status: str
) -> None:
    """The reply to the first one may have been lost."""
    attempt = await engine.running()
    await engine.finish(attempt, transition)
    before = await engine.row(attempt.task_id)
    assert await engine.finish(attempt, transition) == status
    assert await engine.finish(attempt, "bury" if transition == "complete" else "complete") == status
    assert await engine.row(attempt.task_id) == before
    assert await engine.story(attempt.task_id) == ["submit", "claim", transition]


@on_the_engine
async def test_ends_in_one_call_are_answered_one_by_one(engine: Engine) -> None:
    mine, lost = await engine.running(), await engine.running()
    stranger = replace(await engine.running(), task_id=uuid4())
    await engine.lapse(lost.task_id)
    await tasks.stall(engine.pool)
    endings = [an_ending(attempt, "complete") for attempt in (lost, mine, stranger)]
    assert await tasks.end(engine.pool, endings, RULES) == [None, "completed", None]


@pytest.mark.parametrize("transition", [transition for transition, _ in ENDS])
@on_the_engine
async def test_an_end_wakes_the_dispatcher_and_the_streams(engine: Engine, transition: str) -> None:
    attempt = await engine.running()
    async with engine.listening("windlass_dispatch") as dispatchers, engine.listening("windlass_events") as streams:
        await engine.finish(attempt, transition)
    assert dispatchers == ["probe"]
    assert streams == [str(attempt.task_id)]


@each_end
@on_the_engine
async def test_last_words_are_numbered_before_the_end(engine: Engine, transition: str, status: str) -> None:
    attempt = await engine.running()
    context = Context(attempt, "worker-1", on_report=lambda _: None)
    context.output("last ")
    context.output("words")
    context.progress("nearly there", percent=99)
    ending = before_the_end(context.take_report(), an_ending(attempt, transition))
    assert await tasks.end(engine.pool, [ending], RULES) == [status]
    events = await engine.history(attempt.task_id)
    assert [(event["seq"], event["type"]) for event in events[2:]] == [(3, "output"), (4, "progress"), (5, transition)]
    assert events[2]["data"] == {"text": "last words"}
    row = await engine.row(attempt.task_id)
    assert (row["last_seq"], row["progress"]["message"]) == (5, "nearly there")


@pytest.mark.parametrize("transition", ["retry", "interrupt"])
@on_the_engine
async def test_what_an_attempt_saved_last_is_there_for_the_next_one(engine: Engine, transition: str) -> None:
    """Also when it was saved so shortly before the end that no report has carried it."""
    attempt = await engine.running()
    context = Context(attempt, "worker-1", on_report=lambda _: None)
    context.save({"page": 9})
    ending = before_the_end(context.take_report(), an_ending(attempt, transition))
    await tasks.end(engine.pool, [ending], RULES)
    assert (await engine.start(attempt.task_id)).checkpoint == {"page": 9}


@on_the_engine
async def test_a_life_s_events_are_numbered_without_a_gap(engine: Engine) -> None:
    task_id = await engine.submit()
    for transition in ("retry", "interrupt", "bury"):
        attempt = await engine.start(task_id)
        line = {"type": "output", "data": {"text": "…"}}
        await engine.say(attempt, events=[line, line])
        await engine.say(attempt, checkpoint=1)
        await engine.finish(attempt, transition, events=[line])
        await engine.finish(attempt, transition, events=[line])
    await engine.revive(task_id)
    await engine.finish(await engine.start(task_id))
    events = await engine.history(task_id)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert (await engine.row(task_id))["last_seq"] == len(events)
    assert [event["attempt"] for event in events if event["type"] == "claim"] == [1, 2, 3, 4]


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


UNSTORABLE = {
    "a NUL": "nul\0",
    "a NUL in a key": {"nul\0": 1},
    "a huge number": 10**200_000,
    "half a character": "\ud800",
    "an object": object(),
    "a deep list": nested(100_000),
}


@pytest.mark.parametrize("value", UNSTORABLE.values(), ids=UNSTORABLE)
@on_the_engine
async def test_a_result_that_cannot_be_stored_is_refused_as_such_and_the_task_still_runs(
    engine: Engine, value: Any
) -> None:
    attempt = await engine.running()
    before = await engine.row(attempt.task_id)
    with pytest.raises(db.UNSTORABLE):
        await tasks.end(engine.pool, [ending_of_success(attempt, {"value": value})], RULES)
    assert await engine.row(attempt.task_id) == before


@on_the_engine
async def test_output_that_cannot_be_stored_is_refused_as_such(engine: Engine) -> None:
    attempt = await engine.running()
    with pytest.raises(db.UNSTORABLE):
        await engine.say(attempt, events=[{"type": "output", "data": {"text": "nul\0"}}])


@on_the_engine
async def test_what_the_attempts_have_cost_is_added_up_also_over_failures_and_lives(engine: Engine) -> None:
    attempt = await engine.running()
    await engine.finish(attempt, "retry", usage={"cost_usd": 0.1, "prompt_tokens": 12})
    await engine.finish(await engine.start(attempt.task_id), "interrupt")
    assert (await engine.row(attempt.task_id))["usage"] == {
        "cost_usd": 0.1, "prompt_tokens": 12, "completion_tokens": None,
    }  # fmt: skip
    await engine.finish(await engine.start(attempt.task_id), "bury", usage={"cost_usd": 0.2, "completion_tokens": 3})
    await engine.revive(attempt.task_id)
    await engine.finish(await engine.start(attempt.task_id), usage={"prompt_tokens": 1})
    assert (await engine.row(attempt.task_id))["usage"] == {
        "cost_usd": 0.3, "prompt_tokens": 13, "completion_tokens": 3,
    }  # fmt: skip
    assert (await engine.row(await engine.completed()))["usage"] is None, "nobody said"


@on_the_engine
async def test_what_a_lost_attempt_has_said_that_it_cost_is_kept_once(engine: Engine) -> None:
    attempt = await engine.running()
    for _ in range(2):  # its answer was lost
        await engine.say(attempt, number=1, usage={"cost_usd": 0.1, "prompt_tokens": 5})
    await engine.say(attempt, number=2, usage={"cost_usd": 0.2})
    await engine.say(replace(attempt, claim_token=uuid4()), number=3, usage={"cost_usd": 99})
    assert await tasks.stall(engine.pool, expired_for_seconds=None, dead_workers=["worker-1"])
    await engine.become_due(attempt.task_id)
    await engine.finish(await engine.start(attempt.task_id), usage={"cost_usd": 0.4})
    assert (await engine.row(attempt.task_id))["usage"] == {
        "cost_usd": 0.7, "prompt_tokens": 5, "completion_tokens": None,
    }  # fmt: skip
