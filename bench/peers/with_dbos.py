"""DBOS: every task a durable workflow on a queue in its Postgres system database.

`work EXECUTOR WORKER_CONCURRENCY POLLING_SECONDS`: one executor; a worker concurrency of 0 is its default, no limit.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dbos import DBOS, DBOSClient
from sqlalchemy import create_engine

from bench.peers.tasks import Place, no_op, note

BATCH = 1000
QUEUE = "contest"


class System:
    def __init__(self, place: Place) -> None:
        self.url = place.database_url_for("postgresql+psycopg")
        DBOS.workflow(name="no_op")(no_op)
        DBOS.workflow(name="note")(note)

    def prepare(self) -> None:
        self._launch("prepare")
        DBOS.destroy()

    def _launch(self, executor: str) -> None:
        # One version for all: else each program's source would make one of its own.
        config = {"name": "contest", "application_version": "1", "executor_id": executor, "log_level": "ERROR"}
        DBOS(config={**config, "system_database_url": self.url})
        DBOS.launch()

    @contextmanager
    def connected(self) -> Iterator[object]:
        self.engine = create_engine(self.url)
        self.client = DBOSClient(system_database_engine=self.engine, application_name="contest")
        try:
            with self.engine.connect():
                yield self.client
        finally:
            self.client.destroy()
            self.engine.dispose()

    def submit_no_ops(self, number: int) -> None:
        for begin in range(0, number, BATCH):
            with self.engine.begin() as connection:
                for _ in range(min(BATCH, number - begin)):
                    self.client.enqueue_in_transaction(connection, {"queue_name": QUEUE, "workflow_name": "no_op"})

    def submit_note(self, path: str, key: int, seconds: float) -> None:
        self.client.enqueue({"queue_name": QUEUE, "workflow_name": "note"}, path, key, seconds)

    def work(self, *options: str) -> None:
        executor, concurrency, polling_seconds = options
        self._launch(executor)
        DBOS.register_queue(
            QUEUE, worker_concurrency=int(concurrency) or None, polling_interval_sec=float(polling_seconds)
        )
        threading.Event().wait()
