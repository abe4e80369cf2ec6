"""Long text in parts: nothing lost, nothing doubled, and cut where a reader would pause."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from windlass.services.actors.summarize.splitting import split

by_the_hundred = settings(max_examples=300, derandomize=True, deadline=None)

PROSE = st.lists(
    st.sampled_from(
        ["A word", "another", "3.5 percent", "e.g.", "Dr. Who", " ", ". ", "! ", "?”\n", "\n\n", "。", "é"]
    ),
    max_size=80,
).map("".join)


def sentences(number: int) -> str:
    return " ".join(f"This is sentence number {n}." for n in range(number))


@by_the_hundred
@given(text=PROSE | st.text(max_size=400), limit=st.integers(1, 120))
@example(text="", limit=1)
@example(text="\n" * 50, limit=7)
@example(text="x" * 50, limit=7)
def test_the_parts_joined_are_the_text_and_none_is_longer_than_the_limit(text: str, limit: int) -> None:
    parts = split(text, limit)
    assert "".join(parts) == text
    assert all(len(part) <= limit for part in parts)
    assert all(parts) or text == ""


@by_the_hundred
@given(text=PROSE, limit=st.integers(1, 120))
def test_few_parts_are_made(text: str, limit: int) -> None:
    """Each part but the last is at least a quarter of the limit, so that nobody pays for many small calls."""
    assert all(4 * len(part) >= limit for part in split(text, limit)[:-1] if len(text) > limit)


def test_a_text_within_the_limit_stays_whole() -> None:
    assert split("One. Two.", 9) == ["One. Two."]
    assert split("", 9) == [""]


def test_paragraphs_are_kept_together_where_they_fit() -> None:
    paragraphs = [f"{sentences(3)}\n\n" for _ in range(6)]
    assert split("".join(paragraphs), 2 * len(paragraphs[0]) + 20) == [
        "".join(paragraphs[:2]), "".join(paragraphs[2:4]), "".join(paragraphs[4:]),
    ]  # fmt: skip


def test_the_end_of_a_paragraph_goes_before_a_sentence_that_would_make_the_parts_more_alike() -> None:
    longer, shorter = f"{sentences(5)}\n\n", sentences(3)
    assert split(longer + shorter, len(longer) + 5) == [longer, shorter]


def test_a_long_paragraph_is_cut_after_a_sentence() -> None:
    parts = split(sentences(40), 300)
    assert len(parts) > 2
    assert all(part.rstrip().endswith(".") for part in parts)
    assert all(part.startswith("This is") for part in parts)


@pytest.mark.parametrize(
    ("text", "limit", "parts"),
    [
        ("It costs 3.50 dollars today. Not more.", 30, ["It costs 3.50 dollars today. ", "Not more."]),
        ("Fruit, e.g. apples and pears. Or none.", 32, ["Fruit, e.g. apples and pears. ", "Or none."]),
        ("Fruit, e.g.  apples and pears. Or none.", 33, ["Fruit, e.g.  apples and pears. ", "Or none."]),
        ("“Is it far?” She nodded. He sighed.", 25, ["“Is it far?” ", "She nodded. He sighed."]),
        ("这是第一句话。这是第二句话。", 8, ["这是第一句话。", "这是第二句话。"]),
    ],
)
def test_what_ends_a_sentence(text: str, limit: int, parts: list[str]) -> None:
    assert split(text, limit) == parts


def test_a_sentence_without_end_is_cut_between_words() -> None:
    parts = split("word " * 100, 48)
    assert all(part == "word " * (len(part) // 5) for part in parts)


def test_what_has_no_pause_at_all_is_cut_all_the_same() -> None:
    assert [len(part) for part in split("x" * 100, 40)] == [34, 33, 33]


def test_the_last_part_is_no_crumb() -> None:
    """A few characters over the limit make two halves, not one full part and a word."""
    text = sentences(20)
    first, second = split(text, len(text) - 5)
    assert 0.5 < len(first) / len(second) < 2
