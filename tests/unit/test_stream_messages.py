"""One row of history is at most one server-sent event; which one, and what it carries."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from windlass.services.api.access.auth import Caller
from windlass.services.api.http.errors import Problem
from windlass.services.api.media.links import MediaLinks
from windlass.services.api.streams.messages import encode, message_of
from windlass.services.api.streams.one_task import read_position
from windlass.shared.db import Database
from windlass.shared.settings import Settings
from windlass.shared.states import TRANSITIONS
from windlass.shared.store.reading.events import EventWithState

AT = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
LINKS = MediaLinks(Settings(), cast(Database, None))
ADMIN = Caller("a", "admin", "root")
VIEWER = Caller("v", "viewer", "eve")
USER = Caller("u", "user", "ann")
ERROR = {
    "type": "ServiceUnavailable",
    "kind": "transient",
    "message": "busy",
    "details": {},
    "stack_trace": "Traceback: line 1",
    "attempt": 2,
}


def event(kind: str, status: str | None = None, *, seq: int = 5, **data: Any) -> dict[str, Any]:
    if status is not None:
        data["status"] = status
    return {"seq": seq, "type": kind, "at": AT, "attempt": 2, "data": data}


def task(status: str, *, last_seq: int = 5, result: Any = None, error: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"actor": "probe", "status": status, "last_seq": last_seq, "result": result, "error": error}


def as_message(event: dict[str, Any], task: dict[str, Any], caller: Caller) -> bytes | None:
    """The event and its task's state, as one row of the store holds them."""
    message = message_of(cast(EventWithState, SimpleNamespace(**event, **task)), caller, LINKS)
    return None if message is None else encode(str(event["seq"]), *message)


def told(event: dict[str, Any], task: dict[str, Any], caller: Caller = ADMIN) -> tuple[int, str, Any]:
    """Reads the event as a browser would."""
    message = as_message(event, task, caller)
    assert message is not None
    assert message.endswith(b"\n\n")
    fields = dict(line.split(b": ", 1) for line in message.decode().encode().splitlines() if line)
    return int(fields[b"id"]), fields[b"event"].decode(), msgspec.json.decode(fields[b"data"])


PROGRESS_EVENTS = [
    ("submit", "queued", "Queued"),
    ("submit", "blocked", "Waiting for dependencies"),
    ("unblock", "queued", "Queued"),
    ("claim", "running", "Processing"),
    ("retry", "retrying", "Retrying (attempt 3)"),
    ("stall", "retrying", "Retrying (attempt 3)"),
    ("interrupt", "queued", "Queued"),
    ("revive", "queued", "Queued"),
    ("revive", "blocked", "Waiting for dependencies"),
]
ENDS = [
    ("complete", "completed", "complete"),
    ("bury", "dead", "error"),
    ("stall", "dead", "error"),
    ("cancel", "cancelled", "cancelled"),
]


def test_every_transition_is_told_somehow() -> None:
    assert {kind for kind, _, _ in (*PROGRESS_EVENTS, *ENDS)} == set(TRANSITIONS)


@pytest.mark.parametrize(("kind", "status", "message"), PROGRESS_EVENTS)
def test_a_change_of_state_is_told_as_progress_under_its_seq(kind: str, status: str, message: str) -> None:
    seq, name, data = told(event(kind, status), task(status))
    assert (seq, name) == (5, "progress")
    assert (data["status"], data["attempt"], data["progress"]["message"]) == (status, 2, message)
    assert set(data["progress"]) == {"elapsed_ms", "message", "percent", "updated_at"}
    assert "error" not in data


def test_the_actor_s_own_progress_is_told_as_it_was_said() -> None:
    said = {"elapsed_ms": 7, "message": "Step 1", "percent": 20.0, "updated_at": "2026-07-01T12:00:00+00:00"}
    _, name, data = told(event("progress", "running", progress=said), task("running"))
    assert name == "progress"
    assert data == {"status": "running", "attempt": 2, "progress": said}


def test_output_is_told_with_the_attempt_that_it_came_from() -> None:
    assert told(event("output", text="one\ntwo"), task("running")) == (
        5,
        "output",
        {"attempt": 2, "text": "one\ntwo"},
    )


