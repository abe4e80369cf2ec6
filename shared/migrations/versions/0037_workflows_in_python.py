"""Workflows follow the outbox: the engine gets groups and barriers, and what earlier editions kept for them goes."""

from alembic import op

revision = "0037"
down_revision = "0036"

GROUPS = """
CREATE TABLE task_groups (
    group_id uuid NOT NULL CONSTRAINT task_groups_pkey PRIMARY KEY,
    is_closed boolean DEFAULT false NOT NULL,
    failure_limit integer,
    CONSTRAINT task_groups_failure_limit_check CHECK (failure_limit > 0)
)
"""

FAILURES = """
CREATE TABLE group_failures (
    group_id uuid NOT NULL,
    task_id uuid NOT NULL,
    life integer NOT NULL,
    CONSTRAINT group_failures_pkey PRIMARY KEY (group_id, task_id, life)
)
"""

BARRIERS = """
CREATE TABLE barriers (
    barrier_id uuid NOT NULL CONSTRAINT barriers_pkey PRIMARY KEY,
    group_id uuid NOT NULL,
    key varchar NOT NULL,
    status text DEFAULT 'blocked' NOT NULL,
    members integer,
    source uuid NOT NULL,
    source_is_barrier boolean DEFAULT false NOT NULL,
    path varchar DEFAULT '' NOT NULL,
    CONSTRAINT barriers_status_check CHECK (
        status IN ('blocked', 'queued', 'running', 'retrying', 'completed', 'dead', 'cancelled')),
    CONSTRAINT barriers_members_check CHECK (members >= 0)
)
"""

FILLED = (
    "INSERT INTO task_groups SELECT workflow_id, cancel_requested, failure_threshold FROM workflows",
    """
    INSERT INTO barriers (barrier_id, group_id, key, status, members, source, source_is_barrier, path)
    SELECT node_id, workflow_id, key, status, CASE WHEN expanded_at IS NOT NULL THEN children END, source,
           source_is_node, path
    FROM workflow_nodes
    """,
    "UPDATE tasks SET group_id = workflow_id::uuid WHERE concerns & 2 <> 0 AND workflow_id IS NOT NULL",
)

COUNTED_FAILURES = """
WITH found AS (
    SELECT t.group_id, t.task_id, t.life, row_number() OVER (PARTITION BY t.group_id ORDER BY t.completed_at DESC) AS n
    FROM workflows w JOIN tasks t ON t.group_id = w.workflow_id AND t.workflow_id = w.workflow_id::text
    WHERE w.failures > 0 AND t.status = 'dead' AND t.error ->> 'type' <> 'DependencyFailed'
      AND NOT EXISTS (SELECT 1 FROM untold u WHERE u.task_id = t.task_id AND u.subject = 'workflow')
), kept AS (
    SELECT f.group_id, f.task_id, f.life FROM found f JOIN workflows w ON w.workflow_id = f.group_id
    WHERE f.n <= w.failures
)
INSERT INTO group_failures (group_id, task_id, life)
SELECT * FROM kept
UNION ALL
SELECT w.workflow_id, gen_random_uuid(), 1 FROM workflows w
CROSS JOIN LATERAL (SELECT count(*) AS tasks FROM kept k WHERE k.group_id = w.workflow_id) AS k
CROSS JOIN LATERAL generate_series(1, w.failures - k.tasks)
"""
"""As many as each workflow counts. A failure whose task was revived since has no row of its own: any id stands for
it."""

UNCOUNTED_FAILURES = """
INSERT INTO group_failures (group_id, task_id, life)
SELECT t.group_id, t.task_id, t.life FROM untold u JOIN tasks t ON t.task_id = u.task_id
JOIN workflows w ON w.workflow_id = t.group_id
WHERE u.subject = 'workflow' AND t.status = 'dead' AND t.error ->> 'type' <> 'DependencyFailed'
  AND t.completed_at > coalesce(w.resumed_at, '-infinity')
ON CONFLICT DO NOTHING
"""
"""Failures that the edition before could not count yet."""

SUBMISSION = """(each.submission - 'level' - 'depends_on_nodes') || jsonb_build_object('group_id', {group})
    || CASE WHEN each.submission ? 'depends_on_nodes'
            THEN jsonb_build_object('depends_on_barriers', each.submission -> 'depends_on_nodes') ELSE '{{}}' END"""


def prepared(table: str, column: str) -> str:
    """Workflows that schedules will start: their tasks name a group now."""
    group = f"{column} #> '{{workflow,workflow_id}}'"
    submission = SUBMISSION.format(group=group)
    template = submission.replace("each.submission", "(each.node -> 'template')")
    return f"""
    UPDATE {table} SET {column} = {column} || jsonb_build_object(
        'submissions', (
            SELECT coalesce(jsonb_agg({submission} ORDER BY each.place), '[]')
            FROM jsonb_array_elements({column} -> 'submissions') WITH ORDINALITY AS each(submission, place)),
        'nodes', (
            SELECT coalesce(jsonb_agg(
                each.node || jsonb_build_object('template', {template}) ORDER BY each.place), '[]')
            FROM jsonb_array_elements({column} -> 'nodes') WITH ORDINALITY AS each(node, place)))
    WHERE {column} ? 'workflow' AND {column} ? 'submissions'
    """  # noqa: S608 - names of our own


TEMPLATE = SUBMISSION.format(group="each.workflow_id").replace("each.submission", "each.template")
TEMPLATES = f"UPDATE workflow_nodes AS each SET template = {TEMPLATE}"  # noqa: S608 - a text of our own

MARKS = """
INSERT INTO outbox (feature, subject, move)
SELECT 'workflow', w.workflow_id, 'migrate' FROM workflows w
WHERE w.status IN ('running', 'escalated') OR w.unfinished OR w.workflow_id::text IN (
    SELECT t.workflow_id FROM untold u JOIN tasks t ON t.task_id = u.task_id WHERE u.subject = 'workflow')
"""
"""The orchestrator looks at each of them, and counts its tasks. Concurrency keys whose release was left untold are
rechecked by the janitor."""

STATEMENTS = (
    GROUPS,
    FAILURES,
    BARRIERS,
    "ALTER TABLE tasks ADD COLUMN group_id uuid",
    *FILLED,
    "CREATE UNIQUE INDEX barriers_key ON barriers (group_id, key)",
    COUNTED_FAILURES,
    UNCOUNTED_FAILURES,
    TEMPLATES,
    prepared("schedules", "prepared"),
    prepared("schedule_runs", "start"),
    MARKS,
    "ALTER TABLE task_dependencies RENAME COLUMN by_node TO by_barrier",
    """
    ALTER TABLE workflow_nodes
        DROP COLUMN status, DROP COLUMN key, DROP COLUMN source, DROP COLUMN source_is_node, DROP COLUMN path,
        DROP COLUMN children, DROP COLUMN live, DROP COLUMN completed, DROP COLUMN dead, DROP COLUMN cancelled,
        DROP COLUMN ended_as, DROP COLUMN ready_at, DROP COLUMN expanded_at
    """,
    "CREATE INDEX workflow_nodes_workflow ON workflow_nodes (workflow_id)",
    "DROP INDEX IF EXISTS workflows_unfinished",
    "ALTER TABLE workflows DROP COLUMN unfinished",
    "DROP INDEX IF EXISTS workflow_events_unsaid",
    "ALTER TABLE workflow_events DROP COLUMN said",
    "DROP TABLE untold",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
