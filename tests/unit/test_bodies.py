"""A request's body before anybody looks at its fields: what is refused, and where it stands."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from windlass.services.api.http.bodies import (
    brackets_of,
    fault_of,
    refuse_other_types,
    refuse_repeated_names,
    refuse_unstorable,
)
from windlass.services.api.http.errors import Problem
from windlass.shared.actors.new_task import NewTask
from windlass.shared.settings import Settings

SETTINGS = Settings()
SHALLOW = Settings(deepest_json=8)


def nested(levels: int) -> Any:
    value: Any = []
    for number in range(levels - 1):
        value = [value] if number % 2 else {"below": value}
    return value


def fault(content: bytes, settings: Settings = SETTINGS) -> Problem | None:
    return fault_of(content, msgspec.json.decode(content), brackets_of(content, settings.deepest_json), settings)


def refused(value: Any) -> tuple[int, str, str]:
    with pytest.raises(Problem) as problem:
        refuse_unstorable(value, SETTINGS)
    without_a_place = fault(json.dumps(value).encode())
    assert without_a_place is not None
    assert (without_a_place.status, without_a_place.code) == (problem.value.status, problem.value.code)
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
    body = {"payload": {"result": number}}
    refuse_unstorable(body, SETTINGS)
    assert fault(json.dumps(body).encode()) is None


def test_json_may_be_nested_64_levels_deep_and_no_deeper() -> None:
    assert fault(json.dumps(nested(64)).encode()) is None
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
def test_a_fault_is_found_exactly_where_a_search_names_its_place(value: Any) -> None:
    found = fault(json.dumps(value).encode(), SHALLOW)
    if found is None:
        refuse_unstorable(value, SHALLOW)
    else:
        with pytest.raises(Problem):
            refuse_unstorable(value, SHALLOW)


@pytest.mark.parametrize(
    ("number", "is_fine"),
    [
        (b"-9223372036854775808", True),
        (b"-9223372036854775809", False),
        (b"18446744073709551615", True),
        (b"18446744073709551616", False),
        (b"0." + b"9" * 30, True),
        (b"9" * 30 + b".5", True),
        (b"9" * 30 + b"e-1", True),
        (b"1e-" + b"0" * 30, True),
        (b"1E+" + b"0" * 30, True),
        (b'"' + b"9" * 30 + b'"', True),
        (rb'"\"' + b"9" * 30 + rb'\\"', True),
    ],
)
def test_only_an_integer_is_too_large(number: bytes, is_fine: bool) -> None:
    for body in (number, b'["1", %b, "2"]' % number, b'{"a": "%b", "b": %b}' % (b"9" * 30, number)):
        assert (fault(body) is None) == is_fine, body


@pytest.mark.parametrize("text", ["\\u0000", '"[{', "9" * 30, "\\u003a:", '\\"[', "\\\\"])
def test_a_text_that_looks_like_a_fault_is_none(text: str) -> None:
    assert fault(json.dumps({text: [text] * 100}).encode()) is None
    assert fault(json.dumps({text: [[text]] * 100}).encode()) is None


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": 1, "a": 1}',
        b'{"a": {"b": [{"c": 1, "d": ":", "c": 2}]}}',
        b'{"a": 1, "b": "\\u003a", "a": 2}',
        b'{"\\u0061": 1, "a": 2}',
        b'{"a": {"b": 1}, "c": "\\u003A\\u003A", "a": {}}',
        b'{"a": "\\u003a\\\\u003a", "a": ":"}',
    ],
)
def test_a_repeated_name_is_refused_however_it_is_written(body: bytes) -> None:
    found = fault(body)
    assert found is not None
    assert found.code == "duplicate-name"
    with pytest.raises(Problem, match="twice"):
        refuse_repeated_names(body)


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(), lambda below: st.lists(below) | st.dictionaries(st.text(), below)
    )
)
def test_names_that_differ_are_taken_whatever_colons_the_texts_have(value: Any) -> None:
    content = json.dumps(value).replace(":", "\\u003a").replace('"\\u003a ', '": ').encode()
    refuse_repeated_names(content)
    found = fault(content)
    assert found is None or found.code != "duplicate-name"


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


def test_an_object_with_too_many_fields_is_refused_as_a_whole() -> None:
    fields = {f"a{number}": 1 for number in range(1001)}
    for body, place in (({"actor": "probe", **fields}, ()), ({"actor": "probe", "approval": fields}, ("approval",))):
        with pytest.raises(ValidationError) as refused:
            NewTask.model_validate(body)
        (error,) = refused.value.errors()
        assert (error["loc"], error["type"]) == (place, "too_many_fields")
