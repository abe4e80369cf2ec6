"""What an isolated attempt asks of its worker and tells it: the worker has the claim, and writes all that is kept."""

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any

import msgspec

from windlass.services.actors.isolation.errors_told import as_told
from windlass.services.actors.worker.context.context import Context, Stopped
from windlass.services.actors.worker.context.stored_steps import StoredSteps
from windlass.shared.actors.step_rules import inside
from windlass.shared.scrubbing import withhold


class Conversation:
    """One attempt's. What it asks is answered by threads of its own, in the order in which it asks: else who prints
    would have to wait for Postgres, and who waits for the provider's rate would keep the others."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._steps = StoredSteps(context)
        self._asking = ThreadPoolExecutor(1, thread_name_prefix="isolated")
        self._waiting = ThreadPoolExecutor(1, thread_name_prefix="isolated-rate")
        self._gone = threading.Event()
        self.say: Callable[[dict[str, Any]], None] = lambda _message: None
        self.end: dict[str, Any] | None = None
        self._told: Mapping[str, Callable[[dict[str, Any]], None]] = {
            "progress": lambda it: context.progress(it["message"], percent=it["percent"]),
            "output": lambda it: context.output(it["text"], stream=it["stream"]),
            "save": lambda it: context.save(it["checkpoint"]),
            "usage": lambda it: context.charge(it["figures"]),
            "step_given_back": lambda _it: self._steps.given_back(),
            "log": _log,
        }
        self._asked: Mapping[str, Callable[[dict[str, Any]], Any]] = {
            "steps": lambda _it: self._steps.earlier(),
            "keep_step": self._keep_step,
            "submit": self._submit,
            "store_file": lambda it: context.store_file(Path(it["path"]), media_type=it["media_type"]),
            "rate": lambda _it: context.rate(sleep=self._sleep),
        }

    def hear(self, message: dict[str, Any]) -> None:
        if "end" in message:
            self.end = message["end"]
        elif "ask" in message:
            threads = self._waiting if message["do"] == "rate" else self._asking
            threads.submit(copy_context().run, self._answer, message)
        else:
            self._told[message["do"]](message)

    def close(self) -> None:
        """Nobody is left who could ask; what was asked last is still done."""
        self._gone.set()
        self._asking.shutdown()
        self._waiting.shutdown()

    def _answer(self, message: dict[str, Any]) -> None:
        answer: dict[str, Any] = {"answer": message["ask"]}
        try:
            answer["value"] = self._asked[message["do"]](message)
        except BaseException as error:  # noqa: BLE001 - raised again where it was asked
            answer["error"] = as_told(error)
        self.say({**answer, "deadline": self._context.deadline})

    def _keep_step(self, it: dict[str, Any]) -> bool:
        written = msgspec.json.encode(withhold(msgspec.json.decode(it["written"])))
        kept = self._steps.keep(it["name"], written, it["elapsed_ms"])
        if not kept:
            self._context.stop("lost")
        return kept

    def _submit(self, it: dict[str, Any]) -> str:
        with inside(it["step"]):
            return self._context.submit(it["actor"], it["payload"], **it["options"])

    def _sleep(self, seconds: float) -> None:
        """For who waits on behalf of a process: no longer than that lives."""
        if self._gone.wait(seconds):
            raise Stopped
        self._context.check()


def _log(it: dict[str, Any]) -> None:
    logging.getLogger(it["name"]).log(it["level"], "%s", it["text"])
