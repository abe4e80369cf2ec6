"""One task's order at its provider: placed once, found again after a crash, and known to have ended before it ends."""

import asyncio
import hashlib
import logging
import secrets
from typing import Any
from uuid import UUID

import uuid_utils.compat as uuid_utils

from windlass.services.actors.media.polling import Polling
from windlass.services.actors.worker.context.async_context import AsyncAttempt
from windlass.services.actors.worker.context.context import Stopped
from windlass.shared.actors.payloads import MediaPayload
from windlass.shared.errors import (
    InvalidInput,
    NetworkTimeout,
    NotFound,
    ServiceUnavailable,
    SubmitUnknown,
    TaskError,
    words_of,
)
from windlass.shared.order_states import OrderState
from windlass.shared.providers.base import (
    Done,
    Failed,
    Found,
    MediaProvider,
    NotThere,
    Order,
    Ordered,
    Pending,
    calls_back,
)
from windlass.shared.providers.params import actions_of, faults_of
from windlass.shared.providers.placing import InDoubt, NotTaken, place, prepared
from windlass.shared.scrubbing import redact, scrub_document
from windlass.shared.settings import Settings
from windlass.shared.storable import storable
from windlass.shared.store import orders
from windlass.shared.store.order_steps import (
    Intent,
    LatestOrder,
    NewContent,
    OrderMove,
    intend_each,
    latest_of_each,
    move_each,
)
from windlass.shared.store.rows import GenerationRow

log = logging.getLogger("actors.media")

TOKEN_BYTES = 32
POLLS_MISSED = 3
"""So many polls in a row may fail before the attempt does. The next one goes on waiting for the same job."""


