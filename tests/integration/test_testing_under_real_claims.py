"""`windlass.testing` with one word more: the same runs, claimed and ended in a database by a worker's machine."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from tests.unit.test_testing import calls, flaky, translate, translate_async
from windlass.shared.actors.stopped import Stopped
from windlass.shared.errors import InvalidInput, TimedOut
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


def test_retries_end_as_in_memory(database_url: str) -> None:
    with attempt(flaky, error="bug", database_url=database_url) as run:
        assert [run.status, run.again().status, run.again().status] == ["retrying", "dead", "retrying"]


def gather(text: str, *, context: Any) -> dict[str, Any]:
    context.log.info("attempt %d for %s", context.attempt, context.user_id)
    return {
        "children": [context.submit("probe", {"seconds": 1}, priority=1), context.submit("probe", seconds=2)],
        "file": context.store_file(text.encode(), media_type="text/plain"),
        "step": context.step("last", lambda: text),
        "seen": [context.attempt, context.user_id],
    }


async def gather_async(text: str, *, context: Any) -> dict[str, Any]:
    context.log.info("attempt %d for %s", context.attempt, context.user_id)
    return {
        "children": [
            await context.submit("probe", {"seconds": 1}, priority=1),
            await context.submit("probe", seconds=2),
        ],
        "file": await context.store_file(text.encode(), media_type="text/plain"),
        "step": await context.step("last", asyncio.sleep, 0, text),
        "seen": [context.attempt, context.user_id],
    }


@pytest.mark.parametrize("actor", [gather, gather_async])
def test_children_and_files_are_those_of_the_database_and_the_storage(
    actor: Any,
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("WINDLASS_DATA_DIR", str(tmp_path))
    with caplog.at_level(logging.INFO), attempt(actor, text="hello", database_url=database_url) as run:
        result = run.crash_after("last").again().result
        assert [child["task_id"] for child in run.children] == result["children"], "made once over both attempts"
        assert [(child["actor"], child["payload"]) for child in run.children] == [
            ("probe", {"seconds": 1}),
            ("probe", {"seconds": 2}),
        ]
        assert [child["options"]["priority"] for child in run.children] == [1, 2]
        assert run.files == {result["file"]: b"hello"}
        assert result["seen"] == [2, "tester"]
    said = [line for line in caplog.messages if line.startswith("attempt ") and line.endswith("for tester")]
    assert said == ["attempt 1 for tester", "attempt 2 for tester"]


def test_a_child_that_rest_would_refuse_and_a_payload_of_another_type_fail(database_url: str) -> None:
    def parent(seconds: float, context: Any) -> str:
        child: str = context.submit("probe", secnds=seconds)
        return child

    with attempt(parent, seconds=1, database_url=database_url) as run:
        assert run.status == "dead"
        assert isinstance(run.error, InvalidInput)
        assert "/secnds: there is no such field" in str(run.error)
        assert run.children == []

    def typed(seconds: float) -> float:
        return seconds

    with attempt(typed, seconds="1", database_url=database_url) as run:
        assert "/seconds: must be a number" in str(run.error)
