"""Ends that a test waits for, as no thread of a worker does."""

from threading import Event
from typing import Generic, TypeVar

from windlass.services.actors.worker.writing.writer import Writer
from windlass.shared.store.tasks import Ending

Answer = TypeVar("Answer")


class Reply(Generic[Answer]):
    def __init__(self) -> None:
        self._arrived = Event()
        self._answer: Answer
        self._error: BaseException | None = None

    def give(self, answer: Answer) -> None:
        self._answer = answer
        self._arrived.set()

    def fail(self, error: BaseException) -> None:
        self._error = error
        self._arrived.set()

    def wait(self) -> Answer:
        self._arrived.wait()
        if self._error is not None:
            raise self._error
        return self._answer


def end(writer: Writer, ending: Ending) -> str | None:
    """Returns once Postgres has it."""
    reply: Reply[str | None] = Reply()
    writer.hand_over(ending, reply)
    return reply.wait()
