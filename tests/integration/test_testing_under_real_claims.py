"""`windlass.testing` with one word more: the same runs, claimed and ended in a database by a worker's machine."""

from typing import Any

import pytest

from tests.unit.test_testing import calls, translate, translate_async
from windlass.shared.actors.stopped import Stopped
from windlass.shared.errors import TimedOut
from windlass.testing import attempt

both = pytest.mark.parametrize("actor", [translate, translate_async])


@pytest.fixture(autouse=True)
def nothing_called() -> None:
    calls.clear()


@pytest.fixture(autouse=True)
def no_long_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a real claim, sleeping takes its time."""
    monkeypatch.setattr("windlass.testing.views.AsyncView.sleep", _at_once)


async def _at_once(self: Any, _seconds: float) -> None:
    self.check()


@both
def test_a_crash_then_the_next_attempt(actor: Any, database_url: str) -> None:
    with attempt(actor, text="hi", database_url=database_url) as run:
        run.crash_after("draft")
        assert run.status == "retrying"
        assert run.again().crash_inside("polish").status == "retrying"
        assert run.again().result == "<<hi>en>"
        assert calls == ["hi", "<hi>en", "<hi>en"]
        assert [(step.name, step.attempt) for step in run.steps] == [("draft", 1), ("polish", 3)]
        told = [event["type"] for event in run.events if event["type"] != "progress"]
        assert told == ["submit", "claim", "step", "stall", "claim", "stall", "claim", "step", "complete"]


@both
def test_each_way_to_be_stopped(actor: Any, database_url: str) -> None:
    with attempt(actor, text="hi", database_url=database_url) as run:
        assert run.lose_lease(after="draft").status == "retrying"
        assert isinstance(run.error, Stopped)
        assert run.again().time_out().status == "retrying"
        assert isinstance(run.error, TimedOut)
        assert run.again().stop().status == "queued"
        assert run.again().cancel().status == "cancelled"
        assert run.again().result == "<<hi>en>"
    assert calls == ["hi", "<hi>en"]
