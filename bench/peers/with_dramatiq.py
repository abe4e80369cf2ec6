"""Dramatiq alone, with its default middleware: the floor of a start, and what its broker does for a killed worker.

`work THREADS`: one process. How fast it drains is measured by `bench.bare_dramatiq`, which keeps no state either.
"""

import threading
from contextlib import AbstractContextManager, closing

import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker

from bench.peers.tasks import Place, no_op, note


class System:
    def __init__(self, place: Place) -> None:
        self.broker = RabbitmqBroker(url=place.amqp_url)
        self.no_op = dramatiq.actor(broker=self.broker, queue_name=place.name)(no_op)
        self.note = dramatiq.actor(broker=self.broker, queue_name=place.name)(note)

    def prepare(self) -> None:
        """It has no tables."""

    def connected(self) -> AbstractContextManager[object]:
        self.broker.declare_queue(self.note.queue_name, ensure=True)
        return closing(self.broker)

    def submit_no_ops(self, number: int) -> None:
        for _ in range(number):
            self.no_op.send()

    def submit_note(self, path: str, key: int, seconds: float) -> None:
        self.note.send(path, key, seconds)

    def work(self, *options: str) -> None:
        dramatiq.Worker(self.broker, worker_threads=int(options[0])).start()
        threading.Event().wait()
