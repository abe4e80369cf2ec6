"""A worker that is told to stop while a claim of its own is under way starts nothing that nobody would stop."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from dramatiq import Message, MessageProxy
from dramatiq.brokers.stub import StubBroker

from tests.support.engine.store import Engine
from tests.support.engine.store_from_threads import ask, held_up
from tests.support.waiting import wait_until
from windlass.services.actors.worker.attempts import Attempts
from windlass.services.actors.worker.calls import Calls
from windlass.services.actors.worker.context import Stopped
from windlass.services.actors.worker.mirror import StateMirror
from windlass.services.actors.worker.writing.writer import Writer
from windlass.shared.settings import Settings

A_TASK = "SELECT 1 FROM tasks WHERE task_id = $1 FOR NO KEY UPDATE"


@pytest.fixture
def mirror(database_url: str) -> Iterator[StateMirror]:
    settings = Settings(database_url=database_url)
    writer = Writer(settings, "worker-1", on_claim=lambda _tokens, _lease_end: None)
    writer.start()
    yield StateMirror(
        writer,
        Attempts(),
        Calls(patience_seconds=1),
        "worker-1",
        settings=settings,
        on_suspect=lambda: None,
        condemn=lambda _reason: None,
    )
    writer.close(timeout=10)
    writer._loop.close()


async def a_claim_waits(engine: Engine) -> bool:
    waiting = (
        "SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    return bool(await engine.pool.fetchval(waiting))


def test_what_is_granted_while_the_worker_is_told_to_stop_is_handed_back(
    database_url: str, mirror: StateMirror
) -> None:
    broker = StubBroker(middleware=[])
    task_id = ask(database_url, lambda engine: engine.submit())
    message = MessageProxy(Message("probe.probe", "probe", (str(task_id),), {}, {}))

    def process() -> None:
        mirror.before_process_message(broker, message)
        try:
            mirror.running.context.check()
        except Stopped as stopped:
            mirror.after_process_message(broker, message, exception=stopped)

    with ThreadPoolExecutor(1) as pool:
        with held_up(database_url, A_TASK, task_id):
            processing = pool.submit(process)
            wait_until("the claim waits", lambda: ask(database_url, a_claim_waits))
            # As a worker does it that is told to stop: nothing runs yet that could be asked to.
            mirror.closed = True
            mirror._attempts.stop_all()
        processing.result(10)
    assert ask(database_url, lambda engine: engine.status(task_id)) == "queued"
