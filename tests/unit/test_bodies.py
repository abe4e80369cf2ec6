"""A request's body before anybody looks at its fields: what is refused, and where it stands."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.services.api.http.bodies import (
    is_harmless,
    may_repeat_names,
    refuse_other_types,
    refuse_repeated_names,
    refuse_unstorable,
)
from windlass.services.api.http.errors import Problem
from windlass.shared.settings import Settings

SETTINGS = Settings()
SHALLOW = Settings(deepest_json=8)


def nested(levels: int) -> Any:
    value: Any = []
    for number in range(levels - 1):
        value = [value] if number % 2 else {"below": value}
    return value


def refused(value: Any) -> tuple[int, str, str]:
    assert not is_harmless(json.dumps(value).encode(), SETTINGS.deepest_json)
    with pytest.raises(Problem) as problem:
        refuse_unstorable(value, SETTINGS)
    assert problem.value.errors is not None
    return problem.value.status, problem.value.code, problem.value.errors[0]["pointer"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"actor": "probe", "payload": {"result": "nul\0"}}, "/payload/result"),
        ({"actor": "probe", "payload": {"result": {"deep": ["fine", "nul\0"]}}}, "/payload/result/deep/1"),
        ({"actor": "probe", "payload": {"result": {"nul\0": 1}}}, "/payload/result"),
        ({"tasks": [{}, {"tags": ["nul\0"]}]}, "/tasks/1/tags/0"),
        ({"a/b~c": "nul\0"}, "/a~1b~0c"),
        ("nul\0", ""),
    ],
)
def test_a_nul_in_a_string_is_refused_and_named(body: Any, pointer: str) -> None:
    """Postgres cannot store one."""
    assert refused(body) == (422, "nul-character", pointer)


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**400])
def test_an_integer_beyond_64_bits_is_refused_and_named(number: int) -> None:
    assert refused({"payload": {"result": [1, number]}}) == (422, "number-too-large", "/payload/result/1")


@pytest.mark.parametrize("number", [2**64 - 1, -(2**63), 0, 1.5, True, None, 1e308])
def test_other_numbers_are_fine(number: Any) -> None:
    refuse_unstorable({"payload": {"result": number}}, SETTINGS)


def test_json_may_be_nested_64_levels_deep_and_no_deeper() -> None:
    assert is_harmless(json.dumps(nested(64)).encode(), SETTINGS.deepest_json)
    refuse_unstorable(nested(64), SETTINGS)
    assert refused(nested(65))[:2] == (422, "nested-too-deep")
    hidden: Any = []
    for _ in range(64):
        hidden = ["]", hidden, '"[\\']
    assert refused(hidden)[:2] == (422, "nested-too-deep")


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda below: st.lists(below) | st.dictionaries(st.text(), below)
    )
)
def test_what_the_quick_look_passes_is_storable(value: Any) -> None:
    if is_harmless(msgspec.json.encode(value), 8):
        refuse_unstorable(value, SHALLOW)


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": 1, "a": 1}',
        b'{"a": {"b": [{"c": 1, "d": ":", "c": 2}]}}',
        b'{"a": 1, "b": "\\u003a", "a": 2}',
        b'{"\\u0061": 1, "a": 2}',
        b'{"a": {"b": 1}, "c": "\\u003A\\u003A", "a": {}}',
    ],
)
def test_a_repeated_name_is_refused_however_it_is_written(body: bytes) -> None:
    assert may_repeat_names(body, msgspec.json.decode(body))
    with pytest.raises(Problem, match="twice"):
        refuse_repeated_names(body)


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(), lambda below: st.lists(below) | st.dictionaries(st.text(), below)
    )
)
def test_names_that_differ_are_taken_whatever_colons_the_texts_have(value: Any) -> None:
    content = json.dumps(value).encode()
    assert not may_repeat_names(content, msgspec.json.decode(content)), content
    refuse_repeated_names(content)


@pytest.mark.parametrize(
    "kind", [None, "application/json", "Application/JSON; charset=utf-8", "application/vnd.windlass+json"]
)
def test_json_and_undeclared_bodies_are_taken(kind: str | None) -> None:
    refuse_other_types(kind)


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "multipart/form-data; boundary=x", "application/xml", ""],
)
def test_a_body_declared_as_something_else_is_refused(kind: str) -> None:
    with pytest.raises(Problem) as problem:
        refuse_other_types(kind)
    assert (problem.value.status, problem.value.code) == (415, "unsupported-media-type")
    assert "application/json" in problem.value.detail
