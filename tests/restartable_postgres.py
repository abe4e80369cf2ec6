"""A private Postgres that a test can take away and bring back, in a process that ends it when the test ends."""

# As a program (`python -m tests.restartable_postgres DIRECTORY`) this starts it and prints where it is. Told `stop
# SIGNAL` on its standard input it ends the server by that signal, told `start` it brings it back; each is answered by a
# line.
import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

from services.cli.servers.postgres import PrivatePostgres
from services.cli.supervision.children import Children
from services.cli.supervision.console import Console
from tests.servers import PROJECT, new_directory


class RestartablePostgres:
    """As the test holds it."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.url = self._answer()

    def stop(self, how: signal.Signals) -> None:
        self._tell(f"stop {how.name}")

    def start(self) -> None:
        self._tell("start")

    def _tell(self, order: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(f"{order}\n")
        self._process.stdin.flush()
        self._answer()

    def _answer(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, "the keeper of Postgres has died"
        return line.strip()


@contextlib.contextmanager
def restartable_postgres() -> Iterator[RestartablePostgres]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.restartable_postgres", new_directory()],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield RestartablePostgres(process)
        finally:
            assert process.stdin
            process.stdin.close()
            process.wait(30)


async def keep(directory: Path) -> None:
    with (directory / "postgres.log").open("a") as log:
        console = Console(log.fileno(), log.fileno(), ["postgres"])
        children = Children()
        postgres = PrivatePostgres(directory / "postgres", children, partial(console.line, "postgres"))
        try:
            await postgres.start()
            print(postgres.url, flush=True)
            async for order in _orders():
                match order.split():
                    case ["stop", name]:
                        await _end(postgres, signal.Signals[name])
                    case ["start"]:
                        await postgres.start()
                print("done", flush=True)
        finally:
            children.kill_all()
            await children.end_all()
            console.close()
            for place in (postgres.data, directory):
                shutil.rmtree(place, ignore_errors=True)


async def _end(postgres: PrivatePostgres, how: signal.Signals) -> None:
    assert postgres.pid
    os.kill(postgres.pid, how)
    await postgres.wait()
    await postgres.stop()


async def _orders() -> AsyncIterator[str]:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield line.decode()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(keep(Path(sys.argv[1])))
