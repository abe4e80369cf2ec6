"""A task that runs alone has the process for itself: others end first, newcomers wait, and nothing is left locked."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from services.actors.solitude import Solitude

SOON = 5
NOT_YET = 0.05


class Visitor:
    """A thread that enters a room, stays until it is told to leave, and is known to be inside or not."""

    def __init__(self, room: Callable[[], AbstractContextManager[None]]) -> None:
        self._room = room
        self._inside = threading.Event()
        self._may_leave = threading.Event()
        self._thread = threading.Thread(target=self._visit, daemon=True)
        self._thread.start()

    def _visit(self) -> None:
        with self._room():
            self._inside.set()
            self._may_leave.wait(SOON)

    def enters(self) -> bool:
        return self._inside.wait(SOON)

    def still_waits(self) -> bool:
        return not self._inside.wait(NOT_YET)

    def leave(self) -> None:
        self._may_leave.set()
        self._thread.join(SOON)
        assert not self._thread.is_alive()


@pytest.fixture
def solitude() -> Solitude:
    return Solitude()


@pytest.fixture
def quick_switches() -> Iterator[None]:
    """Threads take turns as often as they can, so that a gap of a few instructions is met."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-7)
    yield
    sys.setswitchinterval(before)


def nothing() -> None:
    """A check that finds no reason to give up."""


def come_and_go(solitude: Solitude) -> None:
    solitude.wait_for_company()
    solitude.turned_away()


def company_is_welcome(solitude: Solitude) -> bool:
    waiter = threading.Thread(target=come_and_go, args=[solitude], daemon=True)
    waiter.start()
    waiter.join(SOON)
    return not waiter.is_alive()


def test_many_share_the_process(solitude: Solitude) -> None:
    visitors = [Visitor(lambda: solitude.shared(nothing)) for _ in range(3)]
    assert all(visitor.enters() for visitor in visitors)
    for visitor in visitors:
        visitor.leave()


def test_one_who_wants_to_be_alone_waits_for_the_others_to_end(solitude: Solitude) -> None:
    first, second = Visitor(lambda: solitude.shared(nothing)), Visitor(lambda: solitude.shared(nothing))
    assert first.enters()
    assert second.enters()
    loner = Visitor(lambda: solitude.alone(nothing))
    assert loner.still_waits()
    first.leave()
    assert loner.still_waits()
    second.leave()
    assert loner.enters()
    loner.leave()


def test_newcomers_wait_while_one_is_alone(solitude: Solitude) -> None:
    with solitude.alone(nothing):
        waiter = threading.Thread(target=come_and_go, args=[solitude], daemon=True)
        waiter.start()
        waiter.join(NOT_YET)
        assert waiter.is_alive()
    waiter.join(SOON)
    assert not waiter.is_alive()


def test_newcomers_wait_already_while_one_wants_to_be_alone(solitude: Solitude) -> None:
    """Or a stream of short tasks would keep it waiting for ever."""
    somebody = Visitor(lambda: solitude.shared(nothing))
    assert somebody.enters()
    waiting = threading.Event()
    loner = Visitor(lambda: solitude.alone(waiting.set))
    assert waiting.wait(SOON)
    newcomer = threading.Thread(target=come_and_go, args=[solitude], daemon=True)
    newcomer.start()
    newcomer.join(NOT_YET)
    assert newcomer.is_alive()
    somebody.leave()
    assert loner.enters()
    loner.leave()
    newcomer.join(SOON)
    assert not newcomer.is_alive()


def test_one_who_had_company_before_is_let_in_and_out_first(solitude: Solitude) -> None:
    """Between asking for company and entering, a worker claims its task: that one must not be lost with the loner."""

    @contextmanager
    def with_a_task_claimed_on_the_way() -> Iterator[None]:
        solitude.wait_for_company()
        arriving.set()
        assert may_enter.wait(SOON)
        with solitude.shared(nothing):
            yield

    arriving, may_enter = threading.Event(), threading.Event()
    late = Visitor(with_a_task_claimed_on_the_way)
    assert arriving.wait(SOON)
    loner = Visitor(lambda: solitude.alone(nothing))
    assert loner.still_waits()
    may_enter.set()
    assert late.enters()
    assert loner.still_waits()
    late.leave()
    assert loner.enters()
    loner.leave()


def test_nobody_waits_for_one_who_was_turned_away(solitude: Solitude) -> None:
    solitude.wait_for_company()
    loner = Visitor(lambda: solitude.alone(nothing))
    assert loner.still_waits()
    solitude.turned_away()
    assert loner.enters()
    loner.leave()


@pytest.mark.usefixtures("quick_switches")
def test_two_are_never_alone_together() -> None:
    for _ in range(6):
        solitude = Solitude()
        waiting = threading.Semaphore(0)
        inside: list[int] = []
        together: list[int] = []

        def visit(
            solitude: Solitude = solitude,
            waiting: threading.Semaphore = waiting,
            inside: list[int] = inside,
            together: list[int] = together,
        ) -> None:
            with solitude.alone(waiting.release):
                inside.append(1)
                together.append(len(inside))
                time.sleep(0.001)
                inside.pop()

        loners = [threading.Thread(target=visit) for _ in range(16)]
        with solitude.shared(nothing):
            for loner in loners:
                loner.start()
            for _ in loners:
                waiting.acquire()
        for loner in loners:
            loner.join(SOON)
        assert together == [1] * len(loners)


def test_a_check_that_raises_ends_the_wait_and_leaves_the_room_usable(solitude: Solitude) -> None:
    somebody = Visitor(lambda: solitude.shared(nothing))
    assert somebody.enters()

    def told_to_stop() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError), solitude.alone(told_to_stop):
        pytest.fail("it must not enter beside somebody")
    assert company_is_welcome(solitude)
    somebody.leave()
    with solitude.alone(nothing):
        pass


@pytest.mark.parametrize("room", ["shared", "alone"])
def test_work_that_raises_leaves_the_room_usable(solitude: Solitude, room: str) -> None:
    with (
        pytest.raises(ValueError, match="broken"),
        solitude.shared(nothing) if room == "shared" else solitude.alone(nothing),
    ):
        raise ValueError("broken")
    assert company_is_welcome(solitude)
    with solitude.alone(nothing):
        pass
