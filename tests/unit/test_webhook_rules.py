"""Which endpoints receive an event, and how tries change an endpoint, for all combinations."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.shared.features.webhooks.judging import Standing, judge
from windlass.shared.features.webhooks.rules import (
    Event,
    Rights,
    event_type,
    is_held,
    is_subscribed,
    may_read,
    receives,
)
from windlass.shared.states import State
from windlass.shared.webhook_states import EVENTS, EndpointState

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
USERS = st.sampled_from(["ann", "bob"])
RIGHTS = st.builds(Rights, st.booleans(), st.booleans())


@dataclass(frozen=True)
class Hook:
    webhook_id: UUID = field(default_factory=uuid4)
    user_id: str = "ann"
    scope: str = "own"
    events: tuple[str, ...] = ("task.*",)
    filter: dict[str, Any] = field(default_factory=dict)
    created_at: datetime = NOON


def an_event(**fields: Any) -> Event:
    usual = {"type": "task.completed", "subject": "one", "seq": 3, "at": NOON, "owner": "ann", "about": {}, "data": {}}
    return Event(**{**usual, **fields})


@given(
    move=st.sampled_from(["complete", "retry", "stall", "interrupt", "revive", "approve"]), state=st.sampled_from(State)
)
def test_ends_and_retries_of_tasks_are_events(move: str, state: State) -> None:
    type_ = event_type(move, state)
    is_end = state in (State.COMPLETED, State.DEAD, State.CANCELLED)
    assert (type_ is not None) == (is_end or (state == State.RETRYING and move in ("retry", "stall")))
    assert type_ is None or type_ in EVENTS


def test_a_question_is_an_event() -> None:
    assert event_type("ask", "blocked") == "approval.requested"


@given(type_=st.sampled_from(EVENTS))
def test_a_subscription_names_events_or_kinds(type_: str) -> None:
    kind = type_.partition(".")[0]
    assert is_subscribed([type_], type_)
    assert is_subscribed([f"{kind}.*"], type_)
    assert not is_subscribed([], type_)
    assert not is_subscribed([kind, "other.*"], type_)


@given(rights=RIGHTS, reader=USERS, owner=USERS | st.none())
def test_only_an_admin_reads_about_objects_of_others(rights: Rights, reader: str, owner: str | None) -> None:
    assert may_read(rights, reader, owner) == (rights.everything or (rights.its_own and reader == owner))


@given(rights=RIGHTS, user=USERS, owner=USERS, scope=st.sampled_from(["own", "all"]), is_named=st.booleans())
def test_no_endpoint_receives_what_its_owner_may_not_read(
    rights: Rights, user: str, owner: str, scope: str, is_named: bool
) -> None:
    hook = Hook(user_id=user, scope=scope)
    event = an_event(owner=owner, named=hook.webhook_id if is_named else None)
    received = receives(hook, event, rights)
    assert not received or may_read(rights, user, owner)
    assert received == (may_read(rights, user, owner) and (is_named or scope == "all" or user == owner))


ITS_OWN = Rights(its_own=True)


@pytest.mark.parametrize(
    ("filter_", "about", "passes"),
    [
        ({}, {}, True),
        ({"project_id": "p"}, {"project_id": "p"}, True),
        ({"project_id": "p"}, {}, False),
        ({"workflow_id": "w"}, {"workflow_id": "v"}, False),
        ({"actor": "agent", "tag": "blue"}, {"actor": "agent", "tags": ["red", "blue"]}, True),
        ({"actor": "agent", "tag": "blue"}, {"actor": "agent", "tags": ["red"]}, False),
        ({"tag": "blue"}, {"tags": None}, False),
    ],
)
def test_a_filter_narrows_a_subscription(filter_: dict[str, Any], about: dict[str, Any], passes: bool) -> None:
    assert receives(Hook(filter=filter_), an_event(about=about), ITS_OWN) == passes


def test_a_later_endpoint_receives_only_what_names_it() -> None:
    hook = Hook(created_at=NOON + timedelta(seconds=1))
    assert not receives(hook, an_event(), ITS_OWN)
    assert receives(hook, an_event(named=hook.webhook_id), ITS_OWN)


def test_tasks_of_silent_actors_reach_only_the_endpoint_that_they_name() -> None:
    hook = Hook()
    assert not receives(hook, an_event(only_named=True), ITS_OWN)
    assert receives(hook, an_event(only_named=True, named=hook.webhook_id), ITS_OWN)


def test_an_endpoint_does_not_receive_that_it_was_disabled() -> None:
    hook = Hook(events=("webhook.*",))
    event = an_event(type="webhook.disabled", subject=str(hook.webhook_id))
    assert not receives(hook, event, ITS_OWN)
    assert receives(Hook(events=("webhook.*",)), event, ITS_OWN)


@given(state=st.sampled_from(EndpointState), is_oldest=st.booleans(), is_probing=st.booleans())
def test_only_the_oldest_delivery_tries_an_endpoint_that_is_not_well(
    state: EndpointState, is_oldest: bool, is_probing: bool
) -> None:
    held = is_held(state, "task.dead", is_oldest=is_oldest, is_probing=is_probing)
    tries = state == EndpointState.FAILING or is_probing
    assert held == (state != EndpointState.ENABLED and not (is_oldest and tries))
    assert not is_held(state, "webhook.test", is_oldest=is_oldest)


# Tries


@dataclass(frozen=True)
class Made:
    at: datetime
    delivered: bool = False
    gone: bool = False


def made(outcomes: str, *, first: datetime = NOON, every: timedelta = timedelta(seconds=1)) -> list[Made]:
    """`F` failed, `D` delivered, `G` gone."""
    return [Made(first + number * every, each == "D", each == "G") for number, each in enumerate(outcomes, 1)]


ENABLED = Standing("enabled", NOON)
OUTCOMES = st.text("FFFD", max_size=30)


@pytest.mark.parametrize(
    ("outcomes", "state"),
    [
        ("", "enabled"), ("FFFF", "enabled"), ("FFFFDF", "enabled"), ("FFFFF", "failing"), ("FFFFFD", "enabled"),
        ("G", "gone"), ("GD", "gone"), ("FFFFFG", "gone"), ("FFFFFDFFFF", "enabled"), ("FFFFFDFFFFF", "failing"),
    ],
)  # fmt: skip
def test_tries_change_an_endpoint(outcomes: str, state: str) -> None:
    assert judge(ENABLED, made(outcomes)).state == state


def test_a_failing_endpoint_knows_since_when_it_fails() -> None:
    tries = made("DFFFFF")
    failing = judge(ENABLED, tries)
    assert (failing.failing_since, failing.changed_at) == (tries[1].at, tries[-1].at)


def test_a_failure_five_days_later_disables_it_and_a_success_enables_it_again() -> None:
    failing = judge(ENABLED, made("FFFFF"))
    assert judge(failing, made("F", first=NOON + timedelta(days=4))).state == "failing"
    disabled = judge(failing, made("F", first=NOON + timedelta(days=5)))
    assert (disabled.state, disabled.failing_since) == ("disabled", failing.failing_since)
    assert judge(disabled, made("D", first=NOON + timedelta(days=6))) == Standing(
        "enabled", NOON + timedelta(days=6, seconds=1)
    )


def test_a_success_does_not_undo_what_a_user_did() -> None:
    by_hand = Standing("disabled", NOON)
    assert judge(by_hand, made("DDD")) is by_hand
    assert judge(by_hand, made("G")).state == "gone"


@given(outcomes=OUTCOMES, split=st.integers(0, 30))
def test_batches_and_repeated_tries_make_no_difference(outcomes: str, split: int) -> None:
    tries = made(outcomes)
    whole = judge(ENABLED, tries)
    first = judge(ENABLED, tries[:split])
    assert judge(first, tries) == whole
    assert judge(whole, tries) is whole


@given(outcomes=OUTCOMES)
def test_a_window_from_the_fifth_last_try_on_is_enough(outcomes: str) -> None:
    """One try after the other, as long as nothing else is recorded meanwhile."""
    tries, standing = made(outcomes), ENABLED
    for number in range(1, len(tries) + 1):
        standing = judge(standing, tries[max(0, number - 5) : number])
    assert standing == judge(ENABLED, tries)


@given(outcomes=OUTCOMES)
def test_tries_from_before_the_last_change_are_ignored(outcomes: str) -> None:
    later = Standing("enabled", NOON + timedelta(hours=1))
    assert judge(later, made(outcomes)) is later
