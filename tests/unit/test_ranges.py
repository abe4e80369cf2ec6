"""Which part of a file a `Range` means, and when a client has the file already."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.services.api.media.ranges import Unsatisfiable, is_named, still_applies, wanted_range


@pytest.mark.parametrize(
    ("header", "part"),
    [
        ("bytes=0-0", (0, 1)),
        ("bytes=2-5", (2, 6)),
        ("bytes=2-", (2, 10)),
        ("bytes=-3", (7, 10)),
        ("bytes=-30", (0, 10)),
        ("bytes=4-400", (4, 10)),
        ("BYTES = 1 - 2", (1, 3)),
    ],
)
def test_a_single_range_is_a_part_of_the_file(header: str, part: tuple[int, int]) -> None:
    assert wanted_range(header, 10) == part


@pytest.mark.parametrize(
    "header",
    [None, "", "bytes=", "bytes=-", "bytes=5-2", "bytes=0-1,3-4", "items=0-1", "bytes=a-b", "bytes=1-\u0663"],
)
def test_what_cannot_be_understood_or_is_more_than_one_means_the_whole_file(header: str | None) -> None:
    assert wanted_range(header, 10) is None


@pytest.mark.parametrize(
    ("header", "size"), [("bytes=10-", 10), ("bytes=11-12", 10), ("bytes=-0", 10), ("bytes=-1", 0)]
)
def test_bytes_that_the_file_does_not_have_cannot_be_sent(header: str, size: int) -> None:
    with pytest.raises(Unsatisfiable):
        wanted_range(header, size)


@given(header=st.from_regex(r"bytes=[0-9]{0,4}-[0-9]{0,4}", fullmatch=True), size=st.integers(0, 2000))
def test_a_part_lies_within_the_file_and_is_not_empty(header: str, size: int) -> None:
    try:
        part = wanted_range(header, size)
    except Unsatisfiable:
        return
    if part is not None:
        assert 0 <= part[0] < part[1] <= size


@pytest.mark.parametrize(
    ("headers", "named"),
    [
        ([], False),
        (['"abc"'], True),
        (['"x", "abc"'], True),
        (['"x"', 'W/"abc"'], True),
        (["*"], True),
        (['"ab"'], False),
        (["abc"], False),
    ],
)
def test_a_client_that_names_the_file_has_it_already(headers: list[str], named: bool) -> None:
    assert is_named('"abc"', headers) is named


@pytest.mark.parametrize(
    ("if_range", "applies"),
    [(None, True), ('"abc"', True), ('W/"abc"', False), ('"old"', False), ("Mon, 16 Nov 2026 10:00:00 GMT", False)],
)
def test_a_range_applies_only_to_the_file_that_the_client_began_with(if_range: str | None, applies: bool) -> None:
    assert still_applies('"abc"', if_range) is applies
