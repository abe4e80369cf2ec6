"""The drill for "never more than the limit": harm that is done to workers, and what the counting provider saw of it."""

import random
import signal
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pika

from tests.support.installation import START_SECONDS, Process, Windlass
from tests.support.providers.counting_provider import Call, CountingProvider
from tests.support.servers.databases import ask
from tests.support.waiting import wait_until
from windlass.shared.broker import doorbell
from windlass.shared.process.procfs import ProcessIdentity, descendants

PROVIDER = "counted"
WORKER = "tests.support.providers.counting_worker"
MAX_RETRIES = 20


@dataclass(frozen=True)
class LimitChange:
    """A limit, and the moments by Postgres' clock between which it came into force."""

    limit: int
    asked_at: datetime
    done_at: datetime


class LimitDrill:
    """A Windlass whose probes call the counting provider, several actors processes, and ways to do them harm."""

    def __init__(
        self, database_url: str, amqp_url: str, directory: Path, provider: CountingProvider, *, limit: int, actors: int
    ) -> None:
        config = directory / "windlass.toml"
        config.write_text(f'[providers.{PROVIDER}]\nactor = "probe"\nlimit = {limit}\n')
        self.database_url = database_url
        self.provider = provider
        self.windlass = Windlass(
            database_url,
            amqp_url,
            directory,
            WINDLASS_CONFIG=str(config),
            WINDLASS_QUEUES=f"probe.{PROVIDER}",
            WINDLASS_ACTOR_THREADS="4",
            COUNTING_PROVIDER=provider.address,
        )
        self._configured_limit = limit
        self._actors = actors
        self.guardians: list[Process] = []
        self.changes: list[LimitChange] = []
        self.harm_done: Counter[str] = Counter()
        self.ids: list[str] = []

    def start(self) -> None:
        for service in ("api", "dispatcher", "janitor", "orchestrator"):
            self.windlass.start(service)
        self.guardians = [self.windlass.start(WORKER) for _ in range(self._actors)]
        self.windlass.wait_until_healthy()
        wait_until("all workers", lambda: len(self.windlass.client.workers()) == self._actors, seconds=START_SECONDS)
        now = self._now()
        self.changes.append(LimitChange(self._configured_limit, now, now))

    def submit(self, seconds: Sequence[float]) -> None:
        tasks = [{"provider": PROVIDER, "payload": {"seconds": each}, "max_retries": MAX_RETRIES} for each in seconds]
        for begin in range(0, len(tasks), 1000):
            self.ids += self.windlass.client.submit_many(tasks[begin : begin + 1000])

    # Harm

    def kill_a_worker(self, guardian: Process) -> None:
        for worker in self._workers_of(guardian):
            worker.send(signal.SIGKILL)

    def freeze_a_worker(self, guardian: Process) -> None:
        for worker in self._workers_of(guardian):
            worker.send(signal.SIGSTOP)

    def kill_guardian_and_worker(self, guardian: Process) -> None:
        """Nobody is left who could vouch for them: the leases have to run out."""
        workers = self._workers_of(guardian)
        guardian.kill()
        for worker in workers:
            worker.send(signal.SIGKILL)
        self._replace(guardian)

    def restart(self, guardian: Process) -> None:
        guardian.terminate()
        self._replace(guardian)

    def change_limit(self, limit: int) -> str:
        asked_at = self._now()
        self.windlass.client.change_provider(PROVIDER, limit=limit)
        self.changes.append(LimitChange(limit, asked_at, self._now()))
        return self._done(f"limit {limit}")

    def ring_for_everything(self) -> str:
        """Doorbells that no dispatcher admitted: the claim alone keeps the limit then."""
        queue = f"probe.{PROVIDER}"
        parameters = pika.URLParameters(self.windlass.environment["WINDLASS_AMQP_URL"])
        with closing(pika.BlockingConnection(parameters)) as connection:
            channel = connection.channel()
            for _ in self.ids:
                channel.basic_publish("", queue, doorbell(queue, 3))
        return self._done("stray doorbells")

    def shake(self, dice: random.Random) -> str:
        """One of these, to whom the dice say; returns what was done."""
        harms = (self.kill_a_worker, self.freeze_a_worker, self.kill_guardian_and_worker, self.restart)
        harm = dice.choice(harms)
        harm(dice.choice(self.guardians))
        return self._done(harm.__name__.replace("_", " "))

    # What came of it

    def finished(self) -> int:
        return int(ask(self.database_url, "SELECT count(*) FROM tasks WHERE completed_at IS NOT NULL")[0][0])

    def wait_until_all_finished(self, *, seconds: float) -> None:
        wait_until("all tasks ended", lambda: self.finished() == len(self.ids), seconds=seconds, every=0.2)

    def overshoots(self) -> list[str]:
        """The calls that came when more were open than had been allowed when the latest of them was claimed.

        A claim is granted under the limit of its moment, and its call comes a little later; a limit lowered meanwhile
        takes back nothing. So a moment may have as many calls open as the limit was at the latest claim among them.
        """
        claimed_at = {
            (str(row["task_id"]), row["attempt"]): row["at"]
            for row in ask(self.database_url, "SELECT task_id, attempt, at FROM task_events WHERE type = 'claim'")
        }
        found = []
        for call in self.provider.calls:
            claims = [claimed_at[_name(each)] for each in call.company if each.task_id is not None]
            if claims and len(call.company) > (allowed := self._limit_at(max(claims))):
                found.append(f"{len(call.company)} calls open where {allowed} were allowed, at {max(claims)}")
        return found

    def oddities(self) -> list[str]:
        """Tasks whose story does not add up: each one completes once, and every lost worker costs one retry."""
        rows = ask(
            self.database_url,
            """
            SELECT t.task_id, t.status, t.attempt, t.retry_count, t.interrupt_count,
                   count(*) FILTER (WHERE e.type = 'claim') AS claims,
                   count(*) FILTER (WHERE e.type = 'stall') AS stalls,
                   count(*) FILTER (WHERE e.type = 'retry') AS retries,
                   count(*) FILTER (WHERE e.type = 'interrupt') AS interrupts,
                   count(*) FILTER (WHERE e.type = 'complete') AS completions
            FROM tasks t JOIN task_events e USING (task_id) GROUP BY t.task_id
            """,
        )
        answered: dict[str | None, int] = {}
        for call in self.provider.calls:
            answered[call.task_id] = answered.get(call.task_id, 0) + call.answered
        return [
            f"{dict(row)}, answered {answered.get(str(row['task_id']), 0)} times"
            for row in rows
            if not (
                row["status"] == "completed"
                and row["completions"] == 1
                and row["attempt"] == row["claims"] == 1 + row["stalls"] + row["retries"] + row["interrupts"]
                and row["retry_count"] == row["stalls"] + row["retries"]
                and row["interrupt_count"] == row["interrupts"]
                and 1 <= answered.get(str(row["task_id"]), 0) <= row["claims"]
            )
        ]

    def sums(self) -> dict[str, Any]:
        row = ask(
            self.database_url,
            """
            SELECT count(*) AS events, count(*) FILTER (WHERE type = 'claim') AS claims,
                   count(*) FILTER (WHERE type = 'stall') AS stalls,
                   count(*) FILTER (WHERE type = 'retry') AS retries,
                   count(*) FILTER (WHERE type = 'interrupt') AS interrupts,
                   (SELECT max(attempt) FROM tasks) AS most_attempts
            FROM task_events
            """,
        )[0]
        return dict(row)

    def _done(self, harm: str) -> str:
        self.harm_done[harm] += 1
        return harm

    def _limit_at(self, moment: datetime) -> int:
        """The most that any limit allowed which may have been in force then."""
        replaced_at = [change.done_at for change in self.changes[1:]] + [None]
        return max(
            change.limit
            for change, until in zip(self.changes, replaced_at, strict=True)
            if (change is self.changes[0] or change.asked_at <= moment) and (until is None or moment <= until)
        )

    def _workers_of(self, guardian: Process) -> list[ProcessIdentity]:
        return descendants(guardian.pid)

    def _replace(self, guardian: Process) -> None:
        self.guardians[self.guardians.index(guardian)] = self.windlass.start(WORKER)

    def _now(self) -> datetime:
        now: datetime = ask(self.database_url, "SELECT clock_timestamp()")[0][0]
        return now


def _name(call: Call) -> tuple[str, int]:
    assert call.task_id is not None
    assert call.attempt is not None
    return call.task_id, call.attempt
