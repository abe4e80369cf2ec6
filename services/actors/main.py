"""The worker's process: Dramatiq's threads between RabbitMQ and the actors, a writer and a heartbeat beside them."""

import asyncio
import json
import logging
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any
from uuid import UUID

from windlass.services.actors.departure import Departure
from windlass.services.actors.making import Resident, make, unknown_queues, wanted
from windlass.services.actors.quarantine import NO_LONGER_NEEDED
from windlass.services.actors.stop_wish import StopWish
from windlass.services.actors.succession.succession import Succession
from windlass.services.actors.succession.whereabouts import mark_all_that_starts, of_this_worker
from windlass.services.actors.worker.attempts import Attempts
from windlass.services.actors.worker.calls import Calls
from windlass.services.actors.worker.capacity import Capacity, Kind
from windlass.services.actors.worker.coroutines.loop_guard import LoopGuard
from windlass.services.actors.worker.coroutines.runner import LoopRunner
from windlass.services.actors.worker.desk import Desk
from windlass.services.actors.worker.dramatiq_worker import DeskWorker
from windlass.services.actors.worker.executor import Executor, Running
from windlass.services.actors.worker.guests import invite
from windlass.services.actors.worker.leases.heartbeat import Heartbeat
from windlass.services.actors.worker.leases.lease_watch import LeaseWatch
from windlass.services.actors.worker.leases.take_back import take_back
from windlass.services.actors.worker.loner import Loner
from windlass.services.actors.worker.metrics import begin, watch_places
from windlass.services.actors.worker.mirror import StateMirror
from windlass.services.actors.worker.runners import boot, make_runners
from windlass.services.actors.worker.writing.writer import Writer
from windlass.shared import db, tracing
from windlass.shared.actors.loading import load
from windlass.shared.broker import threads_live
from windlass.shared.metrics import serving
from windlass.shared.process import kernel, log_context, logs
from windlass.shared.process.pulse import Pulse
from windlass.shared.settings import Settings
from windlass.shared.settings.loading import exit_over_settings, settings_or_exit
from windlass.shared.store import tasks
from windlass.shared.store.flow_control import providers
from windlass.shared.store.operating import registry, workers
from windlass.shared.store.tasks import Claimed

log = logging.getLogger("actors")


