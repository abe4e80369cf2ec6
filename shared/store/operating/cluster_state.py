"""The state of everything at one moment, for whoever watches it: a few statements, the size of the live work."""

from dataclasses import dataclass

from windlass.shared.db import Database
from windlass.shared.store.functions import named
from windlass.shared.store.operating import queues, registry, room
from windlass.shared.store.operating.queues import QueueStatus
from windlass.shared.store.record import Record, fetch
from windlass.shared.store.tasks import untold


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


@dataclass(frozen=True)
class ClusterState:
    """Each queue as `/queues/status` has it, each provider, what the janitors could not account for, why nothing can be
    stored, if that is so, what went untold, and how many versions of each actor there are."""

    queues: list[QueueStatus]
    providers: list[ProviderState]
    unaccounted: int | None
    """None when no janitor has been heard of lately."""
    refusal: room.Refusal | None
    untold: int
    """Moves that could not be told to whom they concern."""
    actors: list[registry.VersionsAlive]


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
        untold=await untold.count(db),
        actors=await registry.alive(db, heard_within_seconds=workers_within_seconds),
    )
