"""An attempt's calls of the store, each repeated until it is answered or the attempt should end."""

from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from windlass.shared import db
from windlass.shared.actors.attempt.waits import Waits

if TYPE_CHECKING:
    from windlass.services.actors.worker.context.context import Context
    from windlass.services.actors.worker.writing.gathered_calls import CallOfMany

Answer = TypeVar("Answer")

Intent = Callable[[db.Database], Coroutine[Any, Any, Any]]

AGAIN_SECONDS = 0.25


class Asking:
    """For an attempt on a thread or on the loop, depending on `waits`. Only for calls that may be repeated."""

    def __init__(self, context: "Context", waits: Waits) -> None:
        self.context = context
        self.waits = waits

    async def ask(self, intent: Callable[..., Coroutine[Any, Any, Answer]], *arguments: Any, **options: Any) -> Answer:
        """`ask(intent, …)` for `intent(db, …)`."""
        begin = self.context.begin_asking
        assert begin is not None, "an attempt that a worker runs is given the process' store"
        return await self._until_answered(lambda: begin(lambda database: intent(database, *arguments, **options)))

    async def ask_together(self, call: "CallOfMany[Any, Answer]", item: Any) -> Answer:
        """A call that takes many items: this one goes along with those of other attempts, in one commit."""
        begin = self.context.begin_together
        assert begin is not None, "an attempt that a worker runs is given the process' store"
        return await self._until_answered(lambda: begin(call, item))

    async def _until_answered(self, begin: "Callable[[], Future[Answer]]") -> Answer:
        patience_seconds = self.context.settings.stop_grace_seconds / 2
        while True:
            try:
                return await self.waits.answer(begin(), patience_seconds)
            except db.AWAY_OR_BUSY:
                self.context.check()
                await self.waits.sleep(AGAIN_SECONDS)