class WorkerProcess:
    """Everything that runs in one worker, and the order in which it starts; `departure.py` has that in which it stops.

    `alone`, in quarantine, it runs one task at a time, only those that must have a process for themselves.
    """

    def __init__(
        self,
        settings: Settings,
        guardian_pid: int,
        guardian_pipe: int,
        predecessors: dict[str, dict[str, Any]],
        *,
        alone: bool = False,
    ) -> None:
        self.loaded = load(settings, only=wanted(settings))
        settings = self.settings = self.loaded.with_them()
        self.guardian_pid = guardian_pid
        self.worker_id = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
        log_context.of_this_process(worker=self.worker_id)
        mark_all_that_starts(self.worker_id)
        self.whereabouts = of_this_worker(guardian_pid)
        self.predecessors = predecessors
        self.stop_wish = StopWish()
        self.lease_watch = LeaseWatch(
            settings, guardian_pipe, guardian_gone=lambda: self.stop_wish.say("the guardian is gone")
        )
        self.attempts = Attempts(on_over=self.lease_watch.let_go)
        self.writer = Writer(settings, self.worker_id, on_claim=self.lease_watch.claimed)
        self.calls = Calls(patience_seconds=0.6 * settings.stop_grace_seconds)
        self.guests = invite(settings)
        self.executor = Executor(
            self.writer,
            self.attempts,
            self.calls,
            self.worker_id,
            settings=settings,
            guests=self.guests,
            condemn=self.condemn,
        )
        served = {queue.partition(".")[0] for queue in settings.consumed_queues(self.loaded.actors)}
        self.actors = make(self.loaded, settings, served)
        unknown = unknown_queues(settings)
        self.queues = tuple(queue for queue in settings.consumed_queues(self.actors) if queue not in unknown)
        # Why an actor cannot be loaded goes before that nobody serves its queue, which is what follows from it.
        self.broken = {**unknown, **self.loaded.broken_queues()}
        if not self.queues and not self.broken:
            exit_over_settings(f"WINDLASS_QUEUES names no queue of these actors: {', '.join(self.loaded.actors)}")
        self.alone = alone
        self.loop_runner = LoopRunner(
            self.executor, self.calls.loop, self.actors, patience_seconds=settings.stop_grace_seconds / 2
        )
        self.loop_guard = LoopGuard(
            self.calls, self.loop_runner, grace_seconds=settings.stop_grace_seconds, condemn=self._condemn_at_once
        )
        self.heartbeat = Heartbeat(
            settings,
            self.worker_id,
            self.attempts,
            watch=self.lease_watch,
            condemn=self.condemn,
            drain=self.stop_wish.say,
            look_at_the_loop=self.loop_guard.look,
        )
        self.capacity = Capacity.for_queues(
            self.queues,
            [queue for queue in self.queues if not self.actors[queue.partition(".")[0]].holds_a_thread],
            threads=settings.actor_threads,
            loop=settings.async_places,
        )
        self.worker = self._loner() if alone else self._dramatiq_worker()
        self.exit_code = 0
        self.pulse = Pulse(settings, lives=self.lives)

    def run(self) -> None:
        self.stop_wish.listen()
        self.lease_watch.introduce(self.worker_id)
        self.pulse.start()
        self._tell_how_it_is()
        for place, reason in self.broken.items():
            log.error("%s is not served: %s", place, reason)
        self.writer.start()
        self.calls.start()
        asyncio.run(self._register_or_go())
        if self.whereabouts is not None:
            Succession(self.settings, self.worker_id, self.whereabouts).start()
        self.heartbeat.start()
        self.worker.start()
        self.writer.begin()
        for resident in [] if self.alone else self._residents():
            self.calls.begin(resident.accompany(self._ask), on_end=lambda: None)
        serves = "runs what must run alone of" if self.alone else "serves"
        log.info("worker %s %s %s", self.worker_id, serves, ", ".join(self.queues) or "nothing")
        self.pulse.is_ready = True
        self.stop_wish.wait()
        Departure(
            self.settings,
            self.worker_id,
            self.guardian_pid,
            stop_wish=self.stop_wish,
            executor=self.executor,
            attempts=self.attempts,
            writer=self.writer,
            worker=self.worker,
            heartbeat=self.heartbeat,
        ).go(self.exit_code)

    def _dramatiq_worker(self) -> DeskWorker:
        settings = self.settings
        mirror = StateMirror(self.executor)
        runners = make_runners(self.actors, mirror, self.executor)
        broker = boot(settings, runners, self.queues, mirror, self.guests)
        desk = Desk(
            settings,
            self.queues,
            begin=self.writer.accompany,
            on_doorbell=self.writer.hear,
            on_connected=self.writer.ask_for_all,
        )
        worker = DeskWorker(broker, desk=desk, queues=set(self.queues), worker_threads=max(1, self.capacity.threads))

        def run(task: Claimed, lease_end: float) -> None:
            running = self.executor.grant(task, lease_end)
            if self.actors[task.actor].holds_a_thread:
                worker.run(running)
            else:
                self.loop_runner.run(running)

        self.writer.serve_places(self.capacity, self.queues, run=run, on_suspect=self.lease_watch.ask_for_quarantine)
        return worker

    def _run_async(self, actor: str, running: Running) -> bool:
        """Whether it needs no thread, and has been begun."""
        if self.actors[actor].holds_a_thread:
            return False
        self.loop_runner.run(running)
        return True

    def _loner(self) -> Loner:
        def find() -> tuple[UUID, str] | None:
            row = self.writer.call(lambda pool: tasks.next_alone(pool, self.queues))
            return None if row is None else (row.task_id, row.actor)

        return Loner(
            self.executor,
            self.actors,
            run_async=self._run_async,
            find=find,
            claim=self.writer.claim_alone,
            on_idle=self._not_needed,
        )

    def _not_needed(self) -> None:
        self.exit_code = NO_LONGER_NEEDED
        self.stop_wish.say("nothing is left that must run alone")

    def lives(self) -> bool:
        """Its threads and its heartbeat, whatever Postgres and RabbitMQ do. On its way out they end one by one."""
        at_work = self.worker.lives() if isinstance(self.worker, Loner) else threads_live(self.worker)
        return self.stop_wish.reason is not None or (at_work and self.calls.lives() and self.heartbeat.is_watching())

    def _tell_how_it_is(self) -> None:
        serving.serve(self.settings, "actors")
        begin(self.queues, self.broken)
        watch_places(self.capacity, self._busy, heartbeat_age=self.heartbeat.seconds_since_renewal)

    def _busy(self, kind: Kind) -> int:
        return sum(self.capacity.kind_of(queue) == kind for queue in self.attempts.queues())

    def _residents(self) -> list[Resident]:
        calls: list[object] = [actor.call for actor in self.actors.values()]
        return [call for call in calls if isinstance(call, Resident)]

    async def _ask(self, intent: Callable[[db.Database], Any]) -> Any:
        return await asyncio.to_thread(self.writer.call, intent)

    def condemn(self, reason: str) -> None:
        """Something in this process cannot be stopped, or be had any more: save the others, then let the guardian end
        it all."""
        if self.stop_wish.reason is None:
            log.error("this process has to go: %s", reason)
            # Before anybody is handed back: the end of one would ask for another, who would have to go as well.
            self.writer.ask_no_more()
            self.stop_wish.say(f"condemned: {reason}")

    def _condemn_at_once(self, reason: str) -> None:
        """The same, and nobody waits for what runs to end by itself: it cannot."""
        self.condemn(reason)
        self.stop_wish.say(reason, at_once=True)

    async def _register_or_go(self) -> None:
        """Postgres may be away, or say nothing. Who is told to stop meanwhile has nothing yet to hand back."""
        registering, wish = asyncio.ensure_future(self._register()), asyncio.ensure_future(self.stop_wish.heard())
        await asyncio.wait((registering, wish), return_when=asyncio.FIRST_COMPLETED)
        if not registering.done():
            await asyncio.wait((registering,), timeout=self.settings.stop_grace_seconds)
        if not registering.done():
            log.info("stopping: %s, and Postgres has not answered since the start", self.stop_wish.reason)
            logging.shutdown()
            os._exit(0)
        wish.cancel()
        await registering

    async def _register(self) -> None:
        settings = self.settings
        pool = await db.open_pool(settings, "actors", most=1)

        async def register() -> None:
            await providers.configure(pool, settings)
            await take_back(pool, self.predecessors, self.settings.retries)
            for resident in self._residents():
                await resident.prepare(pool)
            await registry.announce(pool, [self.loaded.actors[name].definition for name in self.actors])
            await workers.register(
                pool,
                self.worker_id,
                hostname=socket.gethostname(),
                pid=os.getpid(),
                # What must run alone is found in the rows: for everybody else there is no room here.
                queues=[] if self.alone else self.queues,
                capacity=1 if self.alone else max(1, self.capacity.in_all),
                async_queues=[] if self.alone else sorted(self.capacity.queues_of_loop),
                async_capacity=0 if self.alone else self.capacity.loop,
                actor_versions={name: self.loaded.actors[name].definition.version for name in self.actors},
                broken=self.broken,
                whereabouts=self.whereabouts.as_document() if self.whereabouts is not None else None,
            )

        await db.until_available("actors", register)
        await pool.close()


def main() -> None:
    guardian_pid, guardian_pipe, alone = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "alone"
    predecessors = {each["worker_id"]: each["proof"] for each in map(json.loads, sys.argv[4:])}
    kernel.keep_private()
    kernel.die_with_parent(guardian_pid, signal.SIGTERM)
    settings = settings_or_exit("database_url", "amqp_url")
    settings.take_secrets_out_of_the_environment()
    if alone:
        # One task at a time; the port and the pulse are those of the worker beside it.
        settings = settings.model_copy(
            update={"actor_threads": 1, "async_places": 1, "metrics_port": None, "pulse_file": None}
        )
    logs.start(settings, "actors")
    tracing.start(settings, "actors")
    WorkerProcess(settings, guardian_pid, guardian_pipe, predecessors, alone=alone).run()


if __name__ == "__main__":
    main()