class Orders:
    """The steps of one attempt. Each is written down before the next begins, under the attempt's fence."""

    def __init__(
        self,
        settings: Settings,
        context: AsyncAttempt,
        payload: MediaPayload,
        provider: MediaProvider,
        *,
        polling: Polling,
    ) -> None:
        self._settings = settings
        self._configured = settings.providers[context.task.provider]
        self._context = context
        self._payload = payload
        self._provider = provider
        self._polling = polling

    async def take_up(self, source_image: str | None) -> GenerationRow:
        """The task's order as it stands: the one that an earlier attempt placed, or a new one."""
        before = await self._latest()
        if before is None or before.status in {OrderState.FAILED, OrderState.REFUSED}:
            return await self._place(source_image)
        if before.status in {OrderState.INTENDED, OrderState.UNKNOWN} and not await self._is_found(before):
            return await self._place(source_image)
        return await self._known()

    async def wait(self, order: GenerationRow) -> Done:
        """Asks until the job has ended; the provider's callback only makes the next question come sooner."""
        try:
            return await self._poll_to_the_end(order)
        except (Stopped, asyncio.CancelledError):
            if self._context.stop_reason == "cancelled":
                await self._call_off(order)
            raise

    async def begin_to_fetch(self, order: GenerationRow, done: Done) -> None:
        await self._move(order.generation_id, "fetch", response=done.response)

    async def complete(self, order: GenerationRow, contents: list[NewContent]) -> None:
        await self._move(order.generation_id, "complete", contents=contents)

    async def _place(self, source_image: str | None) -> GenerationRow:
        context, payload = self._context, self._payload
        self._refuse_what_it_does_not_take()
        token, generation_id = secrets.token_urlsafe(TOKEN_BYTES), UUID(bytes=uuid_utils.uuid7().bytes)
        order = await prepared(self._provider, self._order(generation_id, source_image, token))
        await context.rate()
        context.check()
        intent = Intent(
            generation_id=generation_id,
            operation=payload.action,
            request=scrub_document(
                {**payload.model_dump(mode="json", exclude_none=True), "source_image": source_image}
            ),
            callback_hash=hashlib.sha256(token.encode()).hexdigest(),
            prompt_id=payload.prompt_id,
            source_data=payload.source_data,
        )
        if not await context.ask_together(intend_each, (context.task, intent)):
            self._lost()
        # An attempt that is told to stop here, or whose time is up, leaves the intent as it is: the next one asks.
        match await context.finish(place(self._provider, order)):
            case NotTaken(error):
                await self._move(generation_id, "refuse", response=_said(error))
                raise error
            case InDoubt(doubt):
                log.warning("task %s: nobody can tell whether the order was taken (%s)", context.task_id, doubt)
                if not await self._is_found(await self._known()):
                    kind = ServiceUnavailable if isinstance(doubt.__cause__, ServiceUnavailable) else NetworkTimeout
                    raise kind(f"the order did not arrive at {context.task.provider}: {doubt}") from doubt
            case Ordered(job_id, response):
                await self._move(generation_id, "place", job_id=job_id, response=response)
        return await self._known()

    def _refuse_what_it_does_not_take(self) -> None:
        """The api has looked already, unless the task is older than what it knows or the adapter is not there."""
        name, payload = self._context.task.provider, self._payload
        if faults := faults_of(name, actions_of(self._provider), payload.action, payload.params):
            where = {"/".join(map(str, fault.path)): fault.detail for fault in faults}
            raise InvalidInput("; ".join(f"{path}: {detail}" for path, detail in where.items()), faults=where)

    async def _is_found(self, order: LatestOrder) -> bool:
        """Finds out whether an order arrived whose answer was lost. Where that is impossible its callback is
        waited for, and then the policy decides."""
        generation_id = order.generation_id
        if await self._is_named_by_callback(order):
            return True
        wanted = self._order(generation_id, order.request.get("source_image"), token=None)
        match await self._provider.find(wanted, order.created_at):
            case Found(job_id) if not await self._is_anothers(job_id, generation_id):
                log.info("task %s: its order had arrived as job %s", self._context.task_id, job_id)
                await self._move(generation_id, "place", job_id=job_id)
                return True
            case NotThere():
                await self._move(generation_id, "refuse")
                return False
        if order.status == OrderState.UNKNOWN:
            return False  # somebody revived the task, or the policy did: both say that it is to be ordered again
        if calls_back(self._provider) and await self._is_called_back_for(order):
            return True
        await self._move(generation_id, "lose")
        error = SubmitUnknown(
            f"{self._context.task.provider} may or may not have taken the order, cannot be asked and has not called "
            "back; see there before you retry the task",
            generation_id=str(generation_id),
        )
        if self._configured.when_unknown == "resubmit":
            error.kind = "transient"
        raise error

    async def _is_anothers(self, job_id: str, generation_id: UUID) -> bool:
        return await self._context.ask(orders.is_anothers, self._context.task.provider, job_id, generation_id)

    async def _is_called_back_for(self, order: LatestOrder) -> bool:
        """Waits for the callback, which names the job, as long as the provider's jobs may take. A later attempt goes on
        where this one has to stop."""
        context, patience, mistaken = self._context, self._configured.callback_wait_seconds, order.provider_job_id
        context.progress("Waiting for the provider's callback")
        with context.waiting_for_others():
            while (left := patience - order.intended_seconds_ago) > 0:
                await context.sleep_until_nudged(min(left, self._configured.poll_seconds))
                order = await self._known()
                if order.provider_job_id != mistaken and await self._is_named_by_callback(order):
                    return True
                mistaken = order.provider_job_id
        return False

    async def _is_named_by_callback(self, order: GenerationRow) -> bool:
        """A callback named the job: anybody can say that, so the provider is asked."""
        job_id = order.provider_job_id
        if job_id is None or not await self._knows(job_id) or await self._is_anothers(job_id, order.generation_id):
            return False
        log.info("task %s: its provider has called back about its order, job %s", self._context.task_id, job_id)
        await self._move(order.generation_id, "place", job_id=job_id)
        return True

    async def _knows(self, job_id: str) -> bool:
        try:
            answer = await self._provider.poll(job_id)
        except NotFound:
            return False
        return not (isinstance(answer, Failed) and isinstance(answer.error, NotFound))

    async def _poll_to_the_end(self, order: GenerationRow) -> Done:
        context, missed, job_id = self._context, 0, _job_of(order)
        provider, nudged = context.task.provider, None
        pauses = self._polling.pauses(provider, self._configured.poll_seconds)
        while True:
            try:
                answer = await self._provider.poll(job_id)
            except NotFound:
                await self._move(order.generation_id, "fail")
                raise
            except TaskError as error:
                missed += 1
                if error.kind == "permanent" or missed > POLLS_MISSED or not error.is_the_providers_fault:
                    raise
                log.info("task %s: asking again (%s)", context.task_id, words_of(error))
                answer = Pending()
            else:
                missed = 0
            if nudged is not None and not isinstance(answer, Pending):
                self._polling.learned(provider, by_callback=nudged)
            match answer:
                case Done():
                    return answer
                case Failed(reason, response):
                    await self._move(order.generation_id, "fail", response=response)
                    raise reason
                case Pending(percent):
                    context.progress("Generating", percent=percent)
                    nudged = await context.sleep_until_nudged(pauses.pause())

    async def _call_off(self, order: GenerationRow) -> None:
        """The task is cancelled, and so is its job, if the provider can do that; else it keeps its slot to its end."""
        try:
            if await self._context.finish(self._provider.cancel(_job_of(order))):
                await self._move(order.generation_id, "fail")
        except (Stopped, asyncio.CancelledError):
            log.warning("task %s: its job could not be called off (no time)", self._context.task_id)
        except Exception as error:  # noqa: BLE001 - whatever it is, the task is cancelled all the same
            why = words_of(error)
            log.warning("task %s: its job could not be called off (%s)", self._context.task_id, why)

    def _order(self, generation_id: UUID, source_image: str | None, token: str | None) -> Order:
        return Order(
            action=self._payload.action,
            prompt=self._payload.prompt,
            reference=str(generation_id),
            source_image=source_image,
            params=self._payload.params,
            callback_url=token and f"{self._settings.address}/api/v1/callbacks/{token}",
        )

    async def _latest(self) -> LatestOrder | None:
        return await self._context.ask_together(latest_of_each, self._context.task_id)

    async def _known(self) -> LatestOrder:
        order = await self._latest()
        assert order is not None, "an order that was written down stays"
        return order

    async def _move(self, generation_id: UUID, move: str, **facts: Any) -> None:
        if move == "place":
            facts["cost_usd"] = self._configured.price_per_call
        if "response" in facts:
            facts["response"] = redact(storable(facts["response"]))
        if not await self._context.ask_together(move_each, OrderMove(self._context.task, generation_id, move, **facts)):
            self._lost()

    def _lost(self) -> None:
        """Another attempt has the task now: touch nothing more."""
        self._context.stop("lost")
        self._context.check()


def _said(error: Exception) -> dict[str, Any]:
    details = error.details if isinstance(error, TaskError) else {}
    return {"error": {"type": type(error).__name__, "message": str(error), **details}}


def _job_of(order: GenerationRow) -> str:
    assert order.provider_job_id is not None, "an order that is open has its job's id"
    return order.provider_job_id
