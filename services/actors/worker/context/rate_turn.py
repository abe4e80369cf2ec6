"""A place in the provider's rate for each call of an attempt: the first is the claim's, others are waited for."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from windlass.shared.store.flow_control import rates

if TYPE_CHECKING:
    from windlass.services.actors.worker.context.context import Context

LONGEST_WAIT_SECONDS = 0.5
"""What an operator changes is in force within a second, also for those who wait."""


class RateTurn:
    """One attempt's. Its time stands still while it waits: waiting is not failing, and must not end in `TimedOut`."""

    def __init__(self, context: "Context") -> None:
        self._context = context
        self._claims_place_is_left = not context.task.job_open

    def take(self, sleep: Callable[[float], None]) -> None:
        if self._takes_the_claims_place():
            return
        context, said = self._context, ""
        with context.waiting_for_others():
            while wait := context.ask(rates.take, context.task.provider):
                said = self._tell(wait, said)
                sleep(until_the_next_look(wait))
        if said:
            context.progress("Processing")

    async def take_async(self) -> None:
        """The same from an event loop."""
        if self._takes_the_claims_place():
            return
        context, said = self._context, ""
        with context.waiting_for_others():
            while wait := await context.ask_async(rates.take, context.task.provider):
                said = self._tell(wait, said)
                await asyncio.sleep(until_the_next_look(wait))
                context.check()
        if said:
            context.progress("Processing")

    def _takes_the_claims_place(self) -> bool:
        """Who goes on waiting for an open job has none."""
        is_left, self._claims_place_is_left = self._claims_place_is_left, False
        return is_left

    def _tell(self, wait: rates.Wait, said: str) -> str:
        reason = f"Waiting for the provider's rate ({wait.rate_limit} in {wait.per_seconds} s)"
        if reason != said:
            self._context.progress(reason)
        return reason


def until_the_next_look(wait: rates.Wait) -> float:
    return LONGEST_WAIT_SECONDS if wait.again_seconds is None else min(wait.again_seconds, LONGEST_WAIT_SECONDS)
