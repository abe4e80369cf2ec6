"""The rules of the busiest tables as functions: a CHECK is parsed from its text in every statement that writes."""

from alembic import op

revision = "0028"
down_revision = "0027"

TASK = """CREATE FUNCTION is_sound_task(
    status text, lane text, lowest int, attempt int, unmet int, lease_expires_at timestamptz, claim_token uuid,
    worker_id text, completed_at timestamptz, result jsonb, error jsonb, held text[], held_at timestamptz,
    due_at timestamptz, available_at timestamptz, job_open boolean
)
RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN lowest >= 0 AND lane IN ('fresh', 'retry')
        AND CASE WHEN held_at IS NULL THEN due_at IS NULL AND held = '{}'
                 ELSE due_at IS NOT NULL AND held <> '{}' AND available_at = 'infinity' AND NOT job_open
                      AND status IN ('blocked', 'queued', 'retrying') END
        AND CASE status
            WHEN 'queued' THEN lease_expires_at IS NULL AND completed_at IS NULL AND result IS NULL AND unmet = 0
            WHEN 'running' THEN lease_expires_at IS NOT NULL AND claim_token IS NOT NULL AND worker_id IS NOT NULL
                 AND attempt > 0 AND completed_at IS NULL AND result IS NULL AND unmet = 0
            WHEN 'completed' THEN lease_expires_at IS NULL AND completed_at IS NOT NULL AND unmet = 0
            WHEN 'retrying' THEN lease_expires_at IS NULL AND completed_at IS NULL AND result IS NULL AND unmet = 0
            WHEN 'blocked' THEN lease_expires_at IS NULL AND completed_at IS NULL AND result IS NULL AND unmet > 0
            WHEN 'dead' THEN lease_expires_at IS NULL AND completed_at IS NOT NULL AND result IS NULL
                 AND error IS NOT NULL
            WHEN 'cancelled' THEN lease_expires_at IS NULL AND completed_at IS NOT NULL AND result IS NULL
            ELSE false END;
END $$"""

PROJECT = """CREATE FUNCTION is_sound_project(
    state text, mode text, on_failure text, stop_reason text, last_seq int, current_run_id uuid, forced_at timestamptz,
    started_at timestamptz, archived_at timestamptz
)
RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN state IN ('idle', 'running', 'stopping') AND on_failure IN ('stop', 'continue') AND last_seq >= 0
        AND (mode IS NULL OR mode IN ('single', 'loop'))
        AND (stop_reason IS NULL OR stop_reason IN ('finished', 'stopped', 'forced', 'failed'))
        AND (forced_at IS NULL OR state = 'stopping')
        AND CASE state WHEN 'idle' THEN current_run_id IS NULL
                       ELSE current_run_id IS NOT NULL AND mode IS NOT NULL AND started_at IS NOT NULL
                            AND archived_at IS NULL END;
END $$"""

RUN = """CREATE FUNCTION is_sound_run(state text, mode text, ended_at timestamptz, life int, attempts_before int)
RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN state IN ('running', 'completed', 'dead', 'cancelled', 'withdrawn', 'lost')
        AND mode IN ('single', 'loop') AND (state = 'running') = (ended_at IS NULL)
        AND life >= 1 AND attempts_before >= 0;
END $$"""

RULES = {
    "tasks": ("status", "lane", "counters", "lease", "terminal", "result", "dead", "unmet", "lives", "held"),
    "projects": ("state", "mode", "on_failure", "stop_reason", "queue", "last_seq"),
    "project_runs": ("state", "mode", "ended", "life"),
}

SOUND = {
    "tasks": """is_sound_task(
    status, lane,
    least(attempt, retry_count, max_retries, interrupt_count, stall_count, rate_limited_count, report_count, unmet,
          last_seq - 1, level, concerns, life - 1),
    attempt, unmet, lease_expires_at, claim_token, worker_id, completed_at, result, error, held,
    held_at, due_at, available_at, job_open)""",
    "projects": """is_sound_project(
    state, mode, on_failure, stop_reason, last_seq, current_run_id, forced_at, started_at, archived_at)""",
    "project_runs": "is_sound_run(state, mode, ended_at, life, attempts_before)",
}


def upgrade() -> None:
    for function in (TASK, PROJECT, RUN):
        op.execute(function)
    for table, rules in RULES.items():
        gone = ", ".join(f"DROP CONSTRAINT {table}_{rule}_check" for rule in rules)
        op.execute(f"ALTER TABLE {table} {gone}, ADD CONSTRAINT {table}_sound_check CHECK ({SOUND[table]})")
