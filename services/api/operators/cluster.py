"""What Postgres knows about everything, as Prometheus reads it: asked when somebody asks, and never out of memory."""

import asyncio
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

from prometheus_client import Gauge
from prometheus_client.core import GaugeMetricFamily

from windlass.services.api.actors.registry import Registry, Shown
from windlass.shared import db
from windlass.shared.features.registry import FEATURES
from windlass.shared.metrics import cluster
from windlass.shared.metrics.catalogue import of_everything
from windlass.shared.project_states import BUSY, QueueState
from windlass.shared.schedules.words import PauseReason
from windlass.shared.settings import Settings
from windlass.shared.states import State
from windlass.shared.store.operating import cluster_state
from windlass.shared.store.operating.cluster_state import ClusterState
from windlass.shared.webhook_states import EndpointState

BELIEVED_SECONDS = 1.0
"""Scrapes of the same second share one reading."""
DEADLINE_SECONDS = 3.0
"""Prometheus gives up after ten."""

BREAKER_STATES = ("closed", "open", "half-open")

Samples = Iterable[tuple[list[str], float]]


class ClusterReader:
    """One reading at a time, on the api's own loop. A late one is not cancelled, for the driver would wait for the
    server's consent: the next to ask waits for the same."""

    def __init__(self, settings: Settings, pool: db.Database, registry: Registry | None = None) -> None:
        self._settings = settings
        self._pool = pool
        self._registry = registry
        self._reading: asyncio.Task[ClusterState | None] | None = None
        self._latest: ClusterState | None = None
        self._read_at = -BELIEVED_SECONDS

    async def look(self) -> "ClusterMetrics":
        if self._latest is None or time.monotonic() - self._read_at >= BELIEVED_SECONDS:
            if self._reading is None or self._reading.done():
                self._reading = asyncio.create_task(self._read())
            answered, _ = await asyncio.wait({self._reading}, timeout=DEADLINE_SECONDS)
            return ClusterMetrics(self._reading.result() if answered else None)
        return ClusterMetrics(self._latest)

    async def _read(self) -> ClusterState | None:
        self._latest = None
        try:
            read = await cluster_state.read(
                self._pool,
                workers_within_seconds=self._settings.lease_seconds,
                janitors_within_seconds=self._settings.report_seconds,
            )
        except db.AWAY_OR_BUSY + db.NOT_MIGRATED:
            return None
        self._read_at = time.monotonic()
        shown = None if self._registry is None else self._registry.shown
        self._latest = read if shown is None else shown_of(read, shown)
        return self._latest


def shown_of(read: ClusterState, shown: Shown) -> ClusterState:
    """Without what nothing names and nobody uses any more."""
    return replace(
        read,
        queues=[row for row in read.queues if shown.has_queue(row)],
        providers=[row for row in read.providers if shown.has_provider(row.provider)],
        actors=[row for row in read.actors if shown.has_actor(row.actor)],
    )


