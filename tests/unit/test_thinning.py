"""What a list hears: every change of state at once, progress once a second, and one `resync` for a storm."""

from types import SimpleNamespace
from typing import cast
from uuid import UUID

from windlass.services.api.streams.cursors import Cursor
from windlass.services.api.streams.thinning import MOST_A_SECOND, Read, StateOnly
from windlass.shared.store.reading.commit_order import BEGINNING, Position
from windlass.shared.store.reading.events import EventWithState

A, B = UUID(int=1), UUID(int=2)


class Story:
    """Events in the order of commit, each with a cursor whose number is its own; what is told is named by numbers."""

    def __init__(self) -> None:
        self.telling = StateOnly(Cursor(BEGINNING))
        self.number = 0

    def hears(self, now: float, *events: tuple[UUID, str]) -> list[int | str]:
        return [self.name(event) for event, _ in self.hears_with_places(now, *events)]

    def hears_with_places(self, now: float, *events: tuple[UUID, str]) -> Read:
        read: Read = []
        for task_id, kind in events:
            self.number += 1
            event = SimpleNamespace(task_id=task_id, type=kind, seq=self.number)
            read.append((cast("EventWithState", event), place(self.number)))
        return self.telling.thin([*read, (None, place(self.number))], now)

    @staticmethod
    def name(event: EventWithState | None) -> int | str:
        return "resync" if event is None else event.seq


def place(number: int) -> Cursor:
    return Cursor(Position(number, A, number) if number else BEGINNING)


def test_changes_of_state_are_told_at_once_and_output_never() -> None:
    story = Story()
    events = [(A, "claim"), (A, "output"), (A, "step"), (A, "hold"), (A, "retry"), (A, "claim"), (A, "complete")]
    assert story.hears(1, *events) == [1, 5, 6, 7]
    assert story.telling.place == place(7)


def test_of_progress_the_last_of_each_second_is_told() -> None:
    story = Story()
    assert story.hears(1.0, (A, "progress"), (A, "progress"), (B, "progress")) == [1, 3]
    assert story.hears(1.5, (A, "progress"), (A, "progress")) == []
    assert story.telling.seconds_until_due(1.5) == 0.5
    assert story.hears(2.0) == [5]
    assert story.hears(2.5) == []
    assert story.hears(4.0, (A, "progress")) == [6]


def test_a_change_of_state_makes_progress_that_was_held_untrue() -> None:
    story = Story()
    assert story.hears(1.0, (A, "progress"), (A, "progress"), (A, "complete")) == [1, 3]
    assert story.hears(2.0) == []


def test_who_leaves_while_progress_is_held_comes_back_before_it() -> None:
    story = Story()
    story.hears(1.0, (A, "progress"))
    told = story.hears_with_places(1.2, (A, "progress"), (B, "claim"))
    assert [(Story.name(event), cursor) for event, cursor in told] == [(3, place(1))]
    assert story.telling.place == place(1)
    ((event, cursor),) = story.hears_with_places(2.0)
    assert (Story.name(event), cursor) == (2, place(3))


def test_a_storm_is_one_resync_a_second_and_who_leaves_in_it_comes_back_before_it() -> None:
    story = Story()
    burst = [(A, "claim")] * (MOST_A_SECOND + 50)
    assert story.hears(1.0, *burst) == list(range(1, MOST_A_SECOND + 1))
    assert story.telling.place == place(MOST_A_SECOND)
    assert story.telling.seconds_until_due(1.5) == 0.5
    assert story.hears(1.5, (B, "claim")) == []
    assert story.hears(2.0, *burst) == ["resync"], "and as long as it lasts nothing is told one by one"
    assert story.hears(3.0, (B, "complete")) == ["resync"]
    assert story.hears(4.0, (B, "claim")) == ["resync", story.number], "it was quiet for a second"
    assert story.hears(9.0) == []


def test_what_is_skipped_is_owed_a_resync() -> None:
    story = Story()
    story.hears(1.0, *[(A, "claim")] * (MOST_A_SECOND + 1))
    assert [Story.name(event) for event, _ in story.telling.thin([], 2.0, place(9000))] == ["resync"]
    assert story.telling.place == place(MOST_A_SECOND + 1)
    ((event, cursor),) = story.telling.thin([(None, place(9000))], 3.0)
    assert (Story.name(event), cursor) == ("resync", place(9000))
