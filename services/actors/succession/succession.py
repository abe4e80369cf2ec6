"""The succession: looks whether workers that were here before are proven dead, and takes their tasks back."""

import asyncio
import logging
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from windlass.services.actors.succession.neighbours import neighbours
from windlass.services.actors.succession.verdict import Finding, Verdict, judge
from windlass.services.actors.succession.whereabouts import Whereabouts
from windlass.services.actors.worker.leases.take_back import take_back
from windlass.shared import db
from windlass.shared.errors import words_of
from windlass.shared.process import log_context
from windlass.shared.settings import Settings
from windlass.shared.store.operating import workers
from windlass.shared.store.rows import WorkerRow

log = logging.getLogger("actors")

LOOKS = 3
BETWEEN_LOOKS_SECONDS = 0.02
"""A process that forks while we look could escape one look, but not several."""

LOOKED_IN_VAIN: tuple[type[BaseException], ...] = (*db.AWAY_OR_BUSY, OSError)
"""Postgres did not answer, or a process could not be looked at."""

AGAIN_SECONDS = 0.5
"""A keeper that has lost its worker takes a moment to end its agent."""


class Succession:
    """Begun once this worker is registered, so that who starts beside it can tell its processes from what was left
    behind; over when nobody is left to be judged, and at the latest when the leases of then are."""

    def __init__(self, settings: Settings, worker_id: str, here: Whereabouts) -> None:
        self._settings = settings
        self._worker_id = worker_id
        self._here = here
        self._said: set[tuple[str, str]] = set()
        self._proofs: dict[str, dict[str, Any]] = {}

    def start(self) -> None:
        threading.Thread(target=lambda: asyncio.run(self._serve()), name="succession", daemon=True).start()

    async def _serve(self) -> None:
        pool = await db.open_pool(self._settings, "succession", most=1)
        until = time.monotonic() + self._settings.lease_seconds
        is_open = True
        while is_open and time.monotonic() < until:
            try:
                is_open = await self.look(pool)
            except LOOKED_IN_VAIN as error:
                log.info("looking again for who was here before (%s)", words_of(error))
            if is_open:
                await asyncio.sleep(AGAIN_SECONDS)
        await pool.close()

    async def look(self, pool: db.Database) -> bool:
        """Whether another look may find more: also after a proof, for a row that a call of the dead one had locked."""
        found = await self._verdicts(await workers.others_at(pool, self._here.hostname, self._worker_id))
        dead = {worker_id: verdict for worker_id, verdict in found.items() if verdict.finding is Finding.DEAD}
        for worker_id, verdict in found.items():
            self._say(worker_id, verdict)
        self._proofs |= {worker_id: self._proof(verdict) for worker_id, verdict in dead.items()}
        await take_back(pool, self._proofs, self._settings.retries)
        return bool(dead) or any(verdict.finding is Finding.NOT_YET for verdict in found.values())

    async def _verdicts(self, rows: Sequence[WorkerRow]) -> dict[str, Verdict]:
        """The least of several looks; the first that is not for a proof counts."""
        where = {row.worker_id: Whereabouts.read(row.whereabouts) for row in rows}
        found: dict[str, Verdict] = {}
        for number in range(LOOKS if where else 0):
            if number:
                await asyncio.sleep(BETWEEN_LOOKS_SECONDS)
            around = neighbours()
            others = [each for each in where.values() if each is not None]
            for worker_id, dead in where.items():
                if number == 0 or found[worker_id].finding is Finding.DEAD:
                    found[worker_id] = judge(worker_id, dead, self._here, around, others)
        return found

    def _say(self, worker_id: str, verdict: Verdict) -> None:
        if (worker_id, verdict.reason) in self._said:
            return
        self._said.add((worker_id, verdict.reason))
        with log_context.about(worker=worker_id):
            if verdict.finding is Finding.DEAD:
                log.warning("worker %s is proven dead: %s; taking back what it had", worker_id, verdict.reason)
            elif verdict.finding is not Finding.LIVES:
                log.info("worker %s is not proven dead, and keeps its leases: %s", worker_id, verdict.reason)

    def _proof(self, verdict: Verdict) -> dict[str, Any]:
        now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        proof = {"by": "successor", "successor": self._worker_id, "boot_id": self._here.boot_id}
        return {**proof, "reason": verdict.reason, "signals": [], "none_left_at": now}
