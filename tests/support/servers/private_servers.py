"""A private Postgres and a private RabbitMQ for tests, in a process that ends them when the tests end."""

# As a program (`python -m tests.support.servers.private_servers DIRECTORY`) this starts both, prints where they are and
# serves until its standard input is closed. The kernel does that when the test run dies, however it dies.
import asyncio
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from windlass.services.laptop.servers.postgres import PrivatePostgres
from windlass.services.laptop.servers.rabbitmq import PrivateRabbitmq
from windlass.services.laptop.supervision.children import Children
from windlass.services.laptop.supervision.console import Console

PROJECT = Path(__file__).parents[3]
START_SECONDS = 120
STOP_SECONDS = 60


@dataclass(frozen=True)
class Servers:
    """Where the servers are and which processes they are; `pid` is the one that keeps them.

    Only throw-away servers have RabbitMQ's HTTP API, which takes seconds to stop in order.
    """

    database_url: str
    amqp_url: str
    management_url: str | None
    postgres_pid: int
    rabbitmq_pid: int
    pid: int
    log: str


@contextlib.contextmanager
def running_servers(directory: Path) -> Iterator[Servers]:
    """Starts the servers on this directory, which they keep, and stops them in order."""
    with _keeper(directory) as servers:
        yield servers


@contextlib.contextmanager
def throw_away_servers() -> Iterator[Servers]:
    """Starts the servers on a directory that goes with them, and kills them."""
    with _keeper(new_directory(), "--throw-away") as servers:
        yield servers


@contextlib.contextmanager
def open_directory() -> Iterator[Path]:
    """A new one, for as long as it is needed."""
    directory = new_directory()
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def new_directory() -> Path:
    """Unlike pytest's own, open to the accounts that Postgres and agents run under when root runs the tests."""
    directory = Path(tempfile.mkdtemp(prefix="windlass-test-"))
    directory.chmod(0o711)
    return directory


@contextlib.contextmanager
def _keeper(directory: Path, *options: str) -> Iterator[Servers]:
    # In a session of its own: a Ctrl-C on the terminal is for pytest, which then takes it down.
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.servers.private_servers", directory, *options],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdin
        assert process.stdout
        try:
            ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
            line = process.stdout.readline() if ready else b""
            assert line, f"the servers did not start: see above, and {directory / 'servers.log'}"
            yield Servers(**json.loads(line))
        finally:
            with contextlib.suppress(OSError):
                process.stdin.close()
            process.wait(STOP_SECONDS)


async def serve(directory: Path, *, throw_away: bool) -> None:
    with (directory / "servers.log").open("a") as log:
        console = Console(log.fileno(), log.fileno(), ["postgres", "rabbitmq"])
        children = Children()
        postgres = PrivatePostgres(directory / "postgres", children, partial(console.line, "postgres"))
        rabbitmq = PrivateRabbitmq(
            directory / "rabbitmq", children, partial(console.line, "rabbitmq"), management=throw_away
        )
        starting = asyncio.ensure_future(asyncio.gather(postgres.start(), rabbitmq.start()))
        told_to_stop = asyncio.ensure_future(_input_is_closed())
        try:
            either: list[asyncio.Future[Any]] = [starting, told_to_stop]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not told_to_stop.done():
                starting.result()
                announce(postgres, rabbitmq, log.name)
                await told_to_stop
        finally:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            if throw_away:
                children.kill_all()
            await asyncio.gather(rabbitmq.stop(), postgres.stop())
            await children.end_all()
            console.close()
            for place in (postgres.data, directory) if throw_away else ():
                shutil.rmtree(place, ignore_errors=True)


def announce(postgres: PrivatePostgres, rabbitmq: PrivateRabbitmq, log: str) -> None:
    assert postgres.pid
    assert rabbitmq.pid
    pids = postgres.pid, rabbitmq.pid, os.getpid()
    servers = Servers(postgres.url, rabbitmq.url, rabbitmq.management_url, *pids, log)
    print(json.dumps(asdict(servers)), flush=True)


async def _input_is_closed() -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(serve(Path(sys.argv[1]), throw_away="--throw-away" in sys.argv[2:]))
