"""Every process that this one starts, so that none is forgotten, left behind or left unread."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from windlass.services.laptop.supervision.lines import LineReader
from windlass.services.laptop.supervision.waiting import until
from windlass.shared.process.accounts import Account
from windlass.shared.process.kernel import adopt_orphans
from windlass.shared.process.procfs import ProcessIdentity, descendants, direct_children

LAST_WORDS_SECONDS: Final = 0.5
ORPHAN_SECONDS: Final = 5
LEASH: Final = Path(__file__).with_name("leash.py")

OnLine = Callable[[str], None]


@dataclass(frozen=True)
class Finished:
    code: int
    output: str


class Child:
    """One process, in a session of its own: a Ctrl-C on the terminal reaches the supervisor alone."""

    def __init__(self, process: subprocess.Popen[bytes], death_signal: signal.Signals, lines: LineReader) -> None:
        self.pid = process.pid
        self.death_signal = death_signal
        self.identity = ProcessIdentity.of(process.pid) or ProcessIdentity(process.pid, 0)
        self._process = process
        self._lines = lines
        self._descriptor = os.pidfd_open(process.pid)
        self._ended = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(self._descriptor, self._collect)

    @property
    def has_ended(self) -> bool:
        return self._ended.done()

    async def wait(self) -> int:
        """Its exit code, negative for a signal; what it wrote last has been read by then."""
        code: int = await asyncio.shield(self._ended)
        await self._lines.finish(LAST_WORDS_SECONDS)
        return code

    def send(self, signum: int) -> None:
        if not self.has_ended:
            self._process.send_signal(signum)

    def _collect(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._ended.set_result(self._process.wait())


class Children:
    """All children that this process has from now on, and their orphans, which the kernel makes its own.

    Used from the main thread: a child gets its death signal when the *thread* that started it ends.
    """

    def __init__(
        self,
        on_change: Callable[[Collection[Child]], None] | None = None,
        mark: Mapping[str, str] | None = None,
    ) -> None:
        """`mark` is in the environment of every child, for those who look for them."""
        adopt_orphans()
        # Whoever became this program by `exec` may have had children of his own.
        self._others = frozenset(direct_children(os.getpid()))
        self._children: dict[int, Child] = {}
        self._on_change = on_change
        self._mark = mark or {}

    def start(
        self,
        command: Sequence[str | Path],
        *,
        environment: Mapping[str, str],
        on_line: OnLine,
        directory: Path | None = None,
        account: Account | None = None,
        death_signal: signal.Signals = signal.SIGTERM,
        stdout: int | None = None,
    ) -> Child:
        """Starts a program whose lines (of stdout too, unless it goes elsewhere) are handed to `on_line`."""
        run_as = f"{account.uid}:{account.gid}" if account else "-"
        leash = [sys.executable, "-I", "-S", str(LEASH), str(os.getpid()), str(int(death_signal)), run_as]
        reading, writing = os.pipe()
        try:
            process = subprocess.Popen(
                [*leash, *command],
                stdin=subprocess.DEVNULL,
                stdout=writing if stdout is None else stdout,
                stderr=writing,
                cwd=directory,
                env={**environment, **self._mark},
                start_new_session=True,
            )
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        child = Child(process, death_signal, LineReader(reading, on_line))
        self._children[child.pid] = child
        self._tell()
        return child

    async def run(
        self,
        command: Sequence[str | Path],
        *,
        environment: Mapping[str, str],
        on_line: OnLine | None = None,
        directory: Path | None = None,
        account: Account | None = None,
    ) -> Finished:
        """Runs a command to its end; cancelled, it takes the command with it."""
        lines: list[str] = []
        child = self.start(
            command,
            environment=environment,
            on_line=on_line or lines.append,
            directory=directory,
            account=account,
            death_signal=signal.SIGKILL,
        )
        try:
            return Finished(await child.wait(), "\n".join(lines))
        finally:
            await self.end(child)

    async def stop(self, child: Child, signum: signal.Signals, seconds: float) -> bool:
        """Asks a child to stop, kills it when it does not within the time; whether it stopped by itself."""
        child.send(signum)
        child.send(signal.SIGCONT)  # one that was frozen could not even hear it
        try:
            async with asyncio.timeout(seconds):
                await child.wait()
        except TimeoutError:
            return False
        else:
            return True
        finally:
            await self.end(child)

    async def end(self, child: Child) -> None:
        """Kills a child that still runs, with everything below it, and ends what others left behind."""
        if not child.has_ended:
            for process in (*descendants(child.pid), child.identity):
                process.send(signal.SIGKILL)
            await child.wait()
        self._children.pop(child.pid, None)
        self._tell()
        await self.end_orphans()

    async def end_orphans(self) -> None:
        """Ends the processes whose parents ended without them: the kernel made them ours.

        They are asked first: a worker whose guardian was killed may have tasks to hand back.
        """
        for orphan in self._orphans():
            orphan.send(signal.SIGTERM)
        if not await until(lambda: not self._orphans(), ORPHAN_SECONDS):
            await until(self._orphans_are_killed, ORPHAN_SECONDS)

    def _orphans(self) -> list[ProcessIdentity]:
        """Those that run; the ones that have ended are collected."""
        known = {child.identity for child in self._children.values()} | self._others
        orphans = [child for child in direct_children(os.getpid()) if child not in known]
        for orphan in orphans:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(orphan.pid, os.WNOHANG)
        return [orphan for orphan in orphans if orphan.is_running()]

    def _orphans_are_killed(self) -> bool:
        orphans = self._orphans()
        for process in (*descendants(*(orphan.pid for orphan in orphans)), *orphans):
            process.send(signal.SIGKILL)
        return not orphans

    def kill_all(self) -> None:
        ours = [child for child in direct_children(os.getpid()) if child not in self._others]
        for process in (*descendants(*(child.pid for child in ours)), *ours):
            process.send(signal.SIGKILL)

    async def end_all(self) -> None:
        """Returns when nothing that was started here is left."""
        for child in list(self._children.values()):
            await self.end(child)
        await self.end_orphans()

    def _tell(self) -> None:
        if self._on_change:
            self._on_change(self._children.values())
