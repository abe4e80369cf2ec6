"""How an attempt's output is cut into events."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.services.actors.worker.context.unreported_output import UnreportedOutput, cut
from windlass.shared import scrubbing

SECRET = "a-configured-secret-of-ours"


@given(st.text(alphabet="ab\né€𝄞\r"), st.integers(4, 20))
def test_the_pieces_are_the_text_none_is_too_long_and_only_what_has_no_line_end_in_reach_is_cut_within_a_line(
    text: str, most: int
) -> None:
    pieces = list(cut(text, most))
    assert "".join(pieces) == text
    assert all(0 < len(piece.encode()) <= most for piece in pieces if text)
    for piece, following in pairwise(pieces):
        assert piece.endswith("\n") or "\n" not in piece
        if not piece.endswith("\n"):
            assert len((piece + following[0]).encode()) > most, "it was cut before it had to be"


def test_a_flood_is_several_events_of_whole_lines_in_order() -> None:
    lines = [f"{number:09d} {'x' * 64}\n" for number in range(5000)]
    output = UnreportedOutput(most_bytes=10_000_000, most_event_bytes=65_536)
    for line in lines:
        output.add(line, None)
    texts = [event["data"]["text"] for event in output.take().as_events()]
    assert "".join(texts) == "".join(lines)
    assert len(texts) == 6
    assert all(len(text) <= 65_536 and text.endswith("\n") for text in texts)


def test_each_event_of_a_flood_says_where_it_came_from() -> None:
    output = UnreportedOutput(most_bytes=100_000, most_event_bytes=1000)
    output.add("x" * 2500, "stderr")
    assert [(event["data"]["stream"], len(event["data"]["text"])) for event in output.take().as_events()] == [
        ("stderr", 1000),
        ("stderr", 1000),
        ("stderr", 500),
    ]


def test_a_secret_is_not_saved_by_a_cut_through_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrubbing._Configured, "secrets", ())
    monkeypatch.setattr(scrubbing._Configured, "needles", ())
    monkeypatch.setattr(scrubbing._Configured, "long", ())
    scrubbing.learn([SECRET])
    output = UnreportedOutput(most_bytes=100_000, most_event_bytes=1000)
    output.add("x" * 990 + SECRET + "y" * 990, None)
    said = "".join(event["data"]["text"] for event in output.take().as_events())
    assert said == "x" * 990 + scrubbing.SCRUBBED + "y" * 990
