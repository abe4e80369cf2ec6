"""What came from outside, so that Postgres can keep it."""

import json
from dataclasses import dataclass

import pytest

from windlass.shared.storable import is_deeper_than, storable, storable_text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("plain", "plain"),
        ("漢🙂", "漢🙂"),
        ("a\0b", "a\ufffdb"),
        ("a\ud800b", "a\ufffdb"),
        ("a\udc00", "a\ufffd"),
        ("\ud83d\ude42", "🙂"),
        ("\0\ud800🙂", "\ufffd\ufffd🙂"),
    ],
)
def test_a_text_has_a_replacement_where_postgres_has_no_character(text: str, kept: str) -> None:
    assert storable_text(text) == kept


def test_a_document_is_mended_in_its_names_and_values_at_every_depth() -> None:
    value = json.loads(r'{"a\u0000": [1, {"b": "\ud800"}], "c": "\\u0000", "d": null}')
    assert storable(value) == {"a\ufffd": [1, {"b": "\ufffd"}], "c": r"\u0000", "d": None}


@dataclass
class Line:
    text: str


def test_a_dataclass_is_mended_as_what_is_written_of_it() -> None:
    assert storable([Line("a\0b")]) == [{"text": "a\ufffdb"}]


def test_a_document_that_is_well_is_given_back_as_it_is() -> None:
    assert storable(well := {"a": ["b", 1.5, None]}) is well
    assert storable(odd := {"a": object()}) is odd


@pytest.mark.parametrize(("value", "depth"), [(1, 0), ([], 1), ({"a": [{}, "x"]}, 3), ([[], [[]]], 3)])
def test_depth_counts_what_stands_inside_one_another(value: object, depth: int) -> None:
    assert not is_deeper_than(value, depth)
    assert depth == 0 or is_deeper_than(value, depth - 1)
