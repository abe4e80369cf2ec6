"""The engine's own calls over one connection, round after round: what each costs Postgres, whatever else goes on."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any, TypeVar
from uuid import uuid4

from uuid_utils.compat import uuid7

from bench.deployment import precise_cpu_seconds
from windlass.shared import db
from windlass.shared.settings import Settings
from windlass.shared.store import tasks
from windlass.shared.store.flow_control import providers
from windlass.shared.store.flow_control.flow import Rules
from windlass.shared.store.operating import workers
from windlass.shared.store.tasks import Ask, Ending, Submission

STARTING = ("look", "claim")
"""The calls that a task takes to its start; the last one is its end."""
STEPS = (*STARTING, "end")
WORKER = "bench"
LEASE_SECONDS = 600

T = TypeVar("T")


@dataclass(frozen=True)
class Cost:
    """Of one call."""

    cpu_ms: float
    ms: float


Round = Mapping[str, Cost]


class HotPath:
    """One backend that looks, claims and ends for one provider, as dispatcher and worker do."""

    def __init__(self, connection: db.Database, pid: int, provider: str) -> None:
        self.connection = connection
        self.pid = pid
        self.provider = provider
        self.rules = Rules.of(Settings())

    async def submit(self, number: int, **fields: Any) -> None:
        task: dict[str, Any] = {
            "actor": "probe",
            "provider": self.provider,
            "payload": {},
            "user_id": "bench",
            "timeout_seconds": 300,
            **fields,
        }
        for begin in range(0, number, 1000):
            wanted = range(min(1000, number - begin))
            await tasks.submit_batch(self.connection, [Submission(task_id=uuid7(), **task) for _ in wanted])

    async def round(self, number: int | None = None) -> tuple[Round, int]:
        """What each call cost, and how many tasks went through: as many as are admitted, or so many whatever the
        workers' capacity is."""
        costs: dict[str, Cost] = {}
        (view,) = await self._spent(
            costs,
            "look",
            lambda: providers.look(self.connection, heard_within_seconds=LEASE_SECONDS, only=[self.provider]),
        )
        wanted = number or min(view.idle_places, view.fresh_starts + view.retry_starts)
        ask = Ask({f"probe.{self.provider}": wanted}, [uuid4() for _ in range(wanted)])
        answer = await self._spent(
            costs, "claim", lambda: tasks.claim_next(self.connection, WORKER, ask, LEASE_SECONDS)
        )
        endings = [
            Ending(each.task_id, each.attempt, each.claim_token, "complete", result={}) for each in answer.claimed
        ]
        assert len(endings) == wanted > 0, answer
        ends = await self._spent(costs, "end", lambda: tasks.end(self.connection, endings, self.rules))
        assert set(ends) == {"completed"}, ends
        return costs, len(endings)

    async def _spent(self, costs: dict[str, Cost], step: str, call: Callable[[], Awaitable[T]]) -> T:
        cpu, began = precise_cpu_seconds(self.pid), time.perf_counter()
        answer = await call()
        passed = time.perf_counter() - began
        costs[step] = Cost((precise_cpu_seconds(self.pid) - cpu) * 1000, passed * 1000)
        return answer


def middle(rounds: Sequence[Round]) -> Round:
    """The median of each call."""
    return {
        step: Cost(median(each[step].cpu_ms for each in rounds), median(each[step].ms for each in rounds))
        for step in STEPS
    }


def cpu_of_a_start(costs: Round) -> float:
    return sum(costs[step].cpu_ms for step in STARTING)


@asynccontextmanager
async def a_hot_path(url: str, provider: str, *, capacity: int) -> AsyncIterator[HotPath]:
    """With a worker that is heard of, so that its places count."""
    pool = await db.open_pool(Settings(database_url=url), "bench", most=1)
    try:
        async with pool.acquire() as connection:
            queues = [f"probe.{provider}"]
            await workers.register(connection, WORKER, hostname="bench", pid=1, queues=queues, capacity=capacity)
            yield HotPath(connection, connection.get_server_pid(), provider)
    finally:
        await pool.close()
