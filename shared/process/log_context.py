"""What is being handled at the moment, said once where it begins, for every line that is written until it ends.

By the names `worker`, `task_id`, `attempt`, `traceparent` and `request_id`, as far as they are known.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_NOTHING: Mapping[str, Any] = {}
# Follows the work where it goes: a coroutine that a thread hands to another thread's loop has the thread's own.
_subject: ContextVar[Mapping[str, Any]] = ContextVar("subject", default=_NOTHING)


class _Process:
    """What is true of every line of this process."""

    facts: Mapping[str, Any] = _NOTHING


def of_this_process(**facts: Any) -> None:
    """Called once as a process starts."""
    _Process.facts = facts


def take_up(**facts: Any) -> None:
    """From here on, in this thread or task, until it is laid down."""
    _subject.set(facts)


def lay_down() -> None:
    _subject.set(_NOTHING)


@contextmanager
def about(**facts: Any) -> Iterator[None]:
    """For a line or some, beside what is known already."""
    token = _subject.set({**_subject.get(), **facts})
    try:
        yield
    finally:
        _subject.reset(token)


def facts() -> dict[str, Any]:
    return {**_Process.facts, **_subject.get()}
