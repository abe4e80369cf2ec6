"""A private Postgres or RabbitMQ that a test can take away and bring back, in a process that ends it with the test."""

# As a program (`python -m tests.support.servers.restartable_servers DIRECTORY postgres|rabbitmq [MEGABYTES]`) this
# starts it, perhaps on a disk of that size, and prints where it is. Told `stop SIGNAL` on its standard input it ends
# the server by that signal, told `stop SIGNAL all` with every process below it; told `send SIGNAL` it sends that to all
# of them, and told `start` it brings it back. Each is answered by a line.
import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path

from tests.support.helper_process import HelperProcess, helper_process
from tests.support.servers.private_servers import new_directory
from tests.support.servers.small_disk import move_to_a_small_disk
from windlass.services.laptop.servers.postgres import PrivatePostgres
from windlass.services.laptop.servers.rabbitmq import PrivateRabbitmq
from windlass.services.laptop.supervision.children import Children
from windlass.services.laptop.supervision.console import Console
from windlass.shared.process.procfs import descendants

Server = PrivatePostgres | PrivateRabbitmq


class RestartableServer:
    """As the test holds it."""

    def __init__(self, keeper: HelperProcess) -> None:
        self._keeper = keeper
        self.url = keeper.answer()

    def stop(self, how: signal.Signals, *, with_all_below: bool = False) -> None:
        self._keeper.tell(f"stop {how.name}" + (" all" if with_all_below else ""))

    def start(self) -> None:
        self._keeper.tell("start")

    def send(self, signum: signal.Signals) -> None:
        """To the server and every process below it: frozen and thawed whole."""
        self._keeper.tell(f"send {signum.name}")


@contextlib.contextmanager
def restartable_postgres() -> Iterator[RestartableServer]:
    with _restartable("postgres") as server:
        yield server


@contextlib.contextmanager
def postgres_on_a_small_disk(megabytes: int) -> Iterator[RestartableServer]:
    with _restartable("postgres", str(megabytes)) as server:
        yield server


@contextlib.contextmanager
def restartable_rabbitmq() -> Iterator[RestartableServer]:
    with _restartable("rabbitmq") as server:
        yield server


@contextlib.contextmanager
def _restartable(name: str, *options: str) -> Iterator[RestartableServer]:
    directory = new_directory()
    with helper_process("tests.support.servers.restartable_servers", directory, name, *options) as keeper:
        yield RestartableServer(keeper)
    shutil.rmtree(directory, ignore_errors=True)


async def keep(directory: Path, name: str) -> None:
    with (directory / "server.log").open("a") as log:
        console = Console(log.fileno(), log.fileno(), [name])
        children = Children()
        server = _server(name, directory / name, children, partial(console.line, name))
        try:
            await server.start()
            print(server.url, flush=True)
            async for order in _orders():
                match order.split():
                    case ["stop", signame, *others]:
                        await _end(server, signal.Signals[signame], with_all_below="all" in others)
                    case ["send", signame]:
                        _send(server, signal.Signals[signame], with_all_below=True)
                    case ["start"]:
                        await server.start()
                print("done", flush=True)
        finally:
            children.kill_all()
            await children.end_all()
            console.close()
            data = [server.data] if isinstance(server, PrivatePostgres) else []
            for place in (*data, directory):
                shutil.rmtree(place, ignore_errors=True)


def _server(name: str, directory: Path, children: Children, say: Callable[[str], None]) -> Server:
    return (PrivatePostgres if name == "postgres" else PrivateRabbitmq)(directory, children, say)


async def _end(server: Server, how: signal.Signals, *, with_all_below: bool) -> None:
    _send(server, how, with_all_below=with_all_below)
    await server.wait()
    await server.stop()


def _send(server: Server, signum: signal.Signals, *, with_all_below: bool) -> None:
    assert server.pid
    below = descendants(server.pid) if with_all_below else []
    os.kill(server.pid, signum)
    for process in below:
        process.send(signum)


async def _orders() -> AsyncIterator[str]:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield line.decode()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for megabytes in sys.argv[3:]:
        move_to_a_small_disk(Path(sys.argv[1]), int(megabytes))
    asyncio.run(keep(Path(sys.argv[1]), sys.argv[2]))
