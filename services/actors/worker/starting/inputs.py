"""What was granted and refers to results of others gets them before it begins: one question for all of a grant."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from windlass.shared.concerns import Concern
from windlass.shared.store.tasks import Claimed

Run = Callable[[Claimed], None]
Ask = Callable[[Sequence[UUID]], Awaitable[Mapping[UUID, dict[str, Any]]]]


class Inputs:
    """On the writer's loop. Who is not answered, in time or at all, begins as it is, and asks for itself."""

    def __init__(self, ask: Ask, *, patience_seconds: float) -> None:
        self._ask = ask
        self._patience_seconds = patience_seconds
        self._waiting: set[asyncio.Task[None]] = set()

    def begin(self, claimed: Sequence[Claimed], run: Run) -> None:
        """At once, but for those that refer to something."""
        referring = [each for each in claimed if each.concerns & Concern.REFERENCES]
        for each in claimed:
            if not each.concerns & Concern.REFERENCES:
                run(each)
        if referring:
            waiting = asyncio.get_running_loop().create_task(self._begin_with_inputs(referring, run))
            self._waiting.add(waiting)
            waiting.add_done_callback(self._waiting.discard)

    async def all_have_begun(self) -> None:
        while self._waiting:
            await asyncio.wait(self._waiting)

    async def _begin_with_inputs(self, claimed: Sequence[Claimed], run: Run) -> None:
        asking = asyncio.ensure_future(self._ask([each.task_id for each in claimed]))
        # Not cancelled when it takes too long: the driver would wait for the server's consent.
        await asyncio.wait({asking}, timeout=self._patience_seconds)
        is_answered = asking.done() and not asking.cancelled() and asking.exception() is None
        found = asking.result() if is_answered else {}
        if not asking.done():
            asking.add_done_callback(lambda late: late.cancelled() or late.exception())
        for each in claimed:
            payload = found.get(each.task_id)
            run(each if payload is None else replace(each, payload=payload, has_input=True))
