"""The ids of the stream over many tasks: what goes in comes out, and nothing else is taken."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.services.api.http.errors import Problem
from windlass.services.api.streams.cursors import LARGEST_SEQ, LARGEST_XID, Cursor, read_cursor
from windlass.shared.store.reading.commit_order import Position

TEXT_LENGTH = 38
"""Of a cursor with nothing ahead; whatever has it may happen to be one."""

seqs = st.integers(0, LARGEST_SEQ)
cursors = st.builds(
    Cursor,
    st.builds(Position, st.integers(0, LARGEST_XID), st.uuids(), seqs),
    st.frozensets(st.tuples(st.uuids(), seqs), max_size=3),
)


@given(cursors)
def test_a_cursor_survives_its_way_through_a_client(cursor: Cursor) -> None:
    text = str(cursor)
    assert text.isascii()
    assert text.isprintable()
    assert read_cursor(text) == cursor


@given(st.text("AZaz09-_=+/ é", max_size=60).filter(lambda text: len(text) != TEXT_LENGTH))
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(Problem) as refused:
        read_cursor(text)
    assert (refused.value.status, refused.value.code) == (400, "invalid-event-id")


@pytest.mark.parametrize("xid", [LARGEST_XID + 1, 2**64 - 1])
def test_a_number_that_no_transaction_can_have_is_refused(xid: int) -> None:
    with pytest.raises(Problem):
        read_cursor(str(Cursor(Position(xid, UUID(int=1), 1))))