class ClusterMetrics:
    """One reading as families of samples. What was not read is left out: an old figure would look like a new one."""

    def __init__(self, read: ClusterState | None) -> None:
        self._read = read

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield family(cluster.DATABASE_ANSWERS, [([], float(self._read is not None))])
        if self._read is None:
            return
        yield family(cluster.DATABASE_WRITABLE, [([], float(self._read.refusal is None))])
        yield from self._of_queues(self._read)
        yield from self._of_providers(self._read)
        if self._read.unaccounted is not None:
            yield family(cluster.UNACCOUNTED, [([], self._read.unaccounted)])
            yield family(cluster.WORKFLOW_DRIFT, [([], self._read.workflows.drift or 0)])
        memory = self._read.memory
        yield family(cluster.EMBEDDING_JOBS, [(["waiting"], memory.waiting), (["failed"], memory.failed)])
        yield family(cluster.UNGATHERED_SECONDS, [([], memory.ungathered_seconds)])
        yield family(cluster.ESCALATED_WORKFLOWS, [([], self._read.workflows.escalated)])
        yield family(cluster.OLDEST_APPROVAL_SECONDS, [([], self._read.workflows.oldest_approval_seconds)])
        yield from self._of_outbox(self._read)
        yield from self._of_projects(self._read)
        yield from self._of_webhooks(self._read)
        yield from self._of_schedules(self._read)
        yield family(cluster.ACTOR_VERSIONS, [([row.actor], row.versions) for row in self._read.actors])

    def _of_outbox(self, read: ClusterState) -> Iterator[GaugeMetricFamily]:
        rows = {row.feature: row for row in read.outbox}
        features = [(feature.name, rows.get(feature.name)) for feature in FEATURES]
        yield family(cluster.OUTBOX_ROWS, [([name], row.rows if row else 0) for name, row in features])
        yield family(
            cluster.OUTBOX_OLDEST_SECONDS, [([name], row.oldest_seconds if row else 0) for name, row in features]
        )

    def _of_projects(self, read: ClusterState) -> Iterator[GaugeMetricFamily]:
        queues = {state.value: 0 for state in BUSY}
        seconds = {"stop": 0.0, "force": 0.0}
        for row in read.busy_projects:
            queues[row.state] += row.queues
            if row.state == QueueState.STOPPING:
                seconds["force" if row.forced else "stop"] = row.stopping_seconds
        yield family(cluster.PROJECT_ORPHANS, [([], read.project_orphans)])
        yield family(cluster.PROJECT_QUEUES, [([state], number) for state, number in queues.items()])
        yield family(cluster.PROJECT_STOPPING_SECONDS, [([by], age) for by, age in seconds.items()])

    def _of_webhooks(self, read: ClusterState) -> Iterator[GaugeMetricFamily]:
        counted = {row.state: row for row in read.endpoints}
        numbers = [(state.value, counted.get(state.value)) for state in EndpointState]
        yield family(cluster.WEBHOOKS, [([state], row.endpoints if row else 0) for state, row in numbers])
        yield family(cluster.GIVEN_UP_WEBHOOKS, [([], sum(row.given_up for row in read.endpoints))])
        yield family(cluster.WAITING_DELIVERIES, [([state], row.waiting if row else 0) for state, row in numbers])

    def _of_schedules(self, read: ClusterState) -> Iterator[GaugeMetricFamily]:
        counted = {(row.state, row.reason): float(row.schedules) for row in read.schedules}
        known = {("active", ""): 0.0} | {("paused", reason.value): 0.0 for reason in PauseReason}
        yield family(cluster.SCHEDULES, [([*key], number) for key, number in (known | counted).items()])
        overdue = max((row.overdue_seconds for row in read.schedules), default=0)
        yield family(cluster.SCHEDULE_OVERDUE_SECONDS, [([], overdue)])

    def _of_queues(self, read: ClusterState) -> Iterator[GaugeMetricFamily]:
        rows = [
            (row, [row.queue, row.actor, row.provider])
            for row in read.queues
            if row.queue is not None and row.actor is not None
        ]
        yield family(
            cluster.TASKS, [([*labels[1:], state], row[state.value]) for row, labels in rows for state in State]
        )
        yield family(
            cluster.QUEUE_DEPTH, [([*labels, lane], row[lane]) for row, labels in rows for lane in ("fresh", "retry")]
        )
        yield family(cluster.QUEUE_SCHEDULED, [(labels, row.scheduled) for row, labels in rows])
        yield family(cluster.QUEUE_OLDEST_SECONDS, [(labels, row.oldest_age_seconds or 0) for row, labels in rows])
        yield family(cluster.QUEUE_WORKERS, [(labels, row.workers) for row, labels in rows])
        yield family(cluster.QUEUE_CAPACITY, [(labels, row.capacity) for row, labels in rows])

    def _of_providers(self, read: ClusterState) -> Iterator[GaugeMetricFamily]:
        rows = [(row, [row.provider]) for row in read.providers]
        yield family(cluster.SLOTS_HELD, [(name, row.held) for row, name in rows])
        yield family(cluster.SLOTS_LIMIT, [(name, row.limit) for row, name in rows if row.limit is not None])
        yield family(
            cluster.BREAKER_STATE,
            [
                ([*name, state.replace("-", "_")], float(row.breaker_state == state))
                for row, name in rows
                for state in BREAKER_STATES
            ],
        )
        yield family(
            cluster.PAUSED,
            [([*name, by], float(row[column])) for row, name in rows for by, column in PAUSED_BY.items()],
        )
        yield family(cluster.LEASE_AGE_SECONDS, [(name, row.lease_age_seconds) for row, name in rows])


PAUSED_BY = {"operator": "paused", "provider": "rests"}


def family(instrument: Gauge, samples: Samples) -> GaugeMetricFamily:
    (declared,) = [each for each in of_everything() if each.instrument is instrument]
    made = GaugeMetricFamily(declared.name, declared.meaning, labels=declared.labels)
    for labels, value in samples:
        made.add_metric(labels, value)
    return made
