"""What every system in the contest runs, and where; needs nothing but Python itself."""

import os
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit


class Place:
    """The database and the broker of one run. Each run has a database of its own, and queues of its own by its name."""

    def __init__(self, database_url: str, amqp_url: str) -> None:
        self.database_url = database_url
        self.amqp_url = amqp_url
        self.name = urlsplit(database_url).path.strip("/")

    def database_url_for(self, driver: str) -> str:
        return f"{driver}://{self.database_url.partition('://')[2]}"


class Peer(Protocol):
    """One system, ready to be filled or to work."""

    def prepare(self) -> None:
        """Makes the tables."""

    def connected(self) -> AbstractContextManager[object]:
        """Connections are made before the clock runs."""

    def submit_no_ops(self, number: int) -> None:
        """In the fastest durable way that the system offers."""

    def submit_note(self, path: str, key: int, seconds: float) -> None:
        """One task that notes its start and then takes so long."""

    def work(self, *options: str) -> None:
        """Until it is ended."""


def no_op() -> float:
    """Every system keeps what a task gives back, where it keeps results at all."""
    return time.time()


def note(path: str, key: int, seconds: float) -> None:
    """One line in a file that all systems share: which task, when it started, in which process."""
    at = time.time()
    with Path(path).open("a") as file:
        file.write(f"{key} {at!r} {os.getpid()}\n")
    time.sleep(seconds)
