"""The load of a storm is thrown by dice, and has everything in it that a storm is to disturb."""

import random
from collections import Counter
from typing import Any

import pytest

from tests.chaos.load.wishes import Kinds, Wish, plan
from windlass.services.fake_providers.behaviour import words_in
from windlass.shared.actors.payloads import PAYLOADS

KINDS = Kinds(probe_providers=("probe", "narrow"))


@pytest.fixture(scope="module")
def wishes() -> list[Wish]:
    return plan(random.Random(7), tasks=2000, seconds=300, kinds=KINDS)


def test_the_same_dice_throw_the_same_load(wishes: list[Wish]) -> None:
    """But for the marks: no order of another run may be taken for one of this run's."""

    def without_marks(wish: Wish) -> Any:
        return repr(wish).replace(wish.mark, "mark")

    again = plan(random.Random(7), tasks=2000, seconds=300, kinds=KINDS)
    assert list(map(without_marks, again)) == list(map(without_marks, wishes))
    assert {wish.mark for wish in again}.isdisjoint(wish.mark for wish in wishes)
    other = plan(random.Random(8), tasks=2000, seconds=300, kinds=KINDS)
    assert list(map(without_marks, other)) != list(map(without_marks, wishes))


def test_all_kinds_of_work_and_of_clients_are_in_it(wishes: list[Wish]) -> None:
    actors = Counter(wish.body["actor"] for wish in wishes)
    assert set(actors) == {"probe", "media", "summarize", "agent"}
    assert min(actors.values()) >= 50
    outcomes = Counter(wish.body["payload"].get("outcome") for wish in wishes if wish.body["actor"] == "probe")
    assert set(outcomes) == {None, "transient", "permanent", "crash", "hang"}
    assert {wish.body.get("provider") for wish in wishes} >= {"probe", "narrow", "leonardo", "midjourney"}
    assert 150 < sum(wish.is_followed for wish in wishes) < 350
    for kind in ("is_careless", "is_repeated", "is_revived", "parents"):
        assert sum(bool(getattr(wish, kind)) for wish in wishes) > 20, kind
    assert sum(wish.cancel_after is not None for wish in wishes) > 50
    assert sum(wish.batch is not None for wish in wishes) > 100


def test_every_payload_is_one_that_its_actor_takes(wishes: list[Wish]) -> None:
    for wish in wishes:
        PAYLOADS[wish.body["actor"]].model_validate(wish.body["payload"])


def test_a_mark_is_found_in_whatever_its_provider_is_told(wishes: list[Wish]) -> None:
    assert len({wish.mark for wish in wishes}) == len(wishes)
    for wish in wishes:
        text = wish.body["payload"].get("prompt") or wish.body["payload"].get("content")
        if text is not None:
            assert wish.mark in text.split()
            assert len(list(words_in(text))) == text.count("[["), "each word is one that the fake providers know"


def test_parents_come_before_their_children_and_a_batch_at_one_time(wishes: list[Wish]) -> None:
    for wish in wishes:
        assert all(number < wish.number for number in wish.parents)
        assert not (wish.parents and wish.batch is not None)
    times: dict[int, set[float]] = {}
    for wish in wishes:
        if wish.batch is not None:
            times.setdefault(wish.batch, set()).add(wish.at)
    assert all(len(each) == 1 for each in times.values())
