"""Processes that do not want to stop, that leave others behind, and that talk too much."""

import asyncio
import signal
from pathlib import Path
from typing import Self

from tests.support.up import still_running
from windlass.services.laptop.supervision.children import Child, Children
from windlass.services.laptop.supervision.waiting import until
from windlass.shared.process.procfs import ProcessIdentity, descendants

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


class Family:
    """Children whose lines are kept; none of them outlives its test."""

    def __init__(self) -> None:
        self.children = Children()
        self.lines: list[str] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.children.end_all()

    def shell(self, script: str) -> Child:
        return self.children.start(["sh", "-c", script], environment=ENVIRONMENT, on_line=self.lines.append)

    async def has_said(self, line: str) -> None:
        assert await until(lambda: line in self.lines, 10)


def test_a_child_that_ignores_its_stop_signal_is_killed_with_everything_below_it() -> None:
    async def scenario() -> None:
        async with Family() as family:
            child = family.shell("trap '' TERM; (trap '' TERM; sleep 600; true) & echo deaf; sleep 600; true")
            await family.has_said("deaf")
            assert await until(lambda: len(descendants(child.pid)) == 3, 10)  # a shell below it, and a sleep of each
            everyone = [child.identity, *descendants(child.pid)]
            assert await family.children.stop(child, signal.SIGTERM, 0.2) is False
            assert still_running(everyone) == []

    asyncio.run(scenario())


def test_a_frozen_child_stops_when_it_is_told_to() -> None:
    async def scenario() -> None:
        async with Family() as family:
            child = family.shell("echo here; sleep 600")
            await family.has_said("here")
            child.send(signal.SIGSTOP)
            assert await family.children.stop(child, signal.SIGTERM, 10) is True

    asyncio.run(scenario())


def test_orphans_in_sessions_of_their_own_do_not_escape() -> None:
    async def scenario() -> None:
        async with Family() as family:
            child = family.shell("trap 'exit 7' USR1; setsid sh -c 'echo $$; exec sleep 600' & wait")
            assert await until(lambda: bool(family.lines), 10)
            child.send(signal.SIGUSR1)
            assert await child.wait() == 7
            orphan = ProcessIdentity.of(int(family.lines[0]))
            assert orphan
            assert orphan.is_running()
            await family.children.end(child)
            assert not orphan.is_running()

    asyncio.run(scenario())


def test_its_last_words_are_read_before_its_end_is_known() -> None:
    async def scenario() -> None:
        async with Family() as family:
            child = family.shell("printf 'one\\r\\ntwo\\nno end of line'; kill -9 $$")
            assert await child.wait() == -signal.SIGKILL
            assert family.lines == ["one", "two", "no end of line"]

    asyncio.run(scenario())


def test_a_line_without_end_comes_in_pieces_and_none_of_it_is_lost() -> None:
    async def scenario() -> None:
        async with Family() as family:
            child = family.shell("head -c 300000 /dev/zero | tr '\\0' 'x'; echo; echo after")
            assert await child.wait() == 0
            assert sum(line.count("x") for line in family.lines) == 300_000
            assert family.lines[-1] == "after"

    asyncio.run(scenario())


def test_a_program_that_does_not_exist_ends_like_one_that_failed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Family() as family:
            finished = await family.children.run([tmp_path / "nothing"], environment=ENVIRONMENT)
            assert finished.code == 1
            assert "No such file" in finished.output

    asyncio.run(scenario())
