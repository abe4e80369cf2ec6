"""What an agent event contains, and the state of an embedding job: pure functions of an ended task."""

from typing import Any

LONGEST_TEXT = 2000
LONGEST_TITLE = 120
LONGEST_JOB_ERROR = 500

ENDS = ("completed", "dead", "cancelled")

Error = dict[str, Any] | None


def title_of(request: str) -> str:
    """The first line of the request."""
    return request[:LONGEST_TEXT].partition("\n")[0][:LONGEST_TITLE]


def text_of(status: str, request: str, outcome: str, error: Error) -> str:
    """The request and how it ended, at most 4,002 characters."""
    if status == "completed":
        ending = outcome
    elif status == "dead":
        ending = f"{_word(error, 'type')}: {_word(error, 'message')}"
    else:
        ending = status
    return f"{request[:LONGEST_TEXT]}\n\n{ending[:LONGEST_TEXT]}"


def data_of(status: str, usage: dict[str, Any] | None, error: Error) -> dict[str, Any]:
    data = {"usage": usage, "error_type": (error or {}).get("type") if status == "dead" else None}
    return {name: value for name, value in data.items() if value is not None}


def job_state(status: str) -> str:
    """The state of an embedding job whose task has this status. A revived task makes its job wait again."""
    return {"completed": "done", "dead": "failed", "cancelled": "failed"}.get(status, "waiting")


def job_error(status: str, error: Error) -> Error:
    if status == "dead":
        return {"type": (error or {}).get("type"), "message": _word(error, "message")[:LONGEST_JOB_ERROR]}
    return {"type": "cancelled", "message": "cancelled"} if status == "cancelled" else None


def _word(error: Error, name: str) -> str:
    value = (error or {}).get(name)
    return "" if value is None else str(value)
