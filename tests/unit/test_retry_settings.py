"""Delays, costs, lanes and defaults as an operator sets them: which table wins, and what a curve comes to."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.support.engine.submissions import ACTORS, accepted, pointers, refused
from tests.unit.test_retries import FIRST_ATTEMPT, error_called
from windlass.services.actors.worker.ending.retries import delay_after, ending_of_failure, ending_of_interrupt
from windlass.services.api.tasks.submission import read, under_idempotency_key
from windlass.shared.actors.payloads import PAYLOADS
from windlass.shared.errors import ERROR_TYPES, RateLimited, ServiceUnavailable, TimedOut, WorkerLost
from windlass.shared.retry_delays import (
    BUILT_IN,
    FIELDS,
    OTHER,
    Curve,
    RetrySettings,
    Schedules,
    delay_at,
    schedules_of_task,
)
from windlass.shared.settings import Settings
from windlass.shared.toml_tables import DEFAULT_ACTORS, LaneSettings

by_the_hundred = settings(max_examples=200, derandomize=True, deadline=None)

TRANSIENT = sorted(name for name, error in ERROR_TYPES.items() if error.kind == "transient")
CURVES = st.builds(
    Curve,
    curve=st.sampled_from(["exponential", "quadratic"]),
    base=st.floats(1, 1000),
    cap=st.floats(0, 100_000),
)
LISTS = st.lists(st.floats(0, 100_000), min_size=1, max_size=10).map(tuple)
TABLES = st.dictionaries(st.sampled_from(sorted(set(TRANSIENT) - {"WorkerLost"} | {OTHER})), LISTS | CURVES).map(
    Schedules.model_validate
)


def test_every_error_that_may_be_tried_again_has_its_key() -> None:
    assert set(FIELDS) == {*TRANSIENT, OTHER}


def test_every_actor_has_its_table() -> None:
    assert set(DEFAULT_ACTORS) == set(PAYLOADS) == set(Settings().actors)


@given(CURVES, st.integers(0, 10_000))
@by_the_hundred
def test_a_curve_grows_and_never_goes_over_its_cap(curve: Curve, failures: int) -> None:
    assert 0 <= curve.delay(failures) <= curve.delay(failures + 1) <= curve.cap


@pytest.mark.parametrize(
    ("curve", "delays"),
    [
        ({"curve": "exponential"}, [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]),
        ({"curve": "exponential", "base": 3, "cap": 100}, [3, 9, 27, 81, 100]),
        ({"curve": "quadratic", "base": 5}, [5, 20, 45, 80, 125, 180, 245, 300]),
    ],
)
def test_curves_by_example(curve: dict[str, Any], delays: list[float]) -> None:
    (found,) = {Schedules.model_validate({OTHER: curve}).other}
    assert found is not None
    assert [delay_at(found, failures) for failures in range(len(delays))] == delays


@given(st.lists(TABLES, max_size=5), st.sampled_from(TRANSIENT), st.integers(0, 30))
@by_the_hundred
def test_the_first_table_that_knows_the_error_wins_and_the_built_in_delays_come_last(
    tables: list[Schedules], name: str, failures: int
) -> None:
    said = [found for table in tables if (found := table.delays_of(name)) is not None]
    wanted = delay_at(said[0], failures) if said else delay_after(error_called(name), failures)
    assert delay_after(error_called(name), failures, tables) == wanted


@given(st.lists(TABLES, max_size=3), st.floats(0, 1), st.integers(0, 3))
@by_the_hundred
def test_jitter_only_adds_and_only_as_much_as_is_set(tables: list[Schedules], jitter: float, failures: int) -> None:
    task = replace(FIRST_ATTEMPT, retry_count=failures, max_retries=9)
    planned = delay_after(KeyError(), failures, tables)
    found = ending_of_failure(task, KeyError(), RetrySettings(jitter=jitter), tables).delay_seconds
    assert planned <= found <= planned * (1 + jitter)


def test_an_error_of_somebody_s_own_waits_like_the_one_that_it_is_a_kind_of() -> None:
    class Overloaded(ServiceUnavailable):
        """As a provider's adapter may have it."""

    table = Schedules.model_validate({"ServiceUnavailable": [7], OTHER: [1]})
    assert delay_after(Overloaded("busy"), 0, [table]) == 7
    assert delay_after(KeyError("a bug"), 0, [table]) == 1


