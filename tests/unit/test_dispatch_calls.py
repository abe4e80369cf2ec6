"""Calls for the dispatcher gather until its next look."""

from windlass.services.dispatcher.calls import Calls


def taken(calls: Calls) -> set[str] | None:
    assert calls.heard.is_set()
    names = calls.take()
    assert not calls.heard.is_set()
    return names


def test_the_first_look_is_at_all_of_them() -> None:
    assert Calls().take() is None


def test_names_gather_and_are_taken_once() -> None:
    calls = Calls()
    calls.take()
    calls.hear("one\ntwo")
    calls.hear("two")
    calls.call({"three"})
    assert taken(calls) == {"one", "two", "three"}
    assert calls.take() == set()


def test_a_call_without_a_name_is_for_all_whoever_else_was_named() -> None:
    for payload in ("", "*"):
        calls = Calls()
        calls.take()
        calls.hear("one")
        calls.hear(payload)
        assert taken(calls) is None
        assert calls.take() == set(), "those that were named have been looked at, too"


def test_nobody_named_calls_nobody() -> None:
    calls = Calls()
    calls.call(set())
    assert not calls.heard.is_set()


def test_what_was_answered_calls_nobody_once() -> None:
    calls = Calls()
    calls.take()
    calls.answer("one")
    calls.hear("one")
    assert not calls.heard.is_set()
    calls.hear("one")
    assert taken(calls) == {"one"}


def test_a_notice_of_others_is_heard_whatever_was_answered() -> None:
    calls = Calls()
    calls.take()
    calls.answer("one")
    calls.hear("two\none")
    assert taken(calls) == {"one", "two"}
    calls.hear("one")
    assert taken(calls) == {"one"}
