"""What an attempt has said and nobody has written yet: nothing is lost, and nothing changes places."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from windlass.services.actors.worker.writing.last_words import before_the_end, joined
from windlass.shared.store.tasks import Ending, Report

TASK, TOKEN = UUID(int=1), UUID(int=2)


def said(number: int, text: str, *, progress: Any = None, checkpoint: Any = None) -> Report:
    events = [{"type": "output", "data": {"text": text}}]
    if progress is not None:
        events.append({"type": "progress", "data": {"progress": progress}})
    return Report(TASK, 1, TOKEN, number, progress, checkpoint, events)


def test_two_reports_become_one_under_the_later_number() -> None:
    both = joined(said(1, "one ", progress={"percent": 1}, checkpoint="a"), said(2, "two", progress={"percent": 2}))
    assert both == Report(
        TASK,
        1,
        TOKEN,
        2,
        {"percent": 2},
        "a",
        [
            {"type": "output", "data": {"text": "one "}},
            {"type": "output", "data": {"text": "two"}},
            {"type": "progress", "data": {"progress": {"percent": 2}}},
        ],
    )


def test_progress_that_nothing_came_after_stays() -> None:
    both = joined(said(1, "one", progress={"percent": 1}), said(2, "two"))
    assert both is not None
    assert both.progress == {"percent": 1}
    assert [event["type"] for event in both.events] == ["output", "progress", "output"]


def test_who_has_said_nothing_more_is_joined_with_nothing() -> None:
    one = said(1, "one")
    assert (joined(one, None), joined(None, one), joined(None, None)) == (one, one, None)


def test_what_was_said_goes_before_the_end_and_before_its_last_words() -> None:
    ending = before_the_end(said(2, "last"), Ending(TASK, 1, TOKEN, "complete"))
    whole = before_the_end(said(1, "first", checkpoint="a", progress={"percent": 1}), ending)
    assert [event["data"].get("text") for event in whole.events] == ["first", None, "last"]
    assert (whole.progress, whole.checkpoint) == ({"percent": 1}, "a")
    assert before_the_end(None, ending) == ending


def test_what_was_spent_is_added_up() -> None:
    first, second = (
        replace(said(1, "one"), usage={"cost_usd": 0.1}),
        replace(said(2, "two"), usage={"prompt_tokens": 2}),
    )
    both = joined(first, second)
    assert both is not None
    assert both.usage == {"cost_usd": 0.1, "prompt_tokens": 2}
    ending = before_the_end(both, Ending(TASK, 1, TOKEN, "complete", usage={"cost_usd": 0.2}))
    assert ending.usage == {"cost_usd": 0.3, "prompt_tokens": 2}
    assert before_the_end(said(1, "one"), Ending(TASK, 1, TOKEN, "complete")).usage is None
