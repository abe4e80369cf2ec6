"""The planner of schedules: every due time once, whatever the clock, the zone and the orchestrator do."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.shared.schedules.planner import MOST_CAUGHT_UP, MOST_ROWS, ON_TIME_SECONDS, Policy, backfilled, due, first
from windlass.shared.schedules.times import Rule, fault_of_cron, fault_of_zone, in_words
from windlass.shared.schedules.words import CatchUp

SCHEDULE = UUID(int=7)
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe")
CHANGES = {
    "Europe/Berlin": (datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)),
    "America/New_York": (datetime(2026, 3, 8, 7, tzinfo=UTC), datetime(2026, 11, 1, 6, tzinfo=UTC)),
    "Australia/Lord_Howe": (datetime(2026, 10, 3, 15, 30, tzinfo=UTC), datetime(2026, 4, 4, 15, tzinfo=UTC)),
}
"""To summer time and back from it; on Lord Howe Island by half an hour."""

HOUR = timedelta(hours=1)


def a_rule(cron: str | None = None, *, zone: str = "UTC", every: int | None = None, jitter: float = 0) -> Rule:
    anchor = datetime(2026, 1, 1, tzinfo=UTC)
    return Rule(SCHEDULE, anchor, cron=cron, every_seconds=every, timezone=zone, jitter_seconds=jitter)


def local(moment: datetime, zone: str) -> str:
    return moment.astimezone(ZoneInfo(zone)).strftime("%d %H:%M")


@pytest.mark.parametrize(
    ("cron", "expected"),
    [("30 2 * * *", ["28 02:30", "29 03:00", "30 02:30"]), ("0 3 * * *", ["28 03:00", "29 03:00", "30 03:00"])],
)
def test_a_time_that_does_not_exist_is_due_at_the_change(cron: str, expected: list[str]) -> None:
    rule = a_rule(cron, zone="Europe/Berlin")
    begin = datetime(2026, 3, 27, 23, tzinfo=UTC)
    assert [local(each, rule.timezone) for each in rule.between(begin, begin + 3 * 24 * HOUR)] == expected


def test_a_time_that_exists_twice_is_due_once_also_for_who_asks_in_between() -> None:
    rule = a_rule("30 2 * * *", zone="Europe/Berlin")
    change = CHANGES["Europe/Berlin"][1]
    due_at = change - HOUR / 2
    assert next(rule.after(change - 2 * HOUR)) == due_at
    for later in (due_at, change, change + timedelta(minutes=10), change + HOUR):
        assert next(rule.after(later)) == due_at + 25 * HOUR, f"asked at {later}"


def test_what_is_due_every_half_hour_goes_on_as_if_nothing_had_changed() -> None:
    for zone, changes in CHANGES.items():
        rule = a_rule("*/30 * * * *", zone=zone)
        for change in changes:
            times = list(rule.between(change - 3 * HOUR, change + 3 * HOUR))
            assert {after - before for before, after in pairwise(times)} == {HOUR / 2}


minutes = st.integers(0, 59).map(str) | st.sampled_from(["*", "*/5", "*/30", "0,30", "15-20"])
hours = st.integers(0, 23).map(str) | st.sampled_from(["*", "*/2", "1-3", "0,2"])
crons = st.builds("{} {} * * {}".format, minutes, hours, st.sampled_from(["*", "*", "SUN", "SAT,SUN"]))


@st.composite
def around_a_change(draw: st.DrawFn) -> tuple[Rule, datetime]:
    zone = draw(st.sampled_from(ZONES))
    change = draw(st.sampled_from(CHANGES[zone]))
    moment = change + timedelta(seconds=draw(st.integers(-40 * 3600, 40 * 3600)))
    if draw(st.booleans()):
        rule = a_rule(draw(crons), zone=zone, jitter=draw(st.sampled_from([0, 30, 900])))
    else:
        rule = a_rule(every=draw(st.integers(10, 7200)), jitter=draw(st.sampled_from([0, 5])))
    return rule, moment


@given(around_a_change(), st.lists(st.integers(0, 6 * 3600), min_size=1, max_size=8), st.sampled_from(CatchUp))
def test_however_often_it_is_planned_each_time_is_planned_once_and_none_is_left_out(
    where: tuple[Rule, datetime], sleeps: list[int], catch_up: CatchUp
) -> None:
    rule, begin = where
    policy = Policy(rule, catch_up, window_seconds=3600)
    last, now, told = begin, begin, list[datetime]()
    for sleep in sleeps:
        now += timedelta(seconds=sleep)
        plan = due(policy, last, now)
        for each in plan.occurrences:
            told += [each.due_at] if each.until is None else list(rule.between(each.due_at - HOUR / 3600, each.until))
            assert rule.fires_at(each.due_at) <= now
        last = plan.last_due_at or last
        assert plan.next_at is not None
        assert plan.next_at > now, "whoever sleeps until then has missed nothing"
    expected = list(rule.between(begin, now))
    assert told == expected[: len(told)]
    assert all(rule.fires_at(each) > now for each in expected[len(told) :][:1])


@given(around_a_change())
def test_a_fixed_time_is_due_once_a_day_and_never_at_two_instants_of_one_wall_clock(
    where: tuple[Rule, datetime],
) -> None:
    rule, begin = where
    if rule.cron is None or rule.cron.startswith("*") or rule.cron.split()[1].startswith("*"):
        return
    walls = [local(each, rule.timezone) for each in rule.between(begin, begin + 80 * HOUR)]
    assert len(walls) == len(set(walls)), "one that exists twice is due once"


@given(around_a_change(), st.integers(1, 2 * 3600))
def test_a_clock_that_goes_back_plans_nothing_and_one_that_jumps_ahead_leaves_nothing_out(
    where: tuple[Rule, datetime], jump: int
) -> None:
    rule, now = where
    policy = Policy(rule, CatchUp.ALL)
    last = due(policy, now - 3 * HOUR, now).last_due_at or now - 3 * HOUR
    back = due(policy, last, now - timedelta(seconds=jump))
    assert not back.occurrences
    assert back.next_due_at == next(rule.after(last))
    ahead = due(policy, last, now + timedelta(seconds=jump))
    assert sum(each.count for each in ahead.occurrences) <= len(list(rule.between(last, now + timedelta(seconds=jump))))
    assert ahead.next_due_at is not None
    assert ahead.next_at is not None
    assert ahead.next_at > now + timedelta(seconds=jump)


NIGHT = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("catch_up", "window", "started"),
    [
        (CatchUp.NONE, 3600, []),
        (CatchUp.LATEST, 3600, [23]),
        (CatchUp.LATEST, 600, []),
        (CatchUp.ALL, 3 * 3600, [21, 22, 23]),
    ],
)
def test_after_a_days_downtime(catch_up: CatchUp, window: float, started: list[int]) -> None:
    """Due at half past every hour, and nobody there for a day: until a quarter past midnight."""
    policy = Policy(a_rule("30 * * * *"), catch_up, window)
    plan = due(policy, NIGHT, NIGHT + 24 * HOUR + HOUR / 4)
    assert [each.due_at.hour for each in plan.occurrences if each.missed_because is None] == started
    assert len(plan.occurrences) == 24, "every due time has its row"
    assert plan.next_due_at == NIGHT + 24 * HOUR + HOUR / 2


@given(around_a_change(), st.integers(0, 30 * 3600), st.sampled_from(CatchUp), st.integers(0, 6 * 3600))
def test_nothing_is_caught_up_with_beyond_its_window_and_none_that_is_later_than_another(
    where: tuple[Rule, datetime], away: int, catch_up: CatchUp, window: int
) -> None:
    rule, begin = where
    now = begin + timedelta(seconds=away)
    plan = due(Policy(rule, catch_up, window), begin, now)
    begun = [each for each in plan.occurrences if each.missed_because is None]
    assert len(begun) <= (MOST_CAUGHT_UP if catch_up == CatchUp.ALL else 1)
    longest = max(0 if catch_up == CatchUp.NONE else window, ON_TIME_SECONDS)
    assert all(now - rule.fires_at(each.due_at) <= timedelta(seconds=longest) for each in begun)
    assert [each.due_at for each in plan.occurrences] == sorted({each.due_at for each in plan.occurrences})


def test_a_little_late_is_on_time_whatever_is_caught_up() -> None:
    for catch_up in CatchUp:
        plan = due(Policy(a_rule("0 * * * *"), catch_up, 0), NIGHT, NIGHT + HOUR + timedelta(seconds=50))
        assert [each.missed_because for each in plan.occurrences] == [None]


def test_what_is_caught_up_is_bounded_and_the_latest_are_chosen() -> None:
    plan = due(Policy(a_rule(every=10), CatchUp.ALL, 7 * 86400), NIGHT, NIGHT + HOUR)
    begun = [each for each in plan.occurrences if each.missed_because is None]
    assert len(begun) == MOST_CAUGHT_UP
    assert begun[-1].due_at == NIGHT + HOUR
    assert {each.missed_because for each in plan.occurrences} == {None, "superseded"}


@pytest.mark.parametrize("rule", [a_rule("* * * * *"), a_rule(every=60)])
@pytest.mark.parametrize("days", [1, 30])
def test_a_long_gap_is_told_in_a_thousand_rows_and_one(rule: Rule, days: int) -> None:
    now = NIGHT + days * 24 * HOUR
    plan = due(Policy(rule), NIGHT, now)
    gap, *rest = plan.occurrences
    assert len(rest) == MOST_ROWS
    assert gap.until is not None
    assert gap.due_at == NIGHT + HOUR / 60
    assert gap.until < rest[0].due_at
    assert next(rule.after(gap.until)) == rest[0].due_at, "nothing between the two"
    assert rest[-1].due_at == now
    assert rest[-1].missed_because is None
    if days == 1 or rule.cron is None:
        assert gap.count + len(rest) == days * 24 * 60


def test_what_was_paused_is_missed_and_nothing_bursts() -> None:
    plan = due(Policy(a_rule("0 * * * *"), CatchUp.ALL), NIGHT, NIGHT + 5 * HOUR, all_missed="paused")
    assert [each.missed_because for each in plan.occurrences] == ["paused"] * 5


def test_jitter_is_the_same_whoever_asks_and_within_its_bounds() -> None:
    rule = a_rule("*/10 * * * *", jitter=300)
    late = [(rule.fires_at(each) - each).total_seconds() for each in rule.between(NIGHT, NIGHT + 24 * HOUR)]
    assert late == [(rule.fires_at(each) - each).total_seconds() for each in rule.between(NIGHT, NIGHT + 24 * HOUR)]
    assert 0 <= min(late) < 60
    assert 240 < max(late) <= 300


def test_a_backfill_takes_both_ends_and_says_when_there_are_too_many() -> None:
    rule = a_rule("0 * * * *")
    assert backfilled(rule, NIGHT, NIGHT + 2 * HOUR, at_most=100) == [NIGHT, NIGHT + HOUR, NIGHT + 2 * HOUR]
    assert len(backfilled(rule, NIGHT, NIGHT + 200 * HOUR, at_most=100)) == 101


def test_a_new_schedule_is_due_from_now_on() -> None:
    assert first(a_rule("0 * * * *"), NIGHT).next_due_at == NIGHT + HOUR


@pytest.mark.parametrize(
    "cron", ["", "* * * * * *", "61 * * * *", "* * 30 2 *", "@daily", "L/2 * * * *", "* * * * L/2", "*" * 300]
)
def test_what_cannot_be_read_is_refused_in_words(cron: str) -> None:
    assert fault_of_cron(cron)


def test_zones_are_names() -> None:
    assert fault_of_zone("Europe/Berlin") is None
    for name in ("Europe/Atlantis", "+02:00", "", "Europe", "../etc/passwd"):
        assert fault_of_zone(name), name


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (a_rule("30 9 * * MON", zone="Europe/Berlin"), "At 09:30 on Monday (Europe/Berlin)"),
        (a_rule("30 2 * * 1-5", zone="Europe/Berlin"), "At 02:30 every weekday (Europe/Berlin)"),
        (a_rule(every=3600), "Every hour"),
        (a_rule(every=90), "Every 90 seconds"),
    ],
)
def test_a_schedule_in_words(rule: Rule, words: str) -> None:
    assert in_words(rule) == words
