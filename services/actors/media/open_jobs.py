"""Jobs at providers that no task waits for any more: looked after until they are known to have ended."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar
from uuid import UUID

from windlass.services.actors.media.fetching import sweep
from windlass.shared import db
from windlass.shared.actors.payloads import MediaPayload
from windlass.shared.errors import NotFound, SubmitUnknown, TaskError, words_of
from windlass.shared.order_states import OrderState
from windlass.shared.process import log_context
from windlass.shared.providers.base import Found, MediaProvider, NotThere, Order, Pending
from windlass.shared.scrubbing import redact
from windlass.shared.settings import Settings
from windlass.shared.storage import MediaStorage
from windlass.shared.store import orders
from windlass.shared.store.orders import AbandonedOrder

log = logging.getLogger("actors.open-jobs")

Answer = TypeVar("Answer")
Ask = Callable[[Callable[[db.Database], Coroutine[Any, Any, Answer]]], Coroutine[Any, Any, Answer]]


class OpenJobs:
    """A cancelled or dead task may leave a job open, which holds its slot: nobody else may start before it has ended.

    `providers` gives the one that a name stands for. One round at a time, in any of the workers that serve them.
    """

    def __init__(
        self,
        settings: Settings,
        storage: MediaStorage,
        names: Sequence[str],
        provider: Callable[[str], MediaProvider],
        ask: "Ask[Any]",
    ) -> None:
        self._settings = settings
        self._storage = storage
        self._names = names
        self._provider = provider
        self._ask = ask

    async def run(self) -> None:
        while True:
            try:
                await self.look_after_all()
            except db.AWAY_OR_BUSY as error:
                log.warning("looking again later (%s)", words_of(error))
            except Exception:
                log.exception("looking again later")
            await asyncio.sleep(self._settings.safety_poll_seconds)

    async def look_after_all(self) -> None:
        again = self._settings.safety_poll_seconds
        rows = await self._ask(lambda pool: orders.abandoned(pool, self._names, again_after_seconds=again))
        for order in rows:
            with log_context.about(task_id=order.task_id):
                try:
                    await self._look_after(order)
                except db.AWAY_OR_BUSY:
                    raise
                except TaskError as error:
                    log.warning("generation %s: asking again later (%s)", order.generation_id, words_of(error))
                    await self._give_up_in_time(order)
                except Exception:
                    # One that cannot be understood must keep neither the others' slots nor its own for ever.
                    log.exception("generation %s: asking again later", order.generation_id)
                    await self._give_up_in_time(order)

    async def _look_after(self, order: AbandonedOrder) -> None:
        if order.status == OrderState.FETCHING:
            await sweep(self._settings, self._storage, order.generation_id)
            await self._move(order, "fail")
            return
        if order.died_of == SubmitUnknown.__name__ and await self._is_brought_back(order):
            return
        provider = self._provider(order.provider)
        job_id = order.provider_job_id or await self._found(provider, order)
        if job_id is None:
            await self._give_up_in_time(order)
            return
        try:
            called_off = order.task_status == "cancelled" and await provider.cancel(job_id)
            answer = None if called_off else await provider.poll(job_id)
        except NotFound:
            await self._move(order, "fail" if order.status == OrderState.OPEN else "refuse")
            return
        if order.status == OrderState.UNKNOWN and order.callback_at is not None:
            await self._keep_for_whoever_revives(order, ended=not isinstance(answer, Pending))
            return
        if order.status != OrderState.OPEN:
            price = self._settings.providers[order.provider].price_per_call
            await self._move(order, "place", job_id=job_id, cost_usd=price)
        if isinstance(answer, Pending):
            await self._give_up_in_time(order)
        else:
            await self._move(order, "fail", response=None if answer is None else redact(answer.response))

    async def _is_brought_back(self, order: AbandonedOrder) -> bool:
        """Its callback may have come in the very moment in which the task died of it."""
        if order.provider_job_id is None or order.callback_at is None:
            return False
        generation_id = order.generation_id
        return bool(await self._ask(lambda pool: orders.revive_lost(pool, generation_id)))

    async def _keep_for_whoever_revives(self, order: AbandonedOrder, *, ended: bool) -> None:
        """What was called back stays with the order, whose job has ended: nobody need hold a slot for it."""
        if not ended:
            await self._give_up_in_time(order)
            return
        generation_id = order.generation_id
        log.info("generation %s: its job has ended; who revives the task gets what it made", generation_id)
        await self._ask(lambda pool: orders.give_up(pool, generation_id))

    async def _found(self, provider: MediaProvider, order: AbandonedOrder) -> str | None:
        match await provider.find(_as_ordered(order), order.created_at):
            case Found(job_id) if not await self._is_anothers(order, job_id):
                return job_id
            case NotThere():
                await self._move(order, "refuse")
        return None

    async def _is_anothers(self, order: AbandonedOrder, job_id: str) -> bool:
        wanted: tuple[str, str, UUID] = (order.provider, job_id, order.generation_id)
        known: bool = await self._ask(lambda pool: orders.is_anothers(pool, *wanted))
        return known

    async def _give_up_in_time(self, order: AbandonedOrder) -> None:
        generation_id = order.generation_id
        if order.age_seconds > self._settings.abandoned_job_seconds:
            log.warning("generation %s: nobody can tell when it ends; its slot is free", generation_id)
            await self._ask(lambda pool: orders.give_up(pool, generation_id))

    async def _move(self, order: AbandonedOrder, move: str, **facts: Any) -> None:
        generation_id = order.generation_id
        if await self._ask(lambda pool: orders.move(pool, None, generation_id, move, **facts)):
            log.info("generation %s: %s, though nobody waits for it any more", generation_id, move)


def _as_ordered(order: AbandonedOrder) -> Order:
    payload = MediaPayload.model_construct(**order.request)
    return Order(
        action=order.operation,
        prompt=payload.prompt,
        reference=str(order.generation_id),
        source_image=payload.source_image,
        params=payload.params,
    )