def test_a_time_that_the_provider_named_is_kept_to_whatever_the_tables_say() -> None:
    table = Schedules.model_validate({"RateLimited": [1]})
    assert delay_after(RateLimited("slow down", retry_after=42), 0, [table]) == 42
    assert delay_after(RateLimited("slow down"), 0, [table]) == 1


CONFIG = """
[retries]
ServiceUnavailable = [1]
NetworkTimeout = [1]
TimedOut = [1]
SubprocessFailed = [1]
[providers.local.retries]
ServiceUnavailable = [2]
NetworkTimeout = [2]
TimedOut = [2]
[actors.agent.retries]
ServiceUnavailable = [3]
NetworkTimeout = [3]
[agents.demo.retries]
ServiceUnavailable = [4]
"""


@pytest.mark.parametrize(
    ("name", "seconds"),
    [("ServiceUnavailable", 4), ("NetworkTimeout", 3), ("TimedOut", 2), ("SubprocessFailed", 1), ("RateLimited", 60)],
)
def test_an_agent_s_table_wins_over_its_actor_s_its_provider_s_and_the_one_for_all(
    tmp_path: Path, name: str, seconds: float
) -> None:
    file = tmp_path / "windlass.toml"
    file.write_text(CONFIG)
    schedules = Settings(config=file).schedules_for("agent", "local", "demo")
    assert delay_after(error_called(name), 0, schedules) == seconds


def test_what_is_gone_from_the_settings_leaves_the_rest() -> None:
    """A task may be older than the settings: its agent or its provider need not be there any more."""
    assert Settings().schedules_for("agent", "gone", "gone-too")[-1] == RetrySettings()


def test_costs_and_the_longer_timeout_are_as_they_are_set() -> None:
    rules = RetrySettings(rate_limits_cost_from=2, interrupts_cost_from=3, timeout_factor=2)
    limited = [replace(FIRST_ATTEMPT, rate_limited_count=before) for before in range(3)]
    assert [ending_of_failure(task, RateLimited("slow down"), rules).retry_cost for task in limited] == [0, 1, 1]
    interrupted = [replace(FIRST_ATTEMPT, interrupt_count=before) for before in range(4)]
    assert [ending_of_interrupt(task, rules).retry_cost for task in interrupted] == [0, 0, 1, 1]
    assert ending_of_failure(FIRST_ATTEMPT, TimedOut("too slow"), rules).timeout_factor == 2


def test_lost_workers_cost_what_is_set_written_out_for_postgres() -> None:
    assert RetrySettings().seconds_after_a_lost_worker(WorkerLost.delays) == [0, 5, 20, 45]
    listed = RetrySettings.model_validate({"WorkerLost": [1, 2]})
    assert listed.seconds_after_a_lost_worker(WorkerLost.delays) == [1, 2]
    curve = RetrySettings.model_validate({"WorkerLost": {"curve": "exponential"}})
    assert curve.seconds_after_a_lost_worker(WorkerLost.delays)[:3] == [2, 4, 8]


@pytest.mark.parametrize(
    "table",
    [
        {"ContentRejected": [1]},
        {"ServiceUnavailable": []},
        {"ServiceUnavailable": [float("inf")]},
        {"ServiceUnavailable": {"curve": "exponential", "base": 0.5}},
        {"ServiceUnavailable": {"curve": "cubic"}},
        {"WorkerLost": [1]},
    ],
)
def test_delays_that_make_no_sense_are_refused(table: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Schedules.model_validate(table)


# Lanes


@given(st.integers(0, 20_000))
@by_the_hundred
def test_the_lanes_are_shared_as_the_contract_has_it(waiting: int) -> None:
    assert LaneSettings().retry_share(waiting) == (30 if waiting < 1000 else 20 if waiting <= 5000 else 10)


def test_lanes_are_shared_as_they_are_set() -> None:
    lanes = LaneSettings(retry_percent=(50, 25, 1), many_retries=10, very_many_retries=20)
    assert [lanes.retry_share(waiting) for waiting in (9, 10, 20, 21)] == [50, 25, 25, 1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"retry_percent": (10, 20, 30)},
        {"retry_percent": (30, 20)},
        {"retry_percent": (100, 20, 10)},
        {"many_retries": 0},
    ],
)
def test_lanes_that_would_starve_somebody_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        LaneSettings(**wrong)


def test_a_breaker_that_could_never_open_is_refused() -> None:
    with pytest.raises(ValidationError, match="no breaker would ever open"):
        Settings(breaker_window=5, breaker_least_results=6)


