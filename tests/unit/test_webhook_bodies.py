"""A body has what endpoints need to know of a move, and at most 20 KB of it."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st

from windlass.shared.features.webhooks.bodies import LARGEST_BODY, body, event_data, public_error, task_data, utc
from windlass.shared.features.webhooks.writing import ids_at

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
VALUES = st.text(max_size=30_000) | st.integers() | st.none() | st.lists(st.text(max_size=50), max_size=2000)


def a_task(**fields: Any) -> dict[str, Any]:
    names = (
        "actor", "task_type", "provider", "retry_count", "max_retries", "priority", "user_id", "tags", "project_id",
        "workflow_id", "workflow_run_id", "interaction_id", "workflow_key", "parent_task_id", "dedupe_key", "usage",
        "started_at", "result_text", "attempt",
    )  # fmt: skip
    usual = {"task_id": uuid4(), "created_at": NOON, "event_at": NOON, "event_data": {}}
    return {**dict.fromkeys(names), **usual, **fields}


@given(data=st.dictionaries(st.sampled_from(["task_id", "result", "tags", "error", "life"]), VALUES))
def test_no_body_is_too_long(data: dict[str, Any]) -> None:
    text = body("task.completed", NOON, data)
    assert len(text.encode()) <= LARGEST_BODY
    document = json.loads(text)
    assert (document["type"], document["timestamp"]) == ("task.completed", "2026-06-01T12:00:00.000000Z")
    if "truncated" not in document["data"]:
        assert document["data"] == data


def test_a_long_body_loses_its_result_and_tags_first() -> None:
    data = {"task_id": "one", "result": "x" * 30_000, "tags": ["a"], "message": "short"}
    assert json.loads(body("task.completed", NOON, data))["data"] == {
        "task_id": "one", "message": "short", "truncated": True,
    }  # fmt: skip
    data["message"] = "y" * 30_000
    assert json.loads(body("task.completed", NOON, data))["data"] == {"task_id": "one", "truncated": True}


def test_a_task_is_described_as_its_move_left_it() -> None:
    error = {"type": "Busy", "kind": "transient", "message": "m" * 2000, "attempt": 1, "stack_trace": "secret"}
    task = a_task(attempt=1, event_data={"error": error}, status="completed")
    data = task_data(task, "task.retrying", status="retrying", life=2, seq=7)
    assert (data["status"], data["life"], data["seq"], data["completed_at"]) == ("retrying", 2, 7, None)
    assert data["error"] == {"type": "Busy", "kind": "transient", "message": "m" * 1000, "attempt": 1}
    assert not {"result", "result_url"} & data.keys()


def test_a_result_is_sent_as_it_was_stored_or_as_a_link() -> None:
    small = a_task(result_text='{"pi": 3.14159265358979323846264338327950288}')
    data = task_data(small, "task.completed", status="completed", life=1, seq=3)
    assert '"result":{"pi": 3.14159265358979323846264338327950288}' in body("task.completed", NOON, data)
    large = a_task(result_text=None)
    data = task_data(large, "task.completed", status="completed", life=1, seq=3)
    assert data["result_url"] == f"/api/v1/tasks/{large['task_id']}"


def test_a_question_has_its_message_and_its_end() -> None:
    asked = {"message": "go on?", "expires_at": "2026-06-01T14:00:00+02:00"}
    data = task_data(a_task(event_data=asked), "approval.requested", status="blocked", life=1, seq=2)
    assert (data["message"], data["expires_at"]) == ("go on?", "2026-06-01T12:00:00.000000Z")


def test_times_are_written_in_utc() -> None:
    assert utc(NOON.astimezone(timezone(timedelta(hours=2)))) == "2026-06-01T12:00:00.000000Z"
    assert utc(None) is None


def test_an_error_of_an_event_is_shortened() -> None:
    data = event_data({"name": "one", "last_error": {"type": "Busy", "message": "no", "stack_trace": "secret"}})
    assert data["last_error"] == {"type": "Busy", "kind": None, "message": "no", "attempt": None}
    assert event_data({"last_error": None}) == {"last_error": None}
    assert public_error(None) is None


@given(seconds=st.floats(0, 1e8), number=st.integers(1, 300))
def test_ids_of_deliveries_grow_with_the_time(seconds: float, number: int) -> None:
    moment = NOON + timedelta(seconds=seconds)
    ids = ids_at(moment, number)
    assert ids == sorted(set(ids))
    assert {each.version for each in ids} == {7}
    assert ids[-1] < ids_at(moment + timedelta(milliseconds=1), 1)[0]
