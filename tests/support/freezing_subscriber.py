"""Handles the moves of one subject of a feature, and freezes itself before a certain call to Postgres. Tests start it
with `frozen_at`."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from typing import Any
from uuid import UUID

import asyncpg

from tests.support.installation import PROJECT
from tests.support.waiting import wait_until
from windlass.shared import db
from windlass.shared.features.handling import handle_pending
from windlass.shared.features.registry import FEATURES
from windlass.shared.settings import Settings

Process = subprocess.Popen[bytes]


def frozen_at(database_url: str, feature: str, subject: UUID, place: int) -> Process:
    """Starts a process that freezes before this call of its transaction; the first one is its BEGIN."""
    command = [sys.executable, "-m", "tests.support.freezing_subscriber", feature, str(subject), str(place)]
    return subprocess.Popen(command, cwd=PROJECT, env={**os.environ, "WINDLASS_DATABASE_URL": database_url})


def is_stopped(pid: int) -> bool:
    with open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123
        return stat.read().rpartition(")")[2].split()[0] == "T"


async def all_frozen(processes: Iterable[Process]) -> None:
    for process in processes:
        await asyncio.to_thread(
            wait_until, "it is frozen", lambda process=process: is_stopped(process.pid), seconds=180
        )


async def all_ended(processes: Iterable[Process]) -> None:
    for process in processes:
        process.send_signal(signal.SIGCONT)
    for process in processes:
        await asyncio.to_thread(process.wait, 30)


class Freezing:
    """Before the call of this number, counted from the beginning of a transaction."""

    def __init__(self, place: int) -> None:
        self._place = place
        self._calls = 0
        self.is_over = False
        for name in ("execute", "executemany", "fetch", "fetchrow", "fetchval"):
            self._count(name)

    def _count(self, name: str) -> None:
        original = getattr(asyncpg.Connection, name)

        async def call(connection: asyncpg.Connection, statement: str, *arguments: Any, **options: Any) -> Any:
            begins = statement.startswith("BEGIN")
            self._calls = 1 if begins else self._calls + bool(self._calls)
            if self._calls == self._place and not self.is_over:
                self.is_over = True
                os.kill(os.getpid(), signal.SIGSTOP)
            return await original(connection, statement, *arguments, **options)

        setattr(asyncpg.Connection, name, call)


async def main(name: str, subject: UUID, place: int) -> None:
    (feature,) = [each for each in FEATURES if each.name == name]
    pool = await db.open_feature_pool(Settings(), "orchestrator", most=1)
    freezing, rows = Freezing(place), 0
    try:
        # On a busy machine a transaction may be idle for too long before it comes to the call.
        while not freezing.is_over and not rows:
            rows = (await handle_pending(pool, feature, [subject])).rows
    finally:
        pool.terminate()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], UUID(sys.argv[2]), int(sys.argv[3])))
