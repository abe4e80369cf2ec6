"""Errors of the client are found by their code, and tell a script how to end."""

import copy
import pickle
from typing import Any

import msgspec
import pytest

from windlass.client.errors import (
    AlreadyDecided,
    ApiError,
    Conflict,
    FieldError,
    Forbidden,
    Invalid,
    InvalidPayload,
    InvalidSchedule,
    InvalidWorkflow,
    NameTaken,
    NotConfigured,
    NotFound,
    QueueAlreadyRunning,
    ScheduleNotFound,
    TaskDead,
    TaskNotFound,
    Unauthorized,
    Unavailable,
    Unreachable,
    UnreadableAnswer,
    WaitTimeout,
    WindlassError,
    WorkflowNotFound,
)
from windlass.client.problems import api_error
from windlass.client.task import Task
from windlass.services.cli.exit_codes import exit_code

TASK = Task(task_id="t", actor="probe", status="dead")


def problem(status: int, code: str, **fields: Any) -> ApiError:
    return api_error(status, msgspec.json.encode({"status": status, "code": code, "detail": "so it is", **fields}))


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (404, "task-not-found", TaskNotFound),
        (404, "no-such-bulk", NotFound),
        (401, "unauthorized", Unauthorized),
        (403, "forbidden", Forbidden),
        (409, "queue-already-running", QueueAlreadyRunning),
        (409, "project-running", Conflict),
        (404, "workflow-not-found", WorkflowNotFound),
        (409, "already-decided", AlreadyDecided),
        (404, "schedule-not-found", ScheduleNotFound),
        (409, "name-taken", NameTaken),
        (422, "invalid-schedule", InvalidSchedule),
        (422, "invalid-workflow", InvalidWorkflow),
        (422, "invalid-payload", InvalidPayload),
        (422, "something-new", Invalid),
        (503, "database-unavailable", Unavailable),
        (418, "teapot", ApiError),
    ],
)
def test_the_code_decides_the_class_and_else_the_status_does(status: int, code: str, kind: type[ApiError]) -> None:
    error = problem(status, code)
    assert type(error) is kind
    assert (error.status, error.code, error.detail) == (status, code, "so it is")


def test_fields_the_request_and_the_time_to_come_back_are_on_it() -> None:
    fields = [{"pointer": "/payload/seconds", "detail": "too few"}]
    body = msgspec.json.encode({"code": "invalid-payload", "detail": "no", "errors": fields, "request_id": "r"})
    error = api_error(422, body, "2.5")
    assert error.errors == (FieldError("/payload/seconds", "too few"),)
    assert (error.request_id, error.retry_after) == ("r", 2.5)
    assert str(error) == "invalid-payload (422): no; /payload/seconds: too few"


@pytest.mark.parametrize("body", [b"", b"<html>Bad Gateway</html>", b"[1]", b'{"code": 5, "errors": 7}', b"\xff"])
def test_an_answer_that_is_not_ours_is_told_by_its_status(body: bytes) -> None:
    error = api_error(502, body, "Wed, 21 Oct 2026 07:28:00 GMT")
    assert type(error) is Unavailable
    assert (error.code, error.errors, error.retry_after) == ("http-502", (), None)


def test_errors_can_be_copied_between_processes() -> None:
    for error in (problem(404, "task-not-found"), TaskDead(TASK), WaitTimeout(TASK, 5)):
        same = copy.copy(error)
        assert (type(same), str(same)) == (type(error), str(error))
    assert pickle.loads(pickle.dumps(problem(404, "task-not-found"))).code == "task-not-found"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (problem(404, "task-not-found"), 3),
        (problem(401, "unauthorized"), 5),
        (problem(403, "forbidden"), 5),
        (problem(503, "database-unavailable"), 4),
        (Unreachable("nobody", sent=False), 4),
        (UnreadableAnswer("what?"), 4),
        (NotConfigured("where?"), 4),
        (problem(422, "invalid-payload"), 1),
        (problem(409, "not-cancellable"), 1),
        (TaskDead(TASK), 1),
        (WaitTimeout(TASK, 5), 6),
    ],
)
def test_exit_codes_are_stable(error: WindlassError, code: int) -> None:
    assert exit_code(error) == code
