"""What every row of a busy table must be, as one function each: Postgres parses the text of a CHECK anew in every
statement that writes to its table, and of a function only once in a connection. See docs/decisions/0080."""

from sqlalchemy import DDL, event
from sqlmodel import SQLModel

from windlass.shared.project_states import Mode, OnFailure, QueueState, RunState, StopReason
from windlass.shared.sql_fragments import words
from windlass.shared.states import LIVE, Lane, State

WAITS = "lease_expires_at IS NULL AND completed_at IS NULL AND result IS NULL"
HAS_ENDED = "lease_expires_at IS NULL AND completed_at IS NOT NULL"

OF_STATES = {
    State.QUEUED: f"{WAITS} AND unmet = 0",
    State.RUNNING: "lease_expires_at IS NOT NULL AND claim_token IS NOT NULL AND worker_id IS NOT NULL"
    "\n                 AND attempt > 0 AND completed_at IS NULL AND result IS NULL AND unmet = 0",
    State.COMPLETED: f"{HAS_ENDED} AND unmet = 0",
    State.RETRYING: f"{WAITS} AND unmet = 0",
    State.BLOCKED: f"{WAITS} AND unmet > 0",
    State.DEAD: f"{HAS_ENDED} AND result IS NULL\n                 AND error IS NOT NULL",
    State.CANCELLED: f"{HAS_ENDED} AND result IS NULL",
}
"""What a task has and has not, by its state; those that most rows are in come first."""

CASES = "\n            ".join(f"WHEN '{state}' THEN {rule}" for state, rule in OF_STATES.items())

STANDING_STILL = tuple(state for state in LIVE if state is not State.RUNNING)

TASK = f"""CREATE FUNCTION is_sound_task(
    status text, lane text, lowest int, attempt int, unmet int, lease_expires_at timestamptz, claim_token uuid,
    worker_id text, completed_at timestamptz, result jsonb, error jsonb, held text[], held_at timestamptz,
    due_at timestamptz, available_at timestamptz, job_open boolean
)
RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN lowest >= 0 AND lane IN {words(Lane)}
        AND CASE WHEN held_at IS NULL THEN due_at IS NULL AND held = '{{}}'
                 ELSE due_at IS NOT NULL AND held <> '{{}}' AND available_at = 'infinity' AND NOT job_open
                      AND status IN {words(STANDING_STILL)} END
        AND CASE status
            {CASES}
            ELSE false END;
END $$"""

OF_A_TASK = """is_sound_task(
    status, lane,
    least(attempt, retry_count, max_retries, interrupt_count, stall_count, rate_limited_count, report_count, unmet,
          last_seq - 1, concerns, life - 1),
    attempt, unmet, lease_expires_at, claim_token, worker_id, completed_at, result, error, held,
    held_at, due_at, available_at, job_open)"""
"""None of its counters is below zero, and the numbers that count from one are not below one."""

PROJECT = f"""CREATE FUNCTION is_sound_project(
    state text, mode text, on_failure text, stop_reason text, last_seq int, current_run_id uuid, forced_at timestamptz,
    started_at timestamptz, archived_at timestamptz
)
RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN state IN {words(QueueState)} AND on_failure IN {words(OnFailure)} AND last_seq >= 0
        AND (mode IS NULL OR mode IN {words(Mode)})
        AND (stop_reason IS NULL OR stop_reason IN {words(StopReason)})
        AND (forced_at IS NULL OR state = 'stopping')
        AND CASE state WHEN 'idle' THEN current_run_id IS NULL
                       ELSE current_run_id IS NOT NULL AND mode IS NOT NULL AND started_at IS NOT NULL
                            AND archived_at IS NULL END;
END $$"""

OF_A_PROJECT = """is_sound_project(
    state, mode, on_failure, stop_reason, last_seq, current_run_id, forced_at, started_at, archived_at)"""

RUN = f"""CREATE FUNCTION is_sound_run(state text, mode text, ended_at timestamptz, life int, attempts_before int)
RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN state IN {words(RunState)}
        AND mode IN {words(Mode)} AND (state = 'running') = (ended_at IS NULL)
        AND life >= 1 AND attempts_before >= 0;
END $$"""

OF_A_RUN = "is_sound_run(state, mode, ended_at, life, attempts_before)"

for definition in (TASK, PROJECT, RUN):
    event.listen(SQLModel.metadata, "before_create", DDL(definition))  # type: ignore[no-untyped-call]
