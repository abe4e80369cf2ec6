"""Agent events are short and describe what was asked and how it ended, whatever the texts are."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from windlass.shared.features.memory.rules import data_of, job_error, job_state, text_of, title_of
from windlass.shared.states import State

STATUSES = st.sampled_from([state.value for state in State])
TEXTS = st.text(max_size=3000)
ERRORS = st.none() | st.fixed_dictionaries({}, optional={"type": TEXTS | st.none(), "message": TEXTS | st.none()})


@given(status=STATUSES, request=TEXTS, outcome=TEXTS, error=ERRORS)
def test_a_text_begins_with_the_request_and_is_bounded(status: str, request: str, outcome: str, error: Any) -> None:
    text = text_of(status, request, outcome, error)
    assert text.startswith(f"{request[:2000]}\n\n")
    assert len(text) <= 4002


@given(request=TEXTS, outcome=TEXTS, error=ERRORS)
def test_a_text_ends_with_the_result_the_error_or_the_status(request: str, outcome: str, error: Any) -> None:
    assert text_of("completed", request, outcome, error) == f"{request[:2000]}\n\n{outcome[:2000]}"
    assert text_of("cancelled", request, outcome, error).endswith("\n\ncancelled")
    failure = {"type": "TimedOut", "message": "after 3 s"}
    assert text_of("dead", request, outcome, failure).endswith("\n\nTimedOut: after 3 s")


@given(request=TEXTS)
def test_a_title_is_one_short_line_of_the_request(request: str) -> None:
    title = title_of(request)
    assert request.startswith(title)
    assert "\n" not in title
    assert len(title) <= 120


@given(status=STATUSES, usage=st.none() | st.just({"cost_usd": 1}), error=ERRORS)
def test_only_a_dead_task_has_an_error_type_and_nothing_is_null(status: str, usage: Any, error: Any) -> None:
    data = data_of(status, usage, error)
    assert set(data) <= {"usage", "error_type"}
    assert None not in data.values()
    assert status == "dead" or "error_type" not in data


@given(status=STATUSES, error=ERRORS)
def test_a_job_fails_with_an_error_and_else_has_none(status: str, error: Any) -> None:
    failed = job_state(status) == "failed"
    assert failed == (status in {"dead", "cancelled"})
    described = job_error(status, error)
    assert (described is not None) == failed
    assert described is None or len(described["message"]) <= 500
