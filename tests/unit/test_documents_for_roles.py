"""What each role is shown of a task's error, its provider's job and its history."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from windlass.services.api.access.auth import Caller
from windlass.services.api.tasks.schemas import error_for, event_document, provider_job_for
from windlass.shared.store.rows import TaskEventRow

ADMIN, VIEWER, USER = (Caller("k", role, "ann") for role in ("admin", "viewer", "user"))


def error(kind: str = "ServiceUnavailable", **details: Any) -> dict[str, Any]:
    return {"type": kind, "kind": "transient", "message": "busy", "details": details, "stack_trace": "T", "attempt": 1}


def test_an_admin_sees_all_of_an_error_and_a_viewer_all_but_the_stack_trace() -> None:
    whole = error(status=503, body="overloaded")
    assert error_for(ADMIN, whole) == whole
    assert error_for(VIEWER, whole) == {**whole, "stack_trace": None}


@pytest.mark.parametrize(
    ("whole", "shown"),
    [
        (error(status=503, body="overloaded", worker_id="host-1-a"), None),
        (error(), None),
        (error(retries_exhausted=True, body="overloaded"), {"retries_exhausted": True}),
        (error("RateLimited", retry_after=3, quota="gold"), {"retry_after": 3}),
        (error(expires_before_retry=True), {"expires_before_retry": True}),
        (error("DependencyFailed", task_id="0198"), {"task_id": "0198"}),
        (error("Expired", last_error="busy"), {"last_error": "busy"}),
        (error("InvalidInput", task_id="the provider's own", last_error="internal"), None),
    ],
)
def test_a_user_sees_only_what_windlass_itself_noted(whole: dict[str, Any], shown: dict[str, Any] | None) -> None:
    assert error_for(USER, whole) == {**whole, "stack_trace": None, "details": shown}


@pytest.mark.parametrize("caller", [ADMIN, VIEWER, USER])
def test_no_error_is_no_error(caller: Caller) -> None:
    assert error_for(caller, None) is None


def test_a_provider_s_job_is_not_shown_to_users() -> None:
    assert [provider_job_for(caller, "job-7") for caller in (ADMIN, VIEWER, USER)] == ["job-7", "job-7", None]


def test_history_shows_each_role_what_the_task_itself_would() -> None:
    data = {"status": "retrying", "error": error(body="overloaded"), "provider_job_id": "job-7"}
    row = cast(TaskEventRow, SimpleNamespace(seq=1, type="retry", at=datetime.now(UTC), attempt=1, data=data))
    assert event_document(row, ADMIN)["data"] == data
    shown = event_document(row, USER)["data"]
    assert (shown["error"]["stack_trace"], shown["error"]["details"], shown["provider_job_id"]) == (None, None, None)
