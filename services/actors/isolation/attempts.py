"""Isolated actors, seen from the worker: each attempt has a process of its own, and is over when that is gone."""

import logging
import os
import socket
import sys
import time
from typing import Any

from windlass.services.actors.isolation.channel import Channel
from windlass.services.actors.isolation.conversation import Conversation
from windlass.services.actors.isolation.errors_told import as_raised
from windlass.services.actors.subprocess.endings import exit_code_of, signal_name_of, with_last_words
from windlass.services.actors.subprocess.ladder import Ladder
from windlass.services.actors.subprocess.lines import Lines
from windlass.services.actors.subprocess.run import Order, Run
from windlass.services.actors.subprocess.tail import STDERR_BYTES, Tail
from windlass.services.actors.worker.context.context import Context, Stopped
from windlass.shared.actors.definition import Definition
from windlass.shared.errors import SubprocessFailed, Thrown, TimedOut
from windlass.shared.settings import Settings

CHILD = "windlass.services.actors.isolation.child"
LISTEN_SECONDS = 0.1
DRAIN_SECONDS = 0.2
TOLD_FIRST = 0.2
"""Of the grace: so long it may take to end when it is told, before anybody sends signals."""

TIMED_OUT = "timed out"
ENDED_BY_ITSELF = "ended by itself and left processes behind"


class Printed:
    """What it prints are lines of the worker's log, as if it had run there; the last of stderr may explain its end."""

    def __init__(self, actor: str) -> None:
        log = logging.getLogger(f"actors.{actor}")

        def say(text: str) -> None:
            for line in text.splitlines():
                log.info("%s", line)

        self._stdout, self._stderr = Lines(say), Lines(say)
        self._tail = Tail(STDERR_BYTES)

    def take_stdout(self, chunk: bytes) -> None:
        self._stdout.take(chunk)

    def take_stderr(self, chunk: bytes) -> None:
        self._tail.add(chunk)
        self._stderr.take(chunk)

    def finish(self) -> None:
        self._stdout.finish()
        self._stderr.finish()

    def stderr(self) -> str:
        return self._tail.text()


class Isolated:
    """One isolated actor of a worker process, where a killed keeper's orphans fall to the guardian: unless `is_guarded`
    is false. Called with the context of a claimed attempt, on the attempt's own thread."""

    def __init__(
        self, definition: Definition, settings: Settings, *, function: str | None = None, is_guarded: bool = True
    ) -> None:
        self._name = definition.name
        self._where = {"module": definition.module, "function": function}
        self._settings = settings
        self._guardian_pid = os.getppid() if is_guarded else None
        self._path = list(sys.path)

    def __call__(self, context: Context) -> Any:
        talk, printed = Conversation(context), Printed(self._name)
        ours, theirs = socket.socketpair()
        channel = Channel(ours, talk.hear)
        talk.say = channel.say
        reason: str | None = "the worker failed"
        try:
            channel.say(self._beginning(context))
            try:
                run = Run(self._order(theirs.fileno()), b"", printed, channel)
            finally:
                theirs.close()
            try:
                reason = self._follow(run, context, talk)
            finally:
                # Whatever happened: first all of it is gone, then its last words are read, and then the task ends.
                context.proof = self._ladder(run).clear(reason or ENDED_BY_ITSELF)
                run.drain(until=time.monotonic() + DRAIN_SECONDS)
                run.close()
        finally:
            talk.close()
            channel.close()
        return self._outcome(context, run, talk, printed, reason)

    def _beginning(self, context: Context) -> dict[str, Any]:
        task = context.task
        return {
            "actor": self._name,
            **self._where,
            "path": self._path,
            "task_id": str(task.task_id),
            "attempt": task.attempt,
            "user_id": context.user_id,
            "payload": task.payload,
            "checkpoint": task.checkpoint,
            "deadline": context.deadline,
            "timeout_seconds": task.timeout_seconds,
            "log_level": logging.getLogger().getEffectiveLevel(),
        }

    def _order(self, line: int) -> Order:
        """As this process: its user, its directory, and its environment, which has no secrets of Windlass any more."""
        return Order(
            command=(sys.executable, "-m", CHILD, str(line)),
            environment=dict(os.environ),
            directory=os.getcwd(),  # noqa: PTH109 - as text, for another process
            limits={},
            watch={},
            owner=None,
            run_as=None,
            handed_over=line,
        )

    def _follow(self, run: Run, context: Context, talk: Conversation) -> str | None:
        """Until it has ended, or has to: then it is told, and the reason is returned."""
        reason: str | None = None
        while not run.has_ended and talk.end is None and reason is None:
            left = context.deadline - time.monotonic()
            reason = context.stop_reason or (TIMED_OUT if left <= 0 else None)
            if reason is None:
                run.pump(min(left, LISTEN_SECONDS))
        if reason is not None:
            talk.say({"stop": reason})
        until = time.monotonic() + TOLD_FIRST * self._settings.stop_grace_seconds
        while not run.has_ended and (left := until - time.monotonic()) > 0:
            run.pump(left)
        return reason

    def _ladder(self, run: Run) -> Ladder:
        return Ladder(
            run,
            sandboxed=False,
            grace_seconds=self._settings.agent_grace_seconds,
            guardian_pid=self._guardian_pid,
            called="process",
        )

    def _outcome(self, context: Context, run: Run, talk: Conversation, printed: Printed, reason: str | None) -> Any:
        end = talk.end or {}
        if "result" in end:
            return end["result"]
        error = as_raised(end["error"]) if "error" in end else None
        if error is not None and not isinstance(error, Stopped):
            raise Thrown(error) if end.get("thrown") else error
        if reason == TIMED_OUT:
            raise TimedOut(f"the attempt took longer than its {context.task.timeout_seconds:g} s")
        if reason is not None:
            raise Stopped
        raise self._failure(context, run, printed.stderr(), was_told=error is not None)

    def _failure(self, context: Context, run: Run, stderr: str, *, was_told: bool) -> SubprocessFailed:
        """It has ended without a word about how, or somebody outside has told it to."""
        what = f"the process of actor {self._name}"
        if run.failure is not None:
            return SubprocessFailed(f"{what} could not be started: {run.failure}")
        if run.status is None:
            return SubprocessFailed(f"{what} has killed the one that keeps it", stderr=stderr)
        code = context.exit_code = exit_code_of(run.status)
        name = "SIGTERM" if was_told else signal_name_of(code)
        how = f"was ended by {name}" if name else f"ended with exit code {code} and said nothing"
        details = {"exit_code": code, "stderr": stderr, **({"signal": name} if name else {})}
        return SubprocessFailed(with_last_words(f"{what} {how}", stderr), **details)
