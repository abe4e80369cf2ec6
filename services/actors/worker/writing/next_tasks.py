"""What `Starts` asks of Postgres, by the writer's connections."""

from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from windlass.shared import db, tracing
from windlass.shared.metrics.services import WRITE_BATCH
from windlass.shared.store import tasks
from windlass.shared.store.tasks import Ask, Granted


class NextTasks:
    """The pool is asked for each time: it is opened on the loop, after this is made."""

    def __init__(self, pool: Callable[[], db.Database], worker_id: str, lease_seconds: float) -> None:
        self._pool = pool
        self._worker_id = worker_id
        self._lease_seconds = lease_seconds
        self._claimed_at_once = WRITE_BATCH.labels("claims")

    async def claim_next(self, ask: Ask, epoch: int) -> Granted:
        answer = await tasks.claim_next(
            self._pool(), self._worker_id, ask, self._lease_seconds, epoch=epoch, traced=tracing.is_on()
        )
        if answer.claimed:
            self._claimed_at_once.observe(len(answer.claimed))
        return answer

    async def recall(self, tokens: Sequence[UUID], epoch: int) -> Granted:
        return await tasks.recall(
            self._pool(), self._worker_id, tokens, self._lease_seconds, epoch=epoch, traced=tracing.is_on()
        )

    async def unclaimable(self, queues: Sequence[str], aside: Sequence[UUID]) -> Mapping[UUID, str]:
        return await tasks.unclaimable(self._pool(), self._worker_id, queues, aside=aside)
