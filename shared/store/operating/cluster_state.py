"""The state of everything at one moment, for whoever watches it: a few statements, the size of the live work."""

from dataclasses import dataclass

from windlass.shared.db import Database
from windlass.shared.store import outbox
from windlass.shared.store.functions import named
from windlass.shared.store.operating import queues, registry, room
from windlass.shared.store.operating.queues import QueueStatus
from windlass.shared.store.projects import looking_after
from windlass.shared.store.record import Record, fetch, fetchrow
from windlass.shared.store.schedules import reading as schedules
from windlass.shared.store.webhooks import reading as webhooks


class ProviderState(Record):
    """A provider at this moment."""

    provider: str
    limit: int | None
    held: int
    breaker_state: str
    paused: bool
    rests: bool
    unaccounted: int | None
    lease_age_seconds: float


class WorkflowFigures(Record):
    """What wants a person, and what the janitors have found wrong."""

    drift: int | None
    escalated: int
    oldest_approval_seconds: float


class MemoryFigures(Record):
    """What memory has yet to do, and what it could not."""

    waiting: int
    failed: int
    ungathered_seconds: float


@dataclass(frozen=True)
class ClusterState:
    """Each queue as `/queues/status` has it, each provider, what the janitors could not account for, why nothing can be
    stored, if that is so, what waits in the outbox, how many versions of each actor there are, what
    workflows need, what memory has yet to do, how the endpoints of webhooks are, and how schedules are."""

    queues: list[QueueStatus]
    providers: list[ProviderState]
    unaccounted: int | None
    """None when no janitor has been heard of lately."""
    refusal: room.Refusal | None
    outbox: list[outbox.OutboxState]
    project_orphans: int
    """Projects that nobody would move any more."""
    busy_projects: list[looking_after.Busy]
    actors: list[registry.VersionsAlive]
    workflows: WorkflowFigures
    memory: MemoryFigures
    endpoints: list[webhooks.Endpoints]
    schedules: list[schedules.InState]


async def read(db: Database, *, workers_within_seconds: float, janitors_within_seconds: float) -> ClusterState:
    rows, _ = await queues.status(db, user_id=None, heard_within_seconds=workers_within_seconds)
    providers = await fetch(
        db,
        ProviderState,
        f"""
        WITH said AS (
            SELECT max((r.details ->> 'unaccounted_tasks')::int) AS unaccounted FROM service_reports r
            WHERE r.service = 'janitor' AND r.reported_at > clock_timestamp() - make_interval(secs => $1)
        )
        SELECT p.name AS provider, coalesce(p.limit_override, p.configured_limit) AS limit,
               {named("held_slots")}(p.name) AS held, p.breaker_state,
               p.paused, coalesce(p.paused_until > now(), false) AS rests, said.unaccounted, (
                   SELECT coalesce(extract(epoch FROM clock_timestamp() - min(t.heartbeat_at)), 0)::float FROM tasks t
                   WHERE t.provider = p.name AND t.status = 'running') AS lease_age_seconds
        FROM providers p CROSS JOIN said ORDER BY p.name
        """,  # noqa: S608 - a name of our own
        janitors_within_seconds,
    )
    return ClusterState(
        queues=rows,
        providers=providers,
        unaccounted=providers[0].unaccounted if providers else None,
        refusal=await room.refusal(db),
        outbox=await outbox.state(db),
        project_orphans=await looking_after.count_orphans(db),
        busy_projects=await looking_after.count_busy(db),
        actors=await registry.alive(db, heard_within_seconds=workers_within_seconds),
        workflows=await _workflows(db, janitors_within_seconds=janitors_within_seconds),
        memory=await _memory(db),
        endpoints=await webhooks.count_endpoints(db),
        schedules=await schedules.count_states(db),
    )


async def _memory(db: Database) -> MemoryFigures:
    row = await fetchrow(
        db,
        MemoryFigures,
        """
        SELECT (SELECT count(*) FROM embedding_jobs WHERE state = 'waiting') AS waiting,
               (SELECT count(*) FROM embedding_jobs WHERE state = 'failed') AS failed, coalesce((
                   SELECT extract(epoch FROM clock_timestamp() - e.at)::float FROM agent_events e
                   WHERE e.gathered_at IS NULL ORDER BY e.event_id LIMIT 1), 0) AS ungathered_seconds
        """,
    )
    assert row is not None, "a count always answers"
    return row


async def _workflows(db: Database, *, janitors_within_seconds: float) -> WorkflowFigures:
    row = await fetchrow(
        db,
        WorkflowFigures,
        """
        SELECT (
                   SELECT max((r.details ->> 'workflow_drift')::int) FROM service_reports r
                   WHERE r.service = 'janitor' AND r.reported_at > clock_timestamp() - make_interval(secs => $1)
               ) AS drift,
               (SELECT count(*) FROM workflows WHERE status = 'escalated') AS escalated,
               (SELECT coalesce(extract(epoch FROM clock_timestamp() - min(t.asked_at)), 0)::float FROM tasks t
                WHERE t.status = 'blocked' AND t.asked_at IS NOT NULL) AS oldest_approval_seconds
        """,
        janitors_within_seconds,
    )
    assert row is not None, "a count always answers"
    return row
