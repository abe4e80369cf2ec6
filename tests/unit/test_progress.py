"""What is said of a task's progress: the actor's word, or its state's."""

from datetime import UTC, datetime
from typing import Any

import pytest

from windlass.services.api.tasks.progress import present
from windlass.shared.states import State

AT = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
SAID = {"elapsed_ms": 40, "message": "Step 2 of 5", "percent": 40.0, "updated_at": "2026-07-01T11:59:59+00:00"}


def shown(status: str, **more: Any) -> dict[str, Any]:
    facts = {"attempt": 1, "said": None, "error": None, "at": AT, "elapsed_ms": 1500, **more}
    return present(status=status, **facts)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ("blocked", "Waiting for dependencies"),
        ("queued", "Queued"),
        ("running", "Processing"),
        ("retrying", "Retrying (attempt 2)"),
        ("completed", "Completed"),
        ("dead", "Failed: it broke"),
        ("cancelled", "Cancelled"),
    ],
)
def test_the_message_follows_the_state_where_the_actor_says_nothing(status: str, message: str) -> None:
    assert shown(status, error={"message": "it broke"})["message"] == message


@pytest.mark.parametrize("status", State)
def test_it_has_the_same_four_fields_in_every_state(status: State) -> None:
    for said in (None, SAID):
        assert set(shown(status, said=said)) == {"elapsed_ms", "message", "percent", "updated_at"}


def test_while_it_runs_the_actor_s_word_counts() -> None:
    assert shown("running", said=SAID) == SAID


@pytest.mark.parametrize(
    ("status", "message"), [("retrying", "Retrying (attempt 2)"), ("queued", "Queued"), ("cancelled", "Cancelled")]
)
def test_once_it_no_longer_runs_the_actor_s_word_is_stale(status: str, message: str) -> None:
    assert shown(status, said=SAID)["message"] == message


def test_completed_is_a_hundred_percent_whatever_was_said_last() -> None:
    assert shown("completed", said=SAID)["percent"] == 100
    assert shown("completed")["percent"] == 100


def test_percent_is_null_when_it_is_not_known() -> None:
    assert shown("running")["percent"] is None


def test_it_says_when_and_after_how_long() -> None:
    assert shown("completed")["elapsed_ms"] == 1500
    assert shown("completed")["updated_at"] == AT


def test_a_retry_names_the_attempt_that_comes_next() -> None:
    assert shown("retrying", attempt=3)["message"] == "Retrying (attempt 4)"
