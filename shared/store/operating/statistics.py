"""Daily figures by actor, agent, provider, user and project, kept so that nobody has to count a day's tasks again."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.store.record import Record, fetch

GROUPS = ("actor", "subagent_type", "provider", "user_id", "project_id")
STEPS_PER_DECADE = 20
"""Times are counted by logarithmic steps, each a tenth longer than the one before: what is made of them is as exact."""


class Figures(Record):
    """What became of the tasks that were created on a day, for each of what was asked for."""

    day: date
    created: int
    completed: int
    failed: int
    cancelled: int
    average_latency_seconds: float | None
    error_rate: float | None
    heartbeat_delay_seconds: float | None
    waits: dict[str, int] | None
    runs: dict[str, int] | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cost_usd: Decimal | None
    failed_cost_usd: Decimal | None
    updated_at: datetime


def first_id_of(day: date) -> UUID:
    """Ids are UUIDv7 and begin with the millisecond, so a day is a range of the primary key."""
    return UUID(int=int(datetime.combine(day, time(), UTC).timestamp() * 1000) << 80)


def step_of(seconds: str) -> str:
    """The number of the step that a time is in, as SQL; 0 is all up to a millisecond."""
    return f"floor({STEPS_PER_DECADE} * log(greatest(extract(epoch FROM {seconds})::float * 1000, 1)))::int"


def percentile_of(steps: dict[str, int] | None, share: float) -> float | None:
    """Seconds, within six in a hundred: the middle of the step that so many of a hundred are in or below."""
    if not steps:
        return None
    left = share * sum(steps.values())
    for step in sorted(map(int, steps)):
        left -= steps[str(step)]
        if left <= 0:
            break
    return float(round(10 ** ((step + 0.5) / STEPS_PER_DECADE) / 1000, 6))


KEYS = ", ".join(GROUPS)
ENDED = "status IN ('completed', 'dead') AND started_at IS NOT NULL"
FAILED_COST = """
    CASE WHEN NOT usage ? 'cost_usd' THEN NULL
         WHEN status = 'dead' THEN (usage ->> 'cost_usd')::numeric
         WHEN retry_count > 0 OR attempt > 1 THEN (
             SELECT (e.data #>> '{usage_so_far,cost_usd}')::numeric FROM task_events e
             WHERE e.task_id = tasks.task_id AND e.data ? 'usage_so_far'
               AND (e.attempt < tasks.attempt OR tasks.status IN ('queued', 'retrying'))
             ORDER BY e.seq DESC LIMIT 1)
    END"""
"""All that a dead task has cost; of another, what had been spent when the attempt began that counts."""
KEPT = (
    "created", "completed", "failed", "cancelled", "latency_ms", "waits", "runs", "running", "heartbeat_delay_ms",
    "prompt_tokens", "completion_tokens", "cost_usd", "failed_cost_usd",
)  # fmt: skip


def counted(steps: str) -> str:
    """How many are in which step, for each group."""
    return f"""
        SELECT {KEYS}, jsonb_object_agg(step, tasks) AS steps FROM (
            SELECT {KEYS}, {steps} AS step, count(*) AS tasks FROM seen WHERE {steps} IS NOT NULL
            GROUP BY {KEYS}, {steps}
        ) AS each GROUP BY {KEYS}
    """  # noqa: S608 - written here


KEEP = f"""
WITH seen AS (
    SELECT actor, CASE WHEN actor = 'agent' THEN coalesce(payload ->> 'subagent_type', '') ELSE '' END AS subagent_type,
           provider, user_id, coalesce(project_id, '') AS project_id, status, heartbeat_at, usage,
           {FAILED_COST} AS failed_cost_usd,
           round(extract(epoch FROM completed_at - created_at) * 1000)::bigint AS latency_ms,
           CASE WHEN {ENDED} THEN {step_of("started_at - created_at")} END AS wait,
           CASE WHEN {ENDED} THEN {step_of("completed_at - started_at")} END AS run
    FROM tasks WHERE task_id >= $2 AND task_id < $3
), summed AS (
    SELECT {KEYS}, count(*) AS created, count(*) FILTER (WHERE status = 'completed') AS completed,
           count(*) FILTER (WHERE status = 'dead') AS failed, count(*) FILTER (WHERE status = 'cancelled') AS cancelled,
           coalesce(sum(latency_ms) FILTER (WHERE status = 'completed'), 0) AS latency_ms,
           count(*) FILTER (WHERE status = 'running') AS running,
           coalesce(sum(extract(epoch FROM clock_timestamp() - heartbeat_at) * 1000)
                    FILTER (WHERE status = 'running'), 0)::bigint AS heartbeat_delay_ms,
           sum((usage ->> 'prompt_tokens')::bigint) AS prompt_tokens,
           sum((usage ->> 'completion_tokens')::bigint) AS completion_tokens,
           sum((usage ->> 'cost_usd')::numeric) AS cost_usd,
           sum(failed_cost_usd) AS failed_cost_usd
    FROM seen GROUP BY {KEYS}
), waited AS ({counted("wait")}), ran AS ({counted("run")})
INSERT INTO task_queue_metrics AS kept (day, {KEYS}, {", ".join(KEPT)})
SELECT $1, {KEYS}, created, completed, failed, cancelled, latency_ms, coalesce(waited.steps, '{{}}'),
       coalesce(ran.steps, '{{}}'), running, heartbeat_delay_ms, prompt_tokens, completion_tokens, cost_usd,
       failed_cost_usd
FROM summed LEFT JOIN waited USING ({KEYS}) LEFT JOIN ran USING ({KEYS}) ORDER BY {KEYS}
ON CONFLICT (day, {KEYS}) DO UPDATE SET
    {", ".join(f"{name} = excluded.{name}" for name in KEPT)}, updated_at = clock_timestamp()
WHERE ({", ".join(f"kept.{name}" for name in KEPT)}) IS DISTINCT FROM ({", ".join(f"excluded.{name}" for name in KEPT)})
"""  # noqa: S608 - written here
"""A row that has not changed is not written again: most of a day's have not, a minute later."""


async def keep_figures(db: Database, day: date) -> None:
    """Counts the tasks that were created on that day, and writes what has become of them so far."""
    await db.execute(KEEP, day, first_id_of(day), first_id_of(day + timedelta(days=1)))


async def between(
    db: Database, first: date, last: date, *, group_by: Sequence[str], owner: str | None
) -> list[Figures]:
    """The figures of these days, the latest first, for each of what is asked for: one user's, or everybody's."""
    groups = "".join(f", {name}" for name in GROUPS if name in group_by)

    def merged(column: str) -> str:
        return f"""
            SELECT day{groups}, jsonb_object_agg(step, tasks) AS {column} FROM (
                SELECT day{groups}, each.key AS step, sum(each.value::int) AS tasks
                FROM asked, jsonb_each_text(asked.{column}) AS each GROUP BY day{groups}, each.key
            ) AS steps GROUP BY day{groups}
        """  # noqa: S608 - names of our own

    return await fetch(
        db,
        Figures,
        f"""
        WITH asked AS (
            SELECT * FROM task_queue_metrics WHERE day BETWEEN $1 AND $2 AND ($3::text IS NULL OR user_id = $3)
        ), summed AS (
            SELECT day{groups}, sum(created)::bigint AS created, sum(completed)::bigint AS completed,
                   sum(failed)::bigint AS failed, sum(cancelled)::bigint AS cancelled,
                   (sum(latency_ms) / 1000.0 / nullif(sum(completed), 0))::float AS average_latency_seconds,
                   (sum(failed)::float / nullif(sum(completed + failed), 0)) AS error_rate,
                   (sum(heartbeat_delay_ms) / 1000.0 / nullif(sum(running), 0))::float AS heartbeat_delay_seconds,
                   sum(prompt_tokens)::bigint AS prompt_tokens, sum(completion_tokens)::bigint AS completion_tokens,
                   sum(cost_usd) AS cost_usd, sum(failed_cost_usd) AS failed_cost_usd, max(updated_at) AS updated_at
            FROM asked GROUP BY day{groups}
        ), waited AS ({merged("waits")}), ran AS ({merged("runs")})
        SELECT * FROM summed LEFT JOIN waited USING (day{groups}) LEFT JOIN ran USING (day{groups})
        ORDER BY day DESC{groups}
        """,  # noqa: S608 - names of our own
        first,
        last,
        owner,
    )


def document_of(row: Figures, group_by: Sequence[str]) -> dict[str, Any]:
    """A row as it goes out: `''` is none, and of the steps what they tell."""
    named = {name: row[name] or None for name in GROUPS if name in group_by}
    money = {name: None if row[name] is None else float(row[name]) for name in ("cost_usd", "failed_cost_usd")}
    return {
        "day": row.day,
        **named,
        **{name: row[name] for name in ("created", "completed", "failed", "cancelled")},
        **{name: row[name] for name in ("average_latency_seconds", "error_rate", "heartbeat_delay_seconds")},
        "wait_p50_seconds": percentile_of(row.waits, 0.5),
        "wait_p90_seconds": percentile_of(row.waits, 0.9),
        "run_p50_seconds": percentile_of(row.runs, 0.5),
        "run_p90_seconds": percentile_of(row.runs, 0.9),
        "prompt_tokens": row.prompt_tokens,
        "completion_tokens": row.completion_tokens,
        **money,
        "updated_at": row.updated_at,
    }
