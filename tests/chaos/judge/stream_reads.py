"""Criterion 6: what clients of the streams saw is what stands in the rows, each event once and in its place."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tests.chaos.judge.rows import EventRow, Rows
from tests.chaos.judge.violation import STREAM_BROKEN, Violation
from tests.chaos.record import ManyRead, Record, StreamRead

UNTOLD = {"dispatch", "cancel-requested", "hold", "release", "approve", "reject", "recall"}
"""Rows that change neither state nor progress: the streams leave them out, and their numbers with them."""

ENDS = {"complete", "error", "cancelled"}


def broken_streams(record: Record, rows: Rows) -> Iterator[Violation]:
    for task_id, row in rows.tasks.items():
        numbers = [event.seq for event in rows.events.get(task_id, ())]
        if numbers != list(range(1, row.last_seq + 1)):
            words = f"the history of task {task_id} has the numbers {_short(numbers)} and goes to {row.last_seq}"
            yield Violation(STREAM_BROKEN, words, task_id)
    for read in record.streams:
        for words in _faults_of(read, rows.events.get(read.task_id, ())):
            yield Violation(STREAM_BROKEN, f"stream of task {read.task_id}: {words}", read.task_id)
    for many in record.many_streams:
        yield from _faults_of_many(many, rows)


def _faults_of(read: StreamRead, events: Sequence[EventRow]) -> Iterator[str]:
    """A stream that its client has read to the end ends with an end; the task may have been revived since."""
    told = {event.seq: event for event in events if event.type not in UNTOLD}
    yield from _wrong_numbers(read.seqs, [seq for seq in told if read.seqs and seq <= max(read.seqs)])
    for seq, name in zip(read.seqs, read.types, strict=True):
        event = told.get(seq)
        if event is not None and (name == "output") != (event.type == "output"):
            yield f"seq {seq} came as `{name}`, and the row is `{event.type}`"
    if not read.is_whole:
        yield f"never came to its end, over {read.connections} connections ({len(read.seqs)} events)"
    elif not read.types or read.types[-1] not in ENDS:
        yield f"was closed for good without an end; its last event is {read.types[-1:] or 'none'}"
    elif any(
        name in ENDS and not _is_revival(told.get(then)) for name, then in zip(read.types, read.seqs[1:], strict=False)
    ):
        yield "went on after an end"


def _is_revival(event: EventRow | None) -> bool:
    """A client that had left with the end, and came back, is told of the next life."""
    return event is not None and event.type == "revive"


def _wrong_numbers(seen: Sequence[int], told: Sequence[int]) -> Iterator[str]:
    if repeated := sorted({seq for seq in seen if seen.count(seq) > 1}):
        yield f"seq {_short(repeated)} came more than once"
    if missing := sorted(set(told) - set(seen)):
        yield f"seq {_short(missing)} never came"
    if strange := sorted(set(seen) - set(told)):
        yield f"seq {_short(strange)} came, and no such row is to be told"
    if list(seen) != sorted(seen):
        yield "its events came in another order than they have in the rows"


def _faults_of_many(read: ManyRead, rows: Rows) -> Iterator[Violation]:
    """Between its marks, in the order of commit, it must have seen everything; around them it may have seen more."""
    if not read.is_whole:
        words = f"the many-task stream never came to its last mark, over {read.connections} connections"
        yield Violation(STREAM_BROKEN, words, read.last_mark or None)
    first = min((event.xid for event in rows.events.get(read.first_mark, ())), default=0)
    # What was committed together comes by task and seq: of that, a client has left with its mark's end.
    last = max(((event.xid, read.last_mark, event.seq) for event in rows.events.get(read.last_mark, ())), default=())
    seen: dict[str, list[int]] = defaultdict(list)
    for task_id, seq in read.events:
        seen[task_id].append(seq)
    for task_id, events in rows.events.items():
        told = {event.seq: event.xid for event in events if event.type not in UNTOLD}
        due = [seq for seq, xid in told.items() if first <= xid and (xid, task_id, seq) <= last]
        also = [seq for seq in seen[task_id] if seq in told and seq not in due]
        for words in _wrong_numbers(seen[task_id], sorted({*due, *also})):
            yield Violation(STREAM_BROKEN, f"many-task stream, task {task_id}: {words}", task_id)
    for task_id in seen.keys() - rows.events.keys():
        yield Violation(STREAM_BROKEN, f"the many-task stream told of a task {task_id} that has no history", task_id)


def _short(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + (", …" if len(numbers) > 8 else "")
