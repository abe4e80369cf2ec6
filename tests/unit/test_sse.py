"""The client's reader of server-sent events: any text, cut anywhere."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from windlass.client.sse import Message, Parser

ONE_LINE = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]))


def parse(*pieces: bytes) -> list[Message]:
    parser = Parser()
    return [message for piece in pieces for message in parser.feed(piece)]


def test_a_message_has_an_id_a_name_and_data() -> None:
    assert parse(b'id: 7\nevent: output\ndata: {"a": 1}\n\n') == [Message("7", "output", '{"a": 1}')]


def test_lines_of_data_are_joined_and_a_space_after_the_colon_is_not_part_of_it() -> None:
    assert parse(b"data: one\ndata:two\ndata:  three\n\n") == [Message(None, "message", "one\ntwo\n three")]


def test_comments_retry_and_unknown_fields_are_no_messages() -> None:
    parser = Parser()
    assert list(parser.feed(b": ping\n\nretry: 1500\n\nretry: soon\n\nflavour: sweet\n\nevent: progress\n\n")) == []
    assert parser.retry_ms == 1500


def test_the_name_is_forgotten_and_the_id_is_kept() -> None:
    told = parse(b"id: 1\nevent: progress\ndata: a\n\n", b"data: b\n\n")
    assert told == [Message("1", "progress", "a"), Message("1", "message", "b")]


def test_what_is_not_finished_is_not_told() -> None:
    assert parse(b"id: 1\ndata: half a mess") == []
    assert parse(b"id: 1\ndata: whole, but not closed\n") == []


def test_only_cr_and_lf_end_a_line() -> None:
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"
    assert parse(f"data: {text}\r\n\r\n".encode()) == [Message(None, "message", text)]
    assert parse(b"data: a\r\rdata: b\r\r\n") == [Message(None, "message", "a"), Message(None, "message", "b")]


@given(
    texts=st.lists(
        st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])), min_size=1, max_size=4
    ),
    end=st.sampled_from(["\n", "\r", "\r\n"]),
    cuts=st.lists(st.integers(0, 400), max_size=12),
)
def test_it_does_not_matter_where_the_bytes_are_cut(texts: list[str], end: str, cuts: list[int]) -> None:
    whole = "".join(
        f"id: {number}{end}event: output{end}data: {text}{end}{end}" for number, text in enumerate(texts)
    ).encode()
    places = sorted({0, *(cut for cut in cuts if cut < len(whole)), len(whole)})
    pieces = [whole[start:stop] for start, stop in itertools.pairwise(places)]
    # A CR at the very end may be half of a CR LF; the next byte, whatever it is, decides.
    told = parse(*pieces, b": ping\n\n")
    assert told == [Message(str(number), "output", text) for number, text in enumerate(texts)]
