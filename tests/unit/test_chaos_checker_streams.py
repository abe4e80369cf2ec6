"""The judge of storms, on streams: every gap and every repeat is found."""

from dataclasses import replace

import pytest

from tests.chaos.record import ManyRead, Record, StreamRead
from tests.support.chaos_stories import HAPPY, a_task, events, record_of, rows_of, wrong


def read(*seqs: int, types: tuple[str, ...] | None = None, is_whole: bool = True) -> StreamRead:
    names = types or (*["progress"] * (len(seqs) - 1), "complete")
    return StreamRead("a", seqs, names, 2, is_whole=is_whole)


def test_a_stream_that_has_everything_once_is_right() -> None:
    """The row that says `dispatch` is not told."""
    assert wrong(record_of("a", streams=[read(1, 3, 4, 5)]), rows_of(a_task("a"))) == set()


@pytest.mark.parametrize(
    "seen",
    [
        read(1, 3, 5),
        read(1, 3, 4, 4, 5),
        read(1, 4, 3, 5),
        read(3, 4, 5),
        read(1, 2, 3, 4, 5),
        read(1, 3, 4, 5, 6),
        read(1, 3, 4, types=("progress", "progress", "progress")),
        read(1, 3, 4, 5, is_whole=False),
        read(1, 3, 4, 5, types=("progress", "complete", "progress", "complete")),
        read(1, 3, 4, 5, types=("progress", "progress", "output", "complete")),
    ],
)
def test_a_stream_that_is_wrong_in_one_thing_is_found(seen: StreamRead) -> None:
    assert wrong(record_of("a", streams=[seen]), rows_of(a_task("a"))) == {6}


def test_a_stream_may_end_with_an_earlier_life() -> None:
    revived = a_task("a", "submit", "claim", "bury", "revive", "claim", "complete")
    seen = read(1, 2, 3, types=("progress", "progress", "error"))
    assert wrong(record_of("a", streams=[seen]), rows_of(revived)) == set()


def test_a_history_with_a_gap_is_found() -> None:
    row, story = a_task("a")
    del story[3]
    assert wrong(record_of("a"), rows_of((row, story))) == {6}


def test_the_many_task_stream_has_everything_between_its_marks() -> None:
    first, last, other = a_task("first"), a_task("last"), a_task("other")
    for number, (_, story) in enumerate((first, other, last)):
        story[:] = [replace(event, xid=1000 * number + event.xid) for event in story]
    rows = rows_of(first, other, last)
    everything = [(task, seq) for task in ("first", "other", "last") for seq in (1, 3, 4, 5)]

    def seen(*told: tuple[str, int]) -> Record:
        return record_of("first", "other", "last", many_streams=[ManyRead("first", "last", told, 3)])

    assert wrong(seen(*everything), rows) == set()
    assert wrong(seen(*[each for each in everything if each != ("other", 4)]), rows) == {6}
    assert wrong(seen(*everything, ("other", 4)), rows) == {6}
    assert wrong(seen(*everything, ("unheard-of", 1)), rows) == {6}


def test_what_was_committed_with_the_last_mark_may_come_after_it() -> None:
    """In one commit the order is by task: this client has left before the later one's turn."""
    first, (later_row, _), (last_row, _) = a_task("a"), a_task("z"), a_task("m")
    ended = [replace(event, xid=5000) for event in events(*HAPPY)]
    rows = rows_of(first, (later_row, ended), (last_row, ended))
    told = tuple((task, seq) for task in ("a", "m") for seq in (1, 3, 4, 5))
    record = record_of("a", "m", "z", many_streams=[ManyRead("a", "m", told, 1)])
    assert wrong(record, rows) == set()
    record.many_streams = [ManyRead("a", "m", told, 1, is_whole=False)]
    assert wrong(record, rows) == {6}
    record.many_streams = [ManyRead("a", "z", told, 1)]
    assert wrong(record, rows) == {6}
