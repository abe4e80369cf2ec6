"""The same runs under real claims: a task in a database, claimed, fenced and ended by a worker's own machine.

What is not here is what brings a task to a worker: no dispatcher, no broker, no guardian, no heartbeat.
"""

import secrets
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from uuid_utils.compat import uuid4, uuid7

from windlass.services.actors.worker.attempts import Attempts
from windlass.services.actors.worker.calls import Calls
from windlass.services.actors.worker.context.context import Context
from windlass.services.actors.worker.ending.results import fitting
from windlass.services.actors.worker.executor import Executor, Running
from windlass.services.actors.worker.guests import Guests
from windlass.services.actors.worker.writing.writer import Writer
from windlass.shared.actors.task_options import OPTIONS
from windlass.shared.db import Database
from windlass.shared.errors import PermanentError, Thrown
from windlass.shared.retry_delays import RetrySettings, stored_delays
from windlass.shared.settings import Settings
from windlass.shared.states import State
from windlass.shared.storage import open_storage
from windlass.shared.store import tasks
from windlass.shared.store.kept_files import files_of
from windlass.shared.store.reading import events
from windlass.shared.store.record import columns_of
from windlass.shared.store.rows import TaskRow
from windlass.shared.store.tasks import Claim, Refused, Submission
from windlass.shared.store.tasks.children import children_of
from windlass.shared.store.tasks.steps import finished_steps, results_of_steps
from windlass.testing.calling import Called
from windlass.testing.memory import Kept, Step

PATIENCE_SECONDS = 10.0
ANSWER_SECONDS = 60.0
Answer = TypeVar("Answer")

MOST_EVENTS, MOST_BYTES = 10_000, 10_000_000


class RealMachine:
    """A worker that runs one task, in the test's own thread."""

    def __init__(self, called: Called, payload: dict[str, Any], database_url: str, timeout_seconds: float) -> None:
        self._called = called
        # All else as the environment has it, as for a worker: the media directory belongs to the database.
        retries = RetrySettings.model_validate({"WorkerLost": [0]})
        self._settings = Settings(database_url=database_url, retries=retries)
        self._worker_id = f"testing-{secrets.token_hex(6)}"
        self._writer = Writer(self._settings, self._worker_id, on_claim=lambda _tokens, _end: None)
        self._calls = Calls(patience_seconds=PATIENCE_SECONDS)
        self._attempts = Attempts()
        self._executor = Executor(
            self._writer,
            self._attempts,
            self._calls,
            self._worker_id,
            settings=self._settings,
            guests=Guests([]),
            condemn=lambda _reason: None,
        )
        self._writer.start()
        self._calls.start()
        submission = Submission(
            task_id=uuid7(),
            actor=called.name,
            provider=called.name,
            payload=payload,
            user_id="tester",
            timeout_seconds=timeout_seconds,
            max_retries=called.max_retries,
            retry_delays=stored_delays((0.0,)),
        )
        self._task_id = submission.task_id
        self._error: BaseException | None = None
        self._ask(lambda pool: tasks.submit(pool, [submission]))
        self._running: Running

    def claim(self) -> Context:
        if self._row().status in {State.DEAD, State.CANCELLED}:
            self._ask(lambda pool: tasks.revive(pool, self._task_id))
        # Alone: a task that has lost several workers runs in such a process only.
        answer, lease_end = self._writer.claim_alone(Claim(self._task_id, uuid4()))
        if isinstance(answer, Refused):
            refused = f"task {self._task_id} of {self._called.name} is not claimed: {answer.reason}"
            raise RuntimeError(refused)  # noqa: TRY004 - an answer, and no argument
        self._running = self._executor.grant(answer, lease_end)
        if not self._executor.take_up(self._running):
            raise RuntimeError(f"task {self._task_id} of {self._called.name} came too late, and is handed back")
        context = self._running.context
        context.begin()
        self._error = None
        return context

    def end(self, context: Context, result: Any, error: BaseException | None) -> None:  # noqa: ARG002 - as in memory
        self._error = error
        if error is None:
            try:
                self._running.result = fitting(result, self._settings)
            except PermanentError as refused:
                self._error = error = refused
        if isinstance(error, self._called.throws) and not isinstance(error, PermanentError):
            error = Thrown(error)
        is_answered = threading.Event()
        self._running.on_answered = is_answered.set
        self._executor.end(self._running, error)
        is_answered.wait()

    def take_back(self) -> None:
        """As the janitor does when a worker is known to be dead."""
        retries = self._settings.retries
        self._ask(
            lambda pool: tasks.stall(pool, expired_for_seconds=None, dead_workers=[self._worker_id], retries=retries)
        )

    def cancel(self, context: Context) -> None:
        self._ask(lambda pool: tasks.cancel(pool, self._task_id))
        context.stop("cancelled")

    def lose_lease(self, context: Context) -> None:
        self.take_back()
        context.stop("lost")

    def look(self) -> Kept:
        task_id, row = self._task_id, self._row()
        results = self._ask(lambda pool: results_of_steps(pool, task_id))
        steps = self._ask(lambda pool: finished_steps(pool, task_id))
        told = self._ask(lambda pool: events.page(pool, task_id, after=0, most_rows=MOST_EVENTS, most_bytes=MOST_BYTES))
        children = self._ask(lambda pool: children_of(pool, task_id))
        return Kept(
            task_id=task_id,
            attempt=row.attempt,
            life=row.life,
            status=row.status,
            error=self._error,
            result=row.result,
            checkpoint=row.checkpoint,
            steps={each.name: Step(each.name, each.attempt, each.elapsed_ms, results[each.name]) for each in steps},
            events=[{"type": each.type, "attempt": each.attempt, "data": each.data} for each in told],
            children={str(each.task_id): _child(each) for each in children},
            files=self._ask(self._files),
        )

    async def _files(self, pool: Database) -> dict[str, bytes]:
        """As the storage has them."""
        storage = open_storage(self._settings)
        return {
            str(each.content_id): b"".join([piece async for piece in storage.read(each.place, 0, each.size_bytes)])
            for each in await files_of(pool, self._task_id)
        }

    def close(self) -> None:
        self._calls.close()
        self._writer.close(PATIENCE_SECONDS)

    def _ask(self, intent: Callable[[Database], Coroutine[Any, Any, Answer]]) -> Answer:
        """A worker asks again when it is not answered soon; a test waits, however busy its machine is."""
        return self._writer.call(intent, patience_seconds=ANSWER_SECONDS)

    def _row(self) -> Any:
        return self._ask(lambda pool: tasks.get(pool, self._task_id))


def _child(row: TaskRow) -> dict[str, Any]:
    """What was asked for, by what became of it: of the options all that its row has, said or not."""
    options = {name: row[name] for name in columns_of(TaskRow) if name in OPTIONS}
    return {"task_id": str(row.task_id), "actor": row.actor, "payload": row.payload, "options": options}
