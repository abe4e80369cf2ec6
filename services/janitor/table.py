"""The table of the janitor's duties: what each is called, when it is done, and what does it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from windlass.services.janitor.duties.blocked import recheck_blocked
from windlass.services.janitor.duties.breakers import look_after_breakers
from windlass.services.janitor.duties.dependents import settle_dependents
from windlass.services.janitor.duties.endpoints import look_after_endpoints, recheck_endpoints
from windlass.services.janitor.duties.expired import bury_expired
from windlass.services.janitor.duties.keys import recheck_keys
from windlass.services.janitor.duties.memory import forget_questions, gather_memory
from windlass.services.janitor.duties.projects import look_after_projects
from windlass.services.janitor.duties.reconciler import count_unaccounted
from windlass.services.janitor.duties.stale import recover_stale
from windlass.services.janitor.duties.statistics import keep_today, keep_yesterday
from windlass.services.janitor.duties.submission_keys import forget_expired_keys
from windlass.services.janitor.duties.tallies import fold_tallies, mend_tallies
from windlass.services.janitor.duties.texts import sort_in_new_texts
from windlass.services.janitor.duties.vector_indexes import look_after_indexes
from windlass.services.janitor.duties.workers import lose_silent_workers
from windlass.services.janitor.duties.workflows import count_drift, expire_approvals
from windlass.services.janitor.premises import Premises
from windlass.services.janitor.rhythms import Rhythm


@dataclass(frozen=True)
class Duty:
    """A name, a rhythm, and what is done. One that is called says in how many seconds it wants to look again."""

    name: str
    rhythm: Rhythm
    do: Callable[[Premises], Awaitable[float | None]]


async def stale(at: Premises) -> None:
    await recover_stale(
        at.pool, heard_at=at.heard_at, patience_seconds=at.patience_seconds, retries=at.settings.retries
    )


async def blocked(at: Premises) -> None:
    at.rechecked_from, at.rechecked_to = at.rechecked_to, await recheck_blocked(at.pool, at.rechecked_to)


async def keys(at: Premises) -> float:
    called_by, at.keys_called_by = at.keys_called_by, set()
    return await recheck_keys(at.listening, called_by)


async def unaccounted(at: Premises) -> None:
    """After the recheck, and of the page that it has looked through: what it could mend is nobody's loss."""
    at.unaccounted = await count_unaccounted(at.pool, at.settings, blocked_after=at.rechecked_from)


async def workflow_drift(at: Premises) -> None:
    at.workflow_drift = await count_drift(at.pool)


DUTIES = (
    Duty("stale", Rhythm.LEASES, stale),
    Duty("expired", Rhythm.LEASES, lambda at: bury_expired(at.pool)),
    Duty("approvals", Rhythm.LEASES, lambda at: expire_approvals(at.pool)),
    Duty("dependents", Rhythm.CALL, lambda at: settle_dependents(at.listening)),
    Duty("keys", Rhythm.CALL, keys),
    Duty("projects", Rhythm.CALL, lambda at: look_after_projects(at.pool)),
    Duty("endpoints", Rhythm.CALL, lambda at: look_after_endpoints(at.listening)),
    Duty("bulk", Rhythm.CALL, lambda at: at.bulk_runner.do_a_round()),
    Duty("memory", Rhythm.CALL, lambda at: gather_memory(at.pool, at.settings)),
    Duty("vector_indexes", Rhythm.CALL, lambda at: look_after_indexes(at.pool, at.settings)),
    Duty("blocked", Rhythm.MINUTE, blocked),
    Duty("endpoints_check", Rhythm.MINUTE, lambda at: recheck_endpoints(at.pool, at.settings)),
    Duty("workers", Rhythm.MINUTE, lambda at: lose_silent_workers(at.pool, at.settings)),
    Duty("breakers", Rhythm.MINUTE, lambda at: look_after_breakers(at.pool, at.settings)),
    Duty("submission_keys", Rhythm.MINUTE, lambda at: forget_expired_keys(at.pool)),
    Duty("tallies", Rhythm.MINUTE, lambda at: fold_tallies(at.pool)),
    Duty("texts", Rhythm.MINUTE, lambda at: sort_in_new_texts(at.pool)),
    Duty("reconciler", Rhythm.MINUTE, unaccounted),
    Duty("workflow_drift", Rhythm.MINUTE, workflow_drift),
    Duty("questions", Rhythm.MINUTE, lambda at: forget_questions(at.pool)),
    Duty("figures", Rhythm.MINUTE, lambda at: keep_today(at.pool)),
    Duty("statistics", Rhythm.HOUR, lambda at: keep_yesterday(at.pool)),
    Duty("tallies_check", Rhythm.HOUR, lambda at: mend_tallies(at.pool)),
)
"""Those of one rhythm are done in this order, one after another."""


def duties_of(rhythm: Rhythm) -> list[Duty]:
    return [duty for duty in DUTIES if duty.rhythm == rhythm]


def duty_named(name: str) -> Duty:
    return next(duty for duty in DUTIES if duty.name == name)
