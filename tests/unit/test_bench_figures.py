"""What the parts of the bench make of what they have measured: the ratio that counts, and if the aim is reached."""

import importlib
from collections import Counter

import pytest

from bench import backlog, contest, engine, fan, many, narrow, pictures, projects, schedules, snapshot, webhooks
from bench.engine import Round
from bench.families import of_a_family
from bench.fan import Family
from bench.figures import Figure
from bench.hot_path import STEPS, Cost, cpu_of_a_start, middle
from bench.many import Steady
from bench.narrow import Drain
from bench.parts import PARTS
from bench.peers.starts import Latency
from bench.waiting_tasks import Waiting


def reached(figures: list[Figure]) -> list[bool]:
    return [figure.reached for figure in figures if figure.reached is not None]


def costs(milliseconds: float) -> dict[str, Cost]:
    return {step: Cost(cpu_ms=milliseconds, ms=2 * milliseconds) for step in STEPS}


@pytest.mark.parametrize("name", PARTS)
def test_every_part_can_be_measured(name: str) -> None:
    assert callable(importlib.import_module(f"bench.{name}").figures)


def test_the_ratio_to_bare_dramatiq_is_the_median_of_each_rounds_own() -> None:
    rounds = [Round(2000, 1000, {"worker": 0.5}), Round(100, 60, {"worker": 0.6}), Round(1000, 700, {"worker": 0.7})]
    ceiling, ours, stages = engine.against_bare(2, 32, rounds, aim=0.6)
    assert ceiling.numbers["tasks_per_second"] == 1000
    assert ours.numbers["ratio"] == pytest.approx(0.6)
    assert ours.reached
    assert "least 0.50, median 0.60, most 0.70 x" in ours.value
    assert "two processes" in ours.name
    assert stages.numbers == {"worker_ms": 0.6}
    assert not engine.against_bare(2, 32, rounds, aim=0.61)[1].reached


def test_every_round_is_kept_and_what_is_told_of_both_is_of_the_same_rounds() -> None:
    rounds = [Round(bare, ours, {}) for bare, ours in ((1000, 700), (2000, 1500), (4000, 2000))]
    ceiling, ours, _ = engine.against_bare(1, 32, rounds, aim=0.5)
    assert [ceiling.numbers[f"round_{number}_tasks_per_second"] for number in (1, 2, 3)] == [1000, 2000, 4000]
    assert [ours.numbers[f"round_{number}_tasks_per_second"] for number in (1, 2, 3)] == [700, 1500, 2000]
    assert [ours.numbers[f"round_{number}_ratio"] for number in (1, 2, 3)] == [0.7, 0.75, 0.5]
    assert (ours.numbers["least_ratio"], ours.numbers["most_ratio"]) == (0.5, 0.75)
    assert (ceiling.numbers["tasks_per_second"], ours.numbers["tasks_per_second"]) == (2000, 1500)


def test_the_aims_are_those_that_were_promised() -> None:
    assert (engine.OF_BARE, contest.OF_BARE) == ({1: 0.5, 2: 0.7}, 0.7)
    assert reached(engine.recovery_figures(4.9, 4.9)) == [True, True]
    assert reached(engine.recovery_figures(1.0, 5.1)) == [True, False]


def test_a_start_is_compared_with_bare_dramatiqs_own() -> None:
    bare = Latency(0.002, 0.004)
    assert reached(engine.start_figures(bare, Latency(0.010, 0.1))) == [True]
    assert reached(engine.start_figures(bare, Latency(0.011, 0.012))) == [False]


def test_at_limit_three_all_that_a_task_takes_counts() -> None:
    drain = Drain(500, {"worker": 0.5, "Postgres": 0.9})
    assert reached(narrow.of_a_limit(3, [drain])) == [True]
    assert reached(narrow.of_a_limit(3, [Drain(500, {**drain.stages, "dispatcher": 0.2})])) == [False]
    assert reached(narrow.of_a_limit(1, [drain])) == []


def test_the_slot_is_to_be_held_nearly_always() -> None:
    assert reached(narrow.of_the_slot(0.981, 0.003)) == [True]
    assert reached(narrow.of_the_slot(0.964, 0.0075)) == [False]