# Defaults


def test_a_task_has_what_its_actor_s_table_says_then_what_holds_for_all() -> None:
    actors = {
        "probe": {"max_retries": 7, "timeout_seconds": 9, "max_age_seconds": 60},
        "summarize": {"max_age_seconds": 0},
    }
    defaults = {"max_retries": 5, "max_age_seconds": 1000, "dedupe_ttl_seconds": 10}
    ours = Settings(actors=actors, defaults=defaults)
    probe = accepted({"actor": "probe"}, settings=ours)
    assert (probe.max_retries, probe.timeout_seconds, probe.max_age_seconds) == (7, 9, 60)
    summary = accepted({"actor": "summarize", "payload": {"content": "long"}}, settings=ours)
    assert (summary.max_retries, summary.timeout_seconds, summary.max_age_seconds) == (5, 120, None)
    agent = accepted({"actor": "agent", "payload": {"subagent_type": "demo", "prompt": "do"}}, settings=ours)
    assert (agent.max_retries, agent.max_age_seconds, agent.dedupe_ttl_seconds) == (5, 1000, 10)
    said = accepted({"actor": "probe", "max_retries": 0, "dedupe_ttl_seconds": 3}, settings=ours)
    assert (said.max_retries, said.dedupe_ttl_seconds) == (0, 3)


def test_an_idempotency_key_means_the_same_request_for_as_long_as_is_set() -> None:
    ours = Settings(defaults={"idempotency_ttl_seconds": 60, "max_retries": 5})

    def under_a_key(**fields: Any) -> Any:
        body = {"actor": "probe", **fields}
        return under_idempotency_key("k", [accepted(body, settings=ours)], [read(body)], ours, ACTORS)[0]

    assert under_a_key().idempotency_ttl_seconds == 60
    assert under_a_key().body_hash == under_a_key(max_retries=5).body_hash
    assert under_a_key().body_hash != under_a_key(max_retries=3).body_hash


# A task's own


def test_a_list_of_a_task_s_own_is_for_every_error_but_a_429() -> None:
    task = accepted({"actor": "probe", "retry_delays": [3, 4]})
    assert task.retry_delays is not None
    own = schedules_of_task(task.retry_delays)
    found = {name: delay_after(error_called(name), 1, [own, BUILT_IN]) for name in TRANSIENT}
    assert found == {**dict.fromkeys(TRANSIENT, 4), "RateLimited": 120, "WorkerLost": 5}
    assert delay_after(KeyError(), 9, [own, BUILT_IN]) == 4


def test_a_task_s_own_delays_are_kept_as_they_were_said() -> None:
    said = {"ServiceUnavailable": [1, 2], "other": {"curve": "exponential", "base": 3, "cap": 10}}
    task = accepted({"actor": "probe", "retry_delays": said})
    assert task.retry_delays == said
    own = schedules_of_task({**task.retry_delays, "of another version": [1]})
    assert [delay_after(KeyError(), failures, [own]) for failures in range(4)] == [3, 9, 10, 10]
    assert delay_after(error_called("NetworkTimeout"), 0, [own]) == 2, "what it does not say is as it was"
    assert accepted({"actor": "probe"}).retry_delays is None


@pytest.mark.parametrize(
    ("delays", "pointer"),
    [
        (5, "/retry_delays"),
        ([], "/retry_delays"),
        ([1, -1], "/retry_delays/1"),
        ([1] * 101, "/retry_delays"),
        ({"ServiceUnavailable": 3}, "/retry_delays/ServiceUnavailable"),
        ({"ServiceUnavailable": [1, "soon"]}, "/retry_delays/ServiceUnavailable/1"),
        ({"ServiceUnavailable": {"curve": "cubic"}}, "/retry_delays/ServiceUnavailable/curve"),
        ({"ContentRejected": [1]}, "/retry_delays/ContentRejected"),
        ({"RateLimited": [0]}, "/retry_delays/RateLimited"),  # its provider pauses for everybody
        ({"WorkerLost": [0]}, "/retry_delays/WorkerLost"),
    ],
)
def test_a_task_s_own_delays_that_make_no_sense_are_refused_by_name(delays: object, pointer: str) -> None:
    problem = refused({"actor": "probe", "retry_delays": delays})
    assert (problem.status, problem.code, pointers(problem)) == (422, "invalid-task", {pointer})
