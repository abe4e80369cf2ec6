"""What is said in which order, written once for both clients.

A conversation is a generator: it yields what is to be done next (send a request, pause) and is sent what came of it,
so it neither blocks nor awaits; the clients only carry its steps out.
"""

import random
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from windlass.client import calls
from windlass.client.call import Call, Request
from windlass.client.errors import ApiError, Unavailable, Unreachable, UnreadableAnswer, WaitTimeout, WindlassError
from windlass.client.options import TaskId
from windlass.client.problems import api_error
from windlass.client.task import ENDED, Task

FIRST_PAUSE_SECONDS: Final = 0.1
LONGEST_PAUSE_SECONDS: Final = 5.0
EARLY_ANSWER_PAUSE_SECONDS: Final = 0.2


@dataclass(frozen=True)
class Pause:
    seconds: float


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    retry_after: str | None = None


Step = Request | Pause
Outcome = Answer | Unreachable | None
T = TypeVar("T")
Conversation = Generator[Step, Outcome, T]


class Patience:
    """For how long trouble is borne without a success in between, and how long to pause before the next try."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: float | None = None
        self._pause = FIRST_PAUSE_SECONDS

    def bear(self, trouble: Unreachable | ApiError, *, at_least: float = 0) -> float:
        """The pause before the next try; raises the trouble when there is no patience left for it."""
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        asked_for = getattr(trouble, "retry_after", None) or at_least
        pause = max(asked_for, self._pause) * random.uniform(1, 1.2)  # noqa: S311 - spreads clients, guards no secret
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
        if now + pause - self._since > self._seconds:
            raise trouble
        return pause

    def renew(self) -> None:
        self._since, self._pause = None, FIRST_PAUSE_SECONDS


def ask(call: Call[Any], patience: Patience) -> Conversation[Any]:
    """What answers the call, a JSON document or bytes; what is safe to repeat is repeated while nobody can serve it."""
    while True:
        outcome = yield call.request()
        trouble = _trouble(outcome)
        if trouble is None:
            assert isinstance(outcome, Answer)
            patience.renew()
            return outcome.body if call.is_raw else read_json(outcome.body)
        trouble.add_note(f"in answer to {call.method} {call.path}")
        if not may_be_repeated(call, trouble):
            raise trouble
        yield Pause(patience.bear(trouble))


def may_be_repeated(call: Call[Any], trouble: Unreachable | ApiError) -> bool:
    if isinstance(trouble, Unreachable):
        return call.repeatable or not trouble.sent
    return (call.repeatable and isinstance(trouble, Unavailable)) or trouble.status in call.repeated_on


def wait(task_id: TaskId, timeout: float | None, patience_seconds: float) -> Conversation[Task]:
    """The task when it has ended."""
    return wait_for(
        lambda seconds: calls.get(task_id, wait=seconds),
        lambda task: task.status in ENDED,
        WaitTimeout,
        timeout,
        patience_seconds,
    )


def wait_for(
    asked_with: Callable[[float], Call[T]],
    is_over: Callable[[T], bool],
    too_late: Callable[[T, float], WindlassError],
    timeout: float | None,
    patience_seconds: float,
) -> Conversation[T]:
    """Asked again and again, each time held back by the server for as many seconds as it is given."""
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        left = calls.LONGEST_WAIT_SECONDS if deadline is None else max(0.0, deadline - time.monotonic())
        wanted = min(left, calls.LONGEST_WAIT_SECONDS)
        asked_at = time.monotonic()
        call = asked_with(wanted)
        document = yield from ask(call, Patience(patience_seconds if deadline is None else min(left, patience_seconds)))
        found = call.read(document)
        if is_over(found):
            return found
        if timeout is not None and deadline is not None and time.monotonic() >= deadline:
            raise too_late(found, timeout)
        if time.monotonic() - asked_at < wanted / 2:  # a server that shuts down holds nothing back
            yield Pause(EARLY_ANSWER_PAUSE_SECONDS)


def read_json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise UnreadableAnswer(f"the answer is not JSON: {body[:60]!r}") from error


def _trouble(outcome: Outcome) -> Unreachable | ApiError | None:
    if isinstance(outcome, Unreachable):
        return outcome
    assert outcome is not None, "a request has an outcome"
    return None if 200 <= outcome.status < 300 else api_error(outcome.status, outcome.body, outcome.retry_after)