def test_a_claim_under_a_snapshot_is_compared_with_the_first() -> None:
    flat = {0: costs(1.0), snapshot.TASKS // 2: costs(9.0), snapshot.TASKS: costs(2.0)}
    assert reached(snapshot.of_the_walk(flat)) == [True, True]
    assert reached(snapshot.of_the_walk({**flat, snapshot.TASKS: costs(2.1)})) == [False, False]


def test_a_walk_that_was_stopped_has_not_reached_its_aim() -> None:
    figures = snapshot.of_the_walk({0: costs(1.0), 1000: costs(1.0)})
    assert reached(figures) == [False, False]
    assert "stopped there" in figures[0].value


def test_rounds_are_summed_up_call_by_call() -> None:
    found = middle([costs(1.0), costs(5.0), costs(2.0)])
    assert found["claim"] == Cost(2.0, 4.0)
    assert cpu_of_a_start(found) == 4.0


def test_a_backlog_is_to_cost_nothing() -> None:
    assert reached(backlog.of_the_hot_path(costs(1.0), costs(1.2))) == [True]
    assert reached(backlog.of_the_hot_path(costs(1.0), costs(1.3))) == [False]


def test_dependents_are_compared_with_as_many_that_depend_on_nobody() -> None:
    family = Family(submitted=1, parent_ended=0.5, first=0.1, last=10, bystander=0.5)
    rate = fan.DEPENDENTS / family.last
    assert reached(fan.of_the_complete(family, plain=rate / 0.8)) == [True, True, True]
    assert reached(fan.of_the_complete(family, plain=rate / 0.7)) == [True, False, True]
    assert reached(fan.of_the_dead(family)) == [True, False, True]


def test_a_parents_end_and_the_pages_after_it_are_two_figures() -> None:
    end, settled = of_a_family("end", 0.06, "free", [0.5, 1.5])
    assert (end.reached, settled.reached) == (False, True)
    assert settled.numbers == {"seconds": 2.0, "longest_page_ms": 1500.0}


def test_worker_and_postgres_both_have_their_share_of_a_core() -> None:
    assert reached(many.of_the_steady(Steady(0.05, 0.1, 1000, 6))) == [True, True]
    assert reached(many.of_the_steady(Steady(0.05, 0.2, 1000, 12))) == [False, False]


def test_pictures_that_end_together_are_to_be_written_soon() -> None:
    assert reached(pictures.of_the_pictures(1.2, 3.0)) == [True]
    assert reached(pictures.of_the_pictures(1.2, 3.1)) == [False]


def test_the_blocked_are_shared_among_parents() -> None:
    assert Waiting(queued=1, scheduled=0, blocked=200_000, retrying=0).parents == 2000
    assert Waiting(queued=1, scheduled=0, blocked=50, retrying=0).parents == 1


def test_a_loop_is_measured_by_a_slot_s_hand_off() -> None:
    _, within = projects.of_hand_overs(0.010, 0.024)
    assert within.reached
    assert within.numbers["times"] == pytest.approx(2.4)
    assert reached(projects.of_hand_overs(0.010, 0.026)) == [False]


def test_idle_projects_may_cause_no_statement() -> None:
    before = Counter({"SELECT due": 60, "SELECT recheck_projects": 1})
    assert reached(projects.of_idleness(before, before + Counter({"SELECT due": 2}))) == [True]
    assert reached(projects.of_idleness(before, before + Counter({"SELECT due": 20}))) == [False]
    assert reached(projects.of_idleness(before, before + Counter({"SELECT one_project": 1}))) == [False]
    assert reached(projects.of_a_reorder(1, 0.01) + projects.of_a_reorder(2, 0.01)) == [True, False]


def test_nine_endpoints_are_compared_with_ten_that_are_well() -> None:
    well, slower = [0.1] * 100, [0.1] * 90 + [0.2] * 10
    assert reached(webhooks.of_ten(well, {"dead": well, "slow": slower})) == [True, False]


def test_all_that_are_due_have_started_within_a_minute_and_nothing_else_is_late() -> None:
    runs = [{"outcome": "started", "decided": 30.0, "begun": 59.0}] * schedules.SCHEDULES
    assert reached(schedules.of_firing(runs, [0.1] * 100)) == [True, True]
    late = [*runs[1:], {"outcome": "started", "decided": 30.0, "begun": 61.0}]
    assert reached(schedules.of_firing(late, [0.1] * 90 + [5.0] * 10)) == [False, False]
    assert reached(schedules.of_firing(runs[1:], [0.1] * 100)) == [False, True]
