"""Celery on RabbitMQ with its results in Postgres, set up as its documentation advises for tasks that must not be lost.

`work PROCESSES`: the prefork pool. The database backend keeps its connections only in forked processes; in the thread
pool it opens a new one for every result.
"""

from contextlib import AbstractContextManager

from celery import Celery

from bench.peers.tasks import Place, no_op, note

PREFETCH = 64
"""Per process. The guide to optimising names 64 or 128 for many short tasks; the default is 4."""


class System:
    def __init__(self, place: Place) -> None:
        self.name = place.name
        self.app = Celery(
            "contest",
            broker=place.amqp_url,
            backend=place.database_url_for("db+postgresql+psycopg"),
        )
        self.app.conf.update(
            task_default_queue=place.name,
            task_acks_late=True,
            task_reject_on_worker_lost=True,
            broker_transport_options={"confirm_publish": True},
            broker_connection_retry_on_startup=True,
            worker_prefetch_multiplier=PREFETCH,
        )
        self.no_op = self.app.task(name="no_op")(no_op)
        self.note = self.app.task(name="note")(note)

    def prepare(self) -> None:
        self.app.backend.ResultSession().close()

    def connected(self) -> AbstractContextManager[object]:
        producer: AbstractContextManager[object] = self.app.producer_pool.acquire(block=True)
        self.producer = producer
        return producer

    def submit_no_ops(self, number: int) -> None:
        for _ in range(number):
            self.no_op.apply_async(producer=self.producer)

    def submit_note(self, path: str, key: int, seconds: float) -> None:
        self.note.apply_async((path, key, seconds), producer=self.producer)

    def work(self, *options: str) -> None:
        alone = (f"--hostname={self.name}@%h", "--loglevel=ERROR", "--without-gossip", "--without-mingle")
        self.app.worker_main(["worker", "--pool=prefork", f"--concurrency={options[0]}", *alone])