def test_a_finished_step_is_told_without_what_it_came_to() -> None:
    assert told(event("step", name="draft", elapsed_ms=12), task("running")) == (
        5,
        "step",
        {"attempt": 2, "name": "draft", "elapsed_ms": 12},
    )


@pytest.mark.parametrize("kind", ["dispatch", "cancel-requested", "hold", "release"])
def test_what_changes_neither_state_nor_progress_is_not_told(kind: str) -> None:
    assert as_message(event(kind, "queued"), task("queued"), ADMIN) is None


def test_completion_carries_the_result() -> None:
    ended = task("completed", result={"answer": 42})
    assert told(event("complete", "completed"), ended) == (5, "complete", {"attempt": 2, "result": {"answer": 42}})


def test_completion_without_a_result_still_has_data() -> None:
    assert told(event("complete", "completed"), task("completed"))[2] == {"attempt": 2, "result": None}


@pytest.mark.parametrize("kind", ["bury", "stall"])
def test_death_carries_the_error(kind: str) -> None:
    ended = task("dead", error=ERROR)
    assert told(event(kind, "dead", error=ERROR), ended) == (5, "error", {"attempt": 2, "error": ERROR})


def test_cancellation_carries_the_attempt_alone() -> None:
    assert told(event("cancel", "cancelled"), task("cancelled")) == (5, "cancelled", {"attempt": 2})


@pytest.mark.parametrize(("kind", "status", "name"), ENDS)
def test_the_end_of_an_earlier_life_arrives_as_progress(kind: str, status: str, name: str) -> None:
    data: dict[str, Any] = {"error": ERROR} if status == "dead" else {}
    _, told_as, body = told(event(kind, status, **data), task("queued", last_seq=6))
    assert told_as == "progress"
    assert body["status"] == status


def test_the_end_of_an_earlier_life_arrives_as_progress_also_when_the_task_has_died_again() -> None:
    earlier = told(event("bury", "dead", seq=5, error=ERROR), task("dead", last_seq=9, error=ERROR))
    latest = told(event("bury", "dead", seq=9, error=ERROR), task("dead", last_seq=9, error=ERROR))
    assert (earlier[1], latest[1]) == ("progress", "error")
    assert earlier[2]["error"]["message"] == "busy"


@pytest.mark.parametrize(("caller", "trace"), [(ADMIN, "Traceback: line 1"), (VIEWER, None), (USER, None)])
@pytest.mark.parametrize(
    ("kind", "status", "last_seq"), [("bury", "dead", 5), ("bury", "dead", 6), ("retry", "retrying", 6)]
)
def test_stack_traces_are_for_admins_alone(
    caller: Caller, trace: str | None, kind: str, status: str, last_seq: int
) -> None:
    whole = event(kind, status, error=ERROR)
    now = task("dead" if last_seq == 5 else "queued", last_seq=last_seq, error=ERROR)
    error = told(whole, now, caller)[2]["error"]
    assert error == {**ERROR, "stack_trace": trace, "details": None if caller is USER else {}}
    assert whole["data"]["error"]["stack_trace"] == "Traceback: line 1", "the row itself is left alone"


def test_a_message_is_one_event_whatever_the_text_holds() -> None:
    message = as_message(event("output", text="one\r\ntwo\n\nid: 99\nevent: complete"), task("running"), ADMIN)
    assert message is not None
    assert message.count(b"\n\n") == 1
    assert message.count(b"\n") == 4


LAST_SEQ = 5


@pytest.mark.parametrize(("last_seen", "position"), [(None, 0), ("", 0), ("0", 0), ("3", 3), ("5", 5)])
def test_a_client_goes_on_where_it_left_off(last_seen: str | None, position: int) -> None:
    assert read_position(last_seen, LAST_SEQ) == position


@pytest.mark.parametrize("last_seen", ["6", "-1", "abc", "1.5", " 3", "٣", "9" * 5000], ids=lambda text: text[:5])
def test_a_position_that_is_no_number_or_beyond_the_history_is_a_400(last_seen: str) -> None:
    with pytest.raises(Problem) as refused:
        read_position(last_seen, LAST_SEQ)
    assert (refused.value.status, refused.value.code) == (400, "invalid-event-id")
