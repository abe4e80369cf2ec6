"""Two versions side by side: what both take is accepted; and what becomes of a task whose version has gone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.shared.actors.definition import Definition
from windlass.shared.actors.mistakes import mistakes_in
from windlass.shared.actors.versions import Sibling, Version, after_a_refusal, faults_by_any


def definition(required: Any = (), optional: Any = (), **fields: Any) -> Definition:
    schema = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in (*required, *optional)},
        "required": sorted(required),
        "additionalProperties": False,
    }
    return Definition(**{"name": "translate", "payload_schema": schema, **fields})


def version(**fields: Any) -> Version:
    return Version.of(definition(**fields))


names = st.sets(st.sampled_from("abcd"), max_size=3)
versions = st.builds(lambda required, optional: version(required=required, optional=optional - required), names, names)


@given(st.lists(versions, min_size=1, max_size=3), names)
def test_what_all_take_is_accepted_and_nothing_else(running: list[Version], given_fields: set[str]) -> None:
    payload = dict.fromkeys(sorted(given_fields), "x")
    faults = faults_by_any(running, payload)
    assert bool(faults) is not all(each.takes(payload) for each in running)
    if faults and any(each.takes(payload) for each in running):
        refusing = {each.name for each in running if not each.takes(payload)}
        assert all(any(f"version {name}" in fault.detail for name in refusing) for fault in faults)


def test_what_only_the_old_one_refuses_names_it_and_the_one_that_would_take_it() -> None:
    new, old = version(required=["text"], optional=["tone"]), version(required=["text"])
    ((place, words),) = faults_by_any([new, old], {"text": "hi", "tone": "dry"})
    assert place == ("tone",)
    assert words == (
        "there is no such field; there are text "
        f"(says version {old.name}, which still runs; version {new.name} would take it)"
    )
    assert faults_by_any([new], {"text": "hi", "tone": "dry"}) == []


def test_what_both_refuse_alike_is_said_once_and_plainly() -> None:
    both = [version(required=["text"], optional=["tone"]), version(required=["text"])]
    assert [tuple(fault) for fault in faults_by_any(both, {"text": 1})] == [(("text",), "must be text in quotes")]


def test_what_each_refuses_in_its_own_way_is_said_with_both_names() -> None:
    one, other = version(required=["text"]), version(required=["words"])
    said = faults_by_any([one, other], {})
    assert {fault.place for fault in said} == {("text",), ("words",)}
    assert all("says version" in fault.detail for fault in said)


siblings = st.lists(st.builds(Sibling, st.sampled_from(["own", "a", "b"]), st.booleans(), st.booleans()), max_size=4)


@given(siblings)
def test_a_refused_task_is_handed_back_exactly_while_somebody_lives_who_takes_it(known: list[Sibling]) -> None:
    refusal = after_a_refusal("translate", "own", "/text must be given", known)
    others = [each for each in known if each.name != "own"]
    assert (refusal is None) == any(each.lives and each.takes for each in others)
    if refusal is not None:
        assert refusal.kind == "permanent"
        assert "version own of translate" in refusal.message
        assert all(each.name in refusal.message for each in others if each.takes)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "Translate"}, "must be small letters, digits and hyphens, a letter first"),
        ({"name": "batch"}, "is reserved, as bulk and requeue-orphaned are"),
        ({"provider": "No One"}, "its provider 'No One'"),
        ({"concurrency_key": ("account",)}, "is no JSON Pointer"),
        ({"payload_schema": {"type": "string"}}, "not that of an object"),
        ({"payload_schema": {"type": "object", "$ref": "http://x/y"}}, "nothing is fetched"),
    ],
)
def test_a_definition_that_is_wrong_says_so_in_a_sentence(fields: dict[str, Any], words: str) -> None:
    (mistake,) = mistakes_in(definition(**fields))
    assert mistake.startswith(f"{fields.get('name', 'translate')}: ")
    assert words in mistake


def test_a_definition_that_is_right_has_no_mistakes() -> None:
    assert mistakes_in(definition(required=["text"], provider="deepl", concurrency_key=("/account",))) == []
