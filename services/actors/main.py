"""The worker's process: Dramatiq's threads between RabbitMQ and the actors, a writer and a heartbeat beside them."""

import asyncio
import json
import logging
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import dramatiq

from services.actors.attempts import Attempts
from services.actors.calls import Calls
from services.actors.figures import begin, watch_threads
from services.actors.heartbeat import Heartbeat
from services.actors.lease_watch import LeaseWatch
from services.actors.mirror import StateMirror
from services.actors.registry import ACTORS, Actor, Resident, make_actors
from services.actors.solitude import LOST_WORKERS_BEFORE_ALONE, Solitude
from services.actors.writer import Writer
from shared import db, kernel, logs, subject, tracing
from shared.broker import DoorbellBroker, threads_live
from shared.errors import ResultTooLarge
from shared.metrics import serving
from shared.payloads import PAYLOADS, Payload
from shared.pulse import Pulse
from shared.settings import Settings
from shared.store import providers, tasks, workers

log = logging.getLogger("actors")

LEAVE_SECONDS = 2.0


class WorkerProcess:
    """Everything that runs in one worker, and the order in which it starts and stops."""

    def __init__(
        self, settings: Settings, guardian_pid: int, guardian_pipe: int, predecessors: dict[str, dict[str, Any]]
    ) -> None:
        self.settings = settings
        self.guardian_pid = guardian_pid
        self.worker_id = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
        subject.of_this_process(worker=self.worker_id)
        self.predecessors = predecessors
        self.lease_watch = LeaseWatch(
            settings, guardian_pipe, guardian_gone=lambda: self._told_to_stop("the guardian is gone")
        )
        self.attempts = Attempts(on_over=self.lease_watch.let_go)
        self.writer = Writer(settings, self.worker_id, on_claim=self.lease_watch.claimed)
        self.solitude = Solitude()
        self.calls = Calls(patience_seconds=0.6 * settings.stop_grace_seconds)
        self.mirror = StateMirror(
            self.writer,
            self.attempts,
            self.solitude,
            self.calls,
            self.worker_id,
            largest_output_bytes=settings.largest_output_bytes,
            condemn=self.condemn,
        )
        self.heartbeat = Heartbeat(
            settings,
            self.worker_id,
            self.attempts,
            watch=self.lease_watch,
            condemn=self.condemn,
        )
        if not settings.consumed_queues(ACTORS):
            raise SystemExit(f"WINDLASS_QUEUES names no queue of the actors there are: {', '.join(ACTORS)}")
        self.actors = make_actors(settings)
        self.worker = dramatiq.Worker(
            boot(settings, self.actors, self.mirror, self.solitude),
            queues=set(settings.consumed_queues(ACTORS)),
            worker_threads=settings.actor_threads,
        )
        # What waits inside a busy worker is work that another one could have started.
        self.worker.queue_prefetch = settings.actor_threads
        self.pulse = Pulse(settings, lives=self.lives)
        self.stop_reason: str | None = None
        self._stop = threading.Event()

    def run(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._told_to_stop("told to stop"))
        self.lease_watch.introduce(self.worker_id)
        self.pulse.start()
        self._tell_how_it_is()
        self.writer.start()
        self.calls.start()
        asyncio.run(self._register())
        self.heartbeat.start()
        self.worker.start()
        for resident in self._residents():
            self.calls.begin(resident.accompany(self._ask), on_end=lambda: None)
        log.info("worker %s serves %s", self.worker_id, ", ".join(self.settings.consumed_queues(ACTORS)))
        self.pulse.is_ready = True
        self._stop.wait()
        self._shut_down()

    def lives(self) -> bool:
        """Its threads and its heartbeat, whatever Postgres and RabbitMQ do. On its way out they end one by one."""
        return self._stop.is_set() or (threads_live(self.worker) and self.heartbeat.is_watching())

    def _tell_how_it_is(self) -> None:
        serving.serve(self.settings, "actors")
        begin(self.settings.queues or self.settings.all_queues())
        watch_threads(
            all_of_them=self.settings.actor_threads,
            busy=self.attempts.__len__,
            heartbeat_age=self.heartbeat.seconds_since_renewal,
        )

    def _residents(self) -> list[Resident]:
        actors: list[object] = list(self.actors.values())
        return [actor for actor in actors if isinstance(actor, Resident)]

    async def _ask(self, intent: Callable[[db.Database], Any]) -> Any:
        return await asyncio.to_thread(self.writer.call, intent)

    def condemn(self, reason: str) -> None:
        """Something in this process cannot be stopped, or be had any more: save the others, then let the guardian end
        it all."""
        if self.stop_reason is None:
            log.error("this process has to go: %s", reason)
            self._told_to_stop(f"condemned: {reason}")

    def _told_to_stop(self, reason: str) -> None:
        self.stop_reason = self.stop_reason or reason
        self._stop.set()

    async def _register(self) -> None:
        settings = self.settings
        pool = await db.open_pool(settings, "actors", most=1)

        async def register() -> None:
            await providers.configure(pool, settings)
            await self._take_back(pool)
            for resident in self._residents():
                await resident.prepare(pool)
            await workers.register(
                pool,
                self.worker_id,
                hostname=socket.gethostname(),
                pid=os.getpid(),
                queues=settings.consumed_queues(ACTORS),
                capacity=settings.actor_threads,
            )

        await db.until_available("actors", register)
        await pool.close()

    async def _take_back(self, pool: db.Database) -> None:
        """The guardian has proven our predecessors dead: their tasks need not wait for their leases to end."""
        if self.predecessors:
            for row in await tasks.stall(pool, expired_for_seconds=None, proofs=self.predecessors):
                with subject.about(task_id=row["task_id"], attempt=row["attempt"], traceparent=row["traceparent"]):
                    log.warning("task %s: taken back from %s; now %s", row["task_id"], row["worker_id"], row["status"])
            await workers.mark_lost(pool, list(self.predecessors), reason="died")

    def _leave(self, state: str) -> None:
        """By the connections that are open: a process without descriptors cannot open another."""
        reason = self.stop_reason or ""
        try:
            self.writer.call(
                lambda pool: workers.leave(pool, self.worker_id, state=state, reason=reason),
                patience_seconds=LEAVE_SECONDS,
            )
        except db.AWAY_OR_BUSY as error:
            log.warning("could not say that this worker is %s (%s)", state, error or type(error).__name__)

    def _shut_down(self) -> None:
        """Take nothing new, let the running work end or stop it, hand it back, say good-bye."""
        log.info("stopping: %s", self.stop_reason)
        self.mirror.closed = True
        self._leave("stopping")
        self._wait_for_attempts(self._drain_seconds())
        self.attempts.stop_all()
        self._wait_for_attempts(self.settings.stop_grace_seconds)
        if left := len(self.attempts):
            log.error("%d attempts did not stop; the guardian ends them with this process", left)
        else:
            self.worker.stop(timeout=round(self.settings.stop_grace_seconds * 1000))
        self.heartbeat.stop()
        self._leave("stopped")
        self.writer.close(timeout=self.settings.stop_grace_seconds)
        tracing.stop()
        log.info("worker %s stopped", self.worker_id)
        logging.shutdown()
        # Threads that still hang in a system call must not hold up the exit: the guardian buries what is left.
        os._exit(0)

    def _drain_seconds(self) -> float:
        """Time for the work to end by itself; none when this process must go or nobody guards it any more."""
        condemned = (self.stop_reason or "").startswith("condemned")
        return 0.0 if condemned or os.getppid() != self.guardian_pid else self.settings.drain_seconds

    def _wait_for_attempts(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while len(self.attempts) and time.monotonic() < until:
            time.sleep(0.02)


def boot(settings: Settings, actors: dict[str, Actor], mirror: StateMirror, solitude: Solitude) -> DoorbellBroker:
    """The broker with the one middleware that Windlass needs; Dramatiq's defaults are left out on purpose."""
    broker = DoorbellBroker(settings, middleware=[mirror])
    for name, run in actors.items():
        runner = _runner(mirror, solitude, run, PAYLOADS[name], settings.largest_result_bytes)
        dramatiq.actor(actor_name=name, queue_name=name, broker=broker)(runner)
    # Dramatiq wants a queue for every actor; ours are a provider's, and this process serves only some of them.
    broker.queues.clear()
    broker.queues_pending.clear()
    for queue in settings.consumed_queues(ACTORS):
        broker.declare_queue(queue)
    return broker


def _runner(
    mirror: StateMirror,
    solitude: Solitude,
    run: Actor,
    payload_type: type[Payload],
    largest_result_bytes: int,
) -> Callable[[str], None]:
    def act(task_id: str) -> None:  # noqa: ARG001 - the mirror has claimed it and knows everything about it
        running = mirror.running
        context = running.context
        place = solitude.alone if context.task.stall_count >= LOST_WORKERS_BEFORE_ALONE else solitude.shared
        with place(context.check):
            context.begin()
            result = run(context, payload_type.model_validate(context.task.payload))
            running.result = fitting(result, largest_result_bytes)

    return act


def fitting(result: Any, most_bytes: int) -> Any:
    """The result, if it can be kept: another attempt would only bring one as large."""
    try:
        size = len(db.as_json(result).encode())
    except db.Unstorable:
        return result  # told apart where it is written
    if size > most_bytes:
        message = f"the result has {size:,} bytes as JSON and {most_bytes:,} can be kept"
        raise ResultTooLarge(message, size_bytes=size, limit_bytes=most_bytes)
    return result


def main() -> None:
    guardian_pid, guardian_pipe = int(sys.argv[1]), int(sys.argv[2])
    predecessors = {each["worker_id"]: each["proof"] for each in map(json.loads, sys.argv[3:])}
    kernel.keep_private()
    kernel.die_with_parent(guardian_pid, signal.SIGTERM)
    settings = Settings()
    settings.take_secrets_out_of_the_environment()
    logs.start(settings, "actors")
    tracing.start(settings, "actors")
    WorkerProcess(settings, guardian_pid, guardian_pipe, predecessors).run()


if __name__ == "__main__":
    main()
