"""Daily figures per actor, kept so that they can be read without counting a day's tasks again."""

from datetime import UTC, date, datetime, time, timedelta
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.store.record import fetch
from windlass.shared.store.rows import TaskQueueMetricRow


def first_id_of(day: date) -> UUID:
    """Ids are UUIDv7 and begin with the millisecond, so a day is a range of the primary key."""
    return UUID(int=int(datetime.combine(day, time(), UTC).timestamp() * 1000) << 80)


async def keep_figures(db: Database, day: date) -> None:
    """Counts the tasks that were created on that day, and writes what has become of them so far."""
    await db.execute(
        """
        INSERT INTO task_queue_metrics (
            day, actor, created, completed, failed, average_latency_seconds, error_rate, heartbeat_delay_seconds)
        SELECT $1, actor, count(*),
               count(*) FILTER (WHERE status = 'completed'), count(*) FILTER (WHERE status = 'dead'),
               avg(extract(epoch FROM completed_at - created_at)) FILTER (WHERE status = 'completed'),
               avg((status = 'dead')::int) FILTER (WHERE status IN ('completed', 'dead')),
               avg(extract(epoch FROM clock_timestamp() - heartbeat_at)) FILTER (WHERE status = 'running')
        FROM tasks WHERE task_id >= $2 AND task_id < $3
        GROUP BY actor ORDER BY actor
        ON CONFLICT (day, actor) DO UPDATE SET
            created = excluded.created, completed = excluded.completed, failed = excluded.failed,
            average_latency_seconds = excluded.average_latency_seconds, error_rate = excluded.error_rate,
            heartbeat_delay_seconds = excluded.heartbeat_delay_seconds, updated_at = clock_timestamp()
        """,
        day,
        first_id_of(day),
        first_id_of(day + timedelta(days=1)),
    )


async def newest(db: Database, *, days: int) -> list[TaskQueueMetricRow]:
    """The figures of so many days, the latest first."""
    return await fetch(
        db,
        TaskQueueMetricRow,
        """
        SELECT day, actor, created, completed, failed, average_latency_seconds, error_rate, heartbeat_delay_seconds,
               updated_at
        FROM task_queue_metrics WHERE day > (clock_timestamp() AT TIME ZONE 'UTC')::date - $1::int
        ORDER BY day DESC, actor
        """,
        days,
    )
