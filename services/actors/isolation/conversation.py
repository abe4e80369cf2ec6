"""What an isolated attempt asks and reports over the line: the worker has the claim, and writes all that is kept."""

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import msgspec

from windlass.services.actors.isolation.errors_told import as_told
from windlass.services.actors.worker.context.context import Context, Stopped
from windlass.shared.actors.attempt.child_requests import ChildRequest
from windlass.shared.actors.attempt.waits import OnThread, at_once
from windlass.shared.scrubbing import withhold

REPORTS = {"progress", "output", "save", "usage"}


class Conversation:
    """One attempt's. What it asks is answered by threads of its own, in the order in which it asks: else printing would
    have to wait for Postgres, and the wait for the provider's rate would delay the other answers."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._backend = context.backend(OnThread(context.pause))
        self._asking = ThreadPoolExecutor(1, thread_name_prefix="isolated")
        self._waiting = ThreadPoolExecutor(1, thread_name_prefix="isolated-rate")
        self._gone = threading.Event()
        self.say: Callable[[dict[str, Any]], None] = lambda _message: None
        self.end: dict[str, Any] | None = None
        self._asked: Mapping[str, Callable[..., Any]] = {
            "earlier_steps": self._backend.earlier_steps,
            "keep_step": self._keep_step,
            "submit": self._submit,
            "store_file": self._backend.store_file,
            "take_rate": context.backend(OnThread(self._sleep)).take_rate,
        }

    def hear(self, message: dict[str, Any]) -> None:
        if "end" in message:
            self.end = message["end"]
            return
        what = message.pop("do")
        if "ask" in message:
            threads = self._waiting if what == "take_rate" else self._asking
            threads.submit(copy_context().run, self._answer, message.pop("ask"), what, message)
        elif what in REPORTS:
            self._context.report(what, **message)
        elif what == "step_given_back":
            self._backend.step_given_back()
        else:
            logging.getLogger(message["name"]).log(message["level"], "%s", message["text"])

    def close(self) -> None:
        """The process has ended. The last call that it made is still carried out."""
        self._gone.set()
        self._asking.shutdown()
        self._waiting.shutdown()

    def _answer(self, number: int, what: str, about: dict[str, Any]) -> None:
        answer: dict[str, Any] = {"answer": number}
        try:
            answer["value"] = at_once(self._asked[what](**about))
        except BaseException as error:  # noqa: BLE001 - raised again where it was asked
            answer["error"] = as_told(error)
        self.say({**answer, "deadline": self._context.deadline})

    async def _keep_step(self, name: str, written: str, elapsed_ms: int) -> None:
        """The process does not know the worker's secrets."""
        scrubbed = msgspec.json.encode(withhold(msgspec.json.decode(written)))
        await self._backend.keep_step(name, scrubbed.decode(), elapsed_ms)

    async def _submit(self, place: str, child: list[Any]) -> str:
        return await self._backend.submit(place, ChildRequest(*child))

    def _sleep(self, seconds: float) -> None:
        """No longer than the process lives."""
        if self._gone.wait(seconds):
            raise Stopped
        self._context.check()
