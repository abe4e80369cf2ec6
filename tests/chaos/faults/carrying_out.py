"""Carries out the faults of a plan, each on a thread of its own, and writes down from when to when it lasted."""

import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM

import httpx
import pika
import pika.exceptions

from tests.chaos.faults.batches import in_a_batch
from tests.chaos.faults.cut_ends import cut_an_end
from tests.chaos.faults.plan import AWAY, ENDS, EVERYTHING_AT_ONCE, Planned
from tests.chaos.record import Fault, LimitChange
from tests.chaos.site.installation import Installation, Unit
from tests.support.installation import KEY
from tests.support.waiting import wait_until
from windlass.shared.broker import doorbell
from windlass.shared.errors import words_of
from windlass.shared.process.procfs import ProcessIdentity, initial_environment

WORKER = [b"-m", b"windlass.services.actors.main"]
AGENT = b"WINDLASS_TASK_ID="
AGENT_WAIT_SECONDS = 3
STOP_SECONDS = 15
BACK_SECONDS = 60
CALL_SECONDS = 3
BROKER_SECONDS = 60
NO_BATCH = "it had no batch to handle in time, and was harmed between two of them"


class Faults:
    """Faults on one target come one after the other, whatever the plan says; others may coincide.

    Nobody but the installation's keeper starts a process, since that has to happen on the main thread.
    """

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._record = installation.record
        self._targets: dict[str, threading.Lock] = defaultdict(threading.Lock)
        self._threads: list[threading.Thread] = []
        self.failures: list[str] = []
        """Faults that could not be carried out: the storm would be gentler than it says."""
        self._ways: dict[str, Callable[[Planned], None]] = {
            "kill": self._kill,
            "freeze": self._freeze,
            "restart": self._restart,
            "kill in a batch": self._kill_in_a_batch,
            "freeze in a batch": self._freeze_in_a_batch,
            AWAY: self._stay_away,
            "kill worker": self._kill_worker,
            "freeze worker": self._freeze_worker,
            "kill guardian": self._kill,
            "freeze guardian": self._freeze_guardian,
            "kill host": self._kill_host,
            "freeze host": self._freeze,
            "restart actors": self._restart,
            "kill everything": self._kill_everything,
            "kill agent": self._kill_agent,
            "freeze agent": self._freeze_agent,
            "kill postgres": self._kill_server,
            "kill postgres whole": self._kill_server,
            "freeze postgres": self._freeze_server,
            "kill rabbitmq": self._kill_server,
            "freeze rabbitmq": self._freeze_server,
            "cut": self._cut,
            "reset": lambda planned: self._installation.links[planned.target].reset(),
            "delay": self._delay,
            "black-hole": self._black_hole,
            **dict.fromkeys((kind.name for kind in ENDS), self._cut_an_end),
            "ring for everything": self._ring_for_everything,
            "purge queues": self._purge_queues,
            "limit": self._change_limit,
        }

    def begin(self, number: int, planned: Planned) -> None:
        thread = threading.Thread(target=self._carry_out, args=(number, planned), name=planned.words, daemon=True)
        self._threads.append(thread)
        thread.start()

    @property
    def under_way(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def _carry_out(self, number: int, planned: Planned) -> None:
        with self._targets[planned.target]:
            began_at = time.time()
            try:
                self._ways[planned.kind](planned)
            except Exception as error:  # noqa: BLE001 - whoever runs the storm is told, and it goes on
                self.failures.append(f"{planned.words}: {words_of(error)}")
            host_wide = planned.kind == "freeze host"
            fault = Fault(number, planned.words, began_at, time.time(), is_host_wide=host_wide)
            self._record.faults.append(fault)

    # Processes

    def _unit(self, planned: Planned) -> Unit:
        return self._installation.units[planned.target]

    def _kill(self, planned: Planned) -> None:
        unit = self._unit(planned)
        with _away(unit, planned.seconds):
            unit.send(SIGKILL)

    def _restart(self, planned: Planned) -> None:
        unit = self._unit(planned)
        with _away(unit, planned.seconds):
            unit.send(SIGTERM)
            try:
                wait_until(f"{unit.name} stops", lambda: not unit.is_running, seconds=STOP_SECONDS)
            except AssertionError:
                unit.send(SIGKILL)
                raise

    def _freeze(self, planned: Planned) -> None:
        """With everything below it: of actors nobody is left who could keep a promise meanwhile."""
        unit = self._unit(planned)
        stand_still([unit.identity(), *unit.below()], planned.seconds)

    def _kill_in_a_batch(self, planned: Planned) -> None:
        unit = self._unit(planned)
        with _away(unit, planned.seconds):
            hit = in_a_batch(self._installation.database_url, unit.name, lambda: unit.send(SIGKILL))
        assert hit, NO_BATCH

    def _freeze_in_a_batch(self, planned: Planned) -> None:
        unit = self._unit(planned)
        frozen = [unit.identity()]
        hit = in_a_batch(self._installation.database_url, unit.name, lambda: freeze(frozen))
        time.sleep(planned.seconds)
        thaw(frozen)
        assert hit, NO_BATCH

    def _stay_away(self, planned: Planned) -> None:
        """All processes of a kind are killed, and none is started again for so long."""
        units = self._installation.of_kind(planned.target)
        with ExitStack() as locks, ExitStack() as away:
            for name in (*EVERYTHING_AT_ONCE, *(unit.name for unit in units)):
                locks.enter_context(self._targets[name])
            for unit in units:
                away.enter_context(_away(unit, 0))
                unit.send(SIGKILL)
            time.sleep(planned.seconds)

    def _freeze_guardian(self, planned: Planned) -> None:
        stand_still([self._unit(planned).identity()], planned.seconds)

    def _kill_worker(self, planned: Planned) -> None:
        for worker in workers_of(self._unit(planned)):
            worker.send(SIGKILL)

    def _freeze_worker(self, planned: Planned) -> None:
        stand_still(workers_of(self._unit(planned)), planned.seconds)

    def _kill_host(self, planned: Planned) -> None:
        """The guardian first, so that it can prove nothing; what the worker has started is left to itself."""
        unit = self._unit(planned)
        workers = workers_of(unit)
        with _away(unit, planned.seconds):
            unit.send(SIGKILL)
            for worker in workers:
                worker.send(SIGKILL)

    def _kill_everything(self, planned: Planned) -> None:
        """As when the current fails: every process and Postgres, at once."""
        units = list(self._installation.units.values())
        workers = [worker for unit in units for worker in workers_of(unit)]
        with self._targets["postgres"], ExitStack() as away:
            for unit in units:
                away.enter_context(_away(unit, planned.seconds))
                unit.send(SIGKILL)
            for worker in workers:
                worker.send(SIGKILL)
            self._installation.postgres.stop(SIGKILL)
            self._installation.postgres.start()

    def _kill_agent(self, _planned: Planned) -> None:
        for agent in self._agents()[:1]:
            agent.send(SIGKILL)

    def _freeze_agent(self, planned: Planned) -> None:
        stand_still(self._agents()[:1], planned.seconds)

    def _agents(self) -> list[ProcessIdentity]:
        """None when there is nobody to be harmed for some seconds."""
        with suppress(AssertionError):
            return wait_until("an agent", self._agents_now, seconds=AGENT_WAIT_SECONDS)
        return []

    def _agents_now(self) -> list[ProcessIdentity]:
        below = [process for unit in self._installation.units.values() for process in unit.below()]
        return [
            process
            for process in below
            if any(variable.startswith(AGENT) for variable in initial_environment(process.pid))
        ]

    # Servers

    def _kill_server(self, planned: Planned) -> None:
        server = self._installation.server(planned.target)
        server.stop(SIGKILL, with_all_below=planned.kind.endswith("whole"))
        try:
            time.sleep(planned.seconds)
        finally:
            server.start()

    def _freeze_server(self, planned: Planned) -> None:
        server = self._installation.server(planned.target)
        server.send(SIGSTOP)
        try:
            time.sleep(planned.seconds)
        finally:
            server.send(SIGCONT)

    # Links

    def _cut(self, planned: Planned) -> None:
        link = self._installation.links[planned.target]
        link.cut()
        time.sleep(planned.seconds)
        link.mend()

    def _delay(self, planned: Planned) -> None:
        link = self._installation.links[planned.target]
        link.delay(planned.amount)
        time.sleep(planned.seconds)
        link.mend()

    def _black_hole(self, planned: Planned) -> None:
        link = self._installation.links[planned.target]
        link.freeze()
        time.sleep(planned.seconds)
        link.mend()

    def _cut_an_end(self, planned: Planned) -> None:
        workers = [worker.pid for worker in workers_of(self._unit(planned))]
        link = self._installation.links[f"{planned.target}-postgres"]
        cut_an_end(self._installation.database_url, workers, link, planned.kind)

    # Doorbells and limits

    def _ring_for_everything(self, _planned: Planned) -> None:
        """Doorbells that no dispatcher admitted: the claim alone keeps the limits then."""
        accepted = list(self._record.accepted.values())
        queues = [f"{each.actor}.{each.provider}" for each in accepted]

        def ring(connection: pika.BlockingConnection) -> None:
            channel = connection.channel()
            for queue in queues:
                channel.basic_publish("", queue, doorbell(queue, 3))

        self._with_rabbitmq(ring)

    def _purge_queues(self, _planned: Planned) -> None:
        """Doorbells that are lost."""

        def purge(connection: pika.BlockingConnection) -> None:
            for queue in self._installation.queues():
                with suppress(pika.exceptions.ChannelClosedByBroker):  # it has not been declared yet
                    connection.channel().queue_purge(queue)

        self._with_rabbitmq(purge)

    def _with_rabbitmq(self, work: Callable[[pika.BlockingConnection], None]) -> None:
        deadline = time.monotonic() + BROKER_SECONDS
        parameters = pika.URLParameters(self._installation.amqp_url)
        parameters.socket_timeout = parameters.stack_timeout = parameters.blocked_connection_timeout = CALL_SECONDS
        while True:
            try:
                with closing(pika.BlockingConnection(parameters)) as connection:
                    work(connection)
                return
            except (pika.exceptions.AMQPError, OSError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.3)

    def _change_limit(self, planned: Planned) -> None:
        """Repeated until it is answered: between the two moments either limit may be in force."""
        asked_at, limit = time.time(), int(planned.amount)
        with httpx.Client(
            base_url=self._installation.api_url,
            headers={"Authorization": f"Bearer {KEY}"},
            timeout=CALL_SECONDS,
            trust_env=False,
        ) as http:
            while not self._is_changed(http, planned.target, limit):
                time.sleep(0.2)
        self._record.limit_changes.append(LimitChange(planned.target, limit, asked_at, time.time()))

    def _is_changed(self, http: httpx.Client, provider: str, limit: int) -> bool:
        try:
            return http.patch(f"/api/v1/providers/{provider}", json={"limit": limit}).is_success
        except httpx.TransportError:
            return False


@contextmanager
def _away(unit: Unit, seconds: float) -> Iterator[None]:
    """The keeper lets it be for so long, and the fault is over when the next one has been started."""
    starts = unit.starts
    unit.away_until, unit.is_expected_to_end = math.inf, True
    try:
        yield
    finally:
        unit.away_until = time.monotonic() + seconds
    wait_until(f"{unit.name} is started again", lambda: unit.starts > starts, seconds=BACK_SECONDS)


def stand_still(processes: Sequence[ProcessIdentity | None], seconds: float) -> None:
    frozen = freeze(processes)
    time.sleep(seconds)
    thaw(frozen)


def freeze(processes: Sequence[ProcessIdentity | None]) -> list[ProcessIdentity]:
    return [process for process in processes if process is not None and process.send(SIGSTOP)]


def thaw(processes: Sequence[ProcessIdentity | None]) -> None:
    for process in processes:
        if process is not None:
            process.send(SIGCONT)


def workers_of(unit: Unit) -> list[ProcessIdentity]:
    return [process for process in unit.below() if is_a_worker(process.pid)]


def is_a_worker(pid: int) -> bool:
    """As its command line shows it, which is gone with the process."""
    try:
        words = Path("/proc", str(pid), "cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return words[1:3] == WORKER
