"""The pictures of the report: they are what the numbers are, and a browser can read them."""

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import svg
from bench.figures import told

NAME = "{http://www.w3.org/2000/svg}"


def drawn(picture: str, element: str) -> list[dict[str, str]]:
    return [each.attrib for each in ET.fromstring(picture).iter(f"{NAME}{element}")]


def bars_of(picture: str) -> list[dict[str, str]]:
    return [each for each in drawn(picture, "rect") if each["class"] != "card" and each["width"] != "11"]


def test_a_bar_is_as_long_as_its_number() -> None:
    picture = svg.bars("t", "s", ["one", "two"], {"": [50, 200]}, unit="ms")
    short, long = (float(bar["width"]) for bar in bars_of(picture))
    assert long == pytest.approx(4 * short, rel=0.01)


def test_of_many_rows_only_ours_are_in_colour() -> None:
    picture = svg.bars("t", "s", ["Windlass", "Celery"], {"": [3, 1]}, unit="/s", ours=["Windlass"])
    assert [bar["class"] for bar in bars_of(picture)] == ["s0", "other"]


def test_several_series_have_colours_and_a_legend() -> None:
    picture = svg.bars("t", "s", ["1 stream"], {"median": [3], "99th percentile": [9]}, unit="ms")
    assert [bar["class"] for bar in bars_of(picture)] == ["s0", "s1"]
    assert ">99th percentile<" in picture


def test_lines_begin_at_zero_and_go_through_their_points() -> None:
    picture = svg.lines("t", "s", ["0", "100,000", "2,000,000"], {"a": [1, 1, 1], "b": [1, 1.5, 2]}, unit="x")
    flat, rising = (line["points"].split() for line in drawn(picture, "polyline"))
    heights = [float(point.split(",")[1]) for point in flat]
    assert heights == [heights[0]] * 3
    base = max(float(line["y1"]) for line in drawn(picture, "line"))
    assert base - float(rising[2].split(",")[1]) == pytest.approx(2 * (base - heights[2]), abs=0.3)


def test_every_text_keeps_its_signs() -> None:
    picture = svg.bars("a < b & c", 'a "quoted" s', ["<script>"], {"": [1]}, unit="%")
    texts = [each.text for each in ET.fromstring(picture).iter(f"{NAME}text")]
    assert texts[:3] == ["a < b & c", 'a "quoted" s', "<script>"]


@pytest.mark.parametrize(("value", "text"), [(2412.3, "2,412"), (99.4, "99.4"), (0.0421, "0.0421"), (0, "0")])
def test_numbers_are_told_with_the_digits_that_matter(value: float, text: str) -> None:
    assert told(value) == text


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=5))
def test_whatever_the_numbers_nothing_leaves_the_card(values: list[float]) -> None:
    labels = [str(number) for number in range(len(values))]
    picture = svg.bars("t", "s", labels, {"": values}, unit="ms")
    assert all(float(bar["x"]) + float(bar["width"]) <= svg.WIDTH - svg.MARGIN for bar in bars_of(picture))
    line = drawn(svg.lines("t", "s", labels, {"": values}, unit="ms"), "polyline")[0]
    assert all(svg.HEAD <= float(point.split(",")[1]) <= 400 for point in line["points"].split())
