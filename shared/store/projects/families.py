"""A task and its descendants, as text of SQL."""

from windlass.shared.sql_fragments import words
from windlass.shared.states import LIVE, TERMINAL


def family(root: str) -> str:
    """The beginning of a statement that reads `family(task_id)`. An ended task may have live children. Live and ended
    tasks are in different indexes."""
    return f"""
    WITH RECURSIVE family AS (
        SELECT {root} AS task_id
        UNION
        SELECT child.task_id FROM family CROSS JOIN LATERAL (
            SELECT t.task_id FROM tasks t WHERE t.parent_task_id = family.task_id AND t.status IN {words(LIVE)}
            UNION ALL
            SELECT t.task_id FROM tasks t WHERE t.parent_task_id = family.task_id AND t.status IN {words(TERMINAL)}
        ) AS child
    )"""  # noqa: S608 - a text of our own


def remains(root: str) -> str:
    """What is left of a run: live tasks of its family, and their jobs at providers, which Windlass cannot kill."""
    return f"""(
        {family(root)}
        SELECT jsonb_build_object(
            'still_running', coalesce(jsonb_agg(jsonb_build_object(
                'task_id', t.task_id, 'worker_id', t.worker_id, 'hostname', w.hostname,
                'since', coalesce(t.started_at, t.created_at),
                'why', CASE WHEN t.status <> 'running' THEN 'it waits, and is about to be cancelled'
                            WHEN t.lease_expires_at < clock_timestamp()
                            THEN 'its worker is not heard of any more; the janitor takes it back'
                            WHEN t.cancel_requested THEN 'its worker was told to stop it, and has not said that it did'
                            ELSE 'its worker is about to be told' END) ORDER BY t.task_id)
                FILTER (WHERE t.completed_at IS NULL), '[]'),
            'open_jobs', coalesce(jsonb_agg(jsonb_build_object(
                'task_id', t.task_id, 'provider', t.provider, 'provider_job_id', t.provider_job_id,
                'since', t.started_at) ORDER BY t.task_id) FILTER (WHERE t.job_open), '[]'))
        FROM family JOIN tasks t ON t.task_id = family.task_id LEFT JOIN workers w ON w.worker_id = t.worker_id
        WHERE t.completed_at IS NULL OR t.job_open
    )"""  # noqa: S608 - a text of our own
