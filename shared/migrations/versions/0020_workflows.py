"""Workflows: graphs of tasks that are counted, what stands for tasks that are not there yet, and who is asked."""

from alembic import op

from windlass.shared.workflow_states import STATUS_OF_COUNTS

revision = "0020"
down_revision = "0019"

STATUS_OF_NODE = (
    "CASE WHEN ended_as IS NOT NULL THEN ended_as"
    " WHEN expanded_at IS NULL THEN 'blocked'"
    " WHEN live > 0 THEN 'running'"
    " WHEN dead > 0 THEN 'dead'"
    " WHEN cancelled > 0 THEN 'cancelled'"
    " ELSE 'completed' END"
)

TASKS = """
ALTER TABLE tasks
    ADD COLUMN workflow_key varchar,
    ADD COLUMN approval jsonb,
    ADD COLUMN asked_at timestamptz,
    ADD COLUMN ask_expires_at timestamptz
"""

EDGES = """
ALTER TABLE task_dependencies
    ADD COLUMN met_on varchar DEFAULT 'completed' NOT NULL,
    ADD COLUMN by_node boolean DEFAULT false NOT NULL,
    ADD CONSTRAINT task_dependencies_met_on_check CHECK (met_on IN ('completed', 'ended'))
"""

WORKFLOWS = f"""
CREATE TABLE workflows (
    workflow_id uuid NOT NULL CONSTRAINT workflows_pkey PRIMARY KEY,
    user_id varchar NOT NULL,
    name varchar NOT NULL,
    status text GENERATED ALWAYS AS ({STATUS_OF_COUNTS}) STORED NOT NULL,
    tags text[] DEFAULT '{{}}' NOT NULL,
    failure_threshold integer,
    failures integer DEFAULT 0 NOT NULL,
    total integer DEFAULT 0 NOT NULL,
    live integer DEFAULT 0 NOT NULL,
    completed integer DEFAULT 0 NOT NULL,
    dead integer DEFAULT 0 NOT NULL,
    cancelled integer DEFAULT 0 NOT NULL,
    cancel_requested boolean DEFAULT false NOT NULL,
    unfinished boolean DEFAULT false NOT NULL,
    has_nodes boolean DEFAULT false NOT NULL,
    last_seq integer DEFAULT 1 NOT NULL,
    created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    resumed_at timestamptz,
    completed_at timestamptz,
    CONSTRAINT workflows_counts_check CHECK (
        failures >= 0 AND live >= 0 AND completed >= 0 AND dead >= 0 AND cancelled >= 0
        AND total = live + completed + dead + cancelled),
    CONSTRAINT workflows_failure_threshold_check CHECK (failure_threshold > 0)
)
"""

NODES = f"""
CREATE TABLE workflow_nodes (
    node_id uuid NOT NULL CONSTRAINT workflow_nodes_pkey PRIMARY KEY,
    workflow_id uuid NOT NULL,
    key varchar NOT NULL,
    source uuid NOT NULL,
    source_is_node boolean DEFAULT false NOT NULL,
    path varchar DEFAULT '' NOT NULL,
    template jsonb DEFAULT '{{}}'::jsonb NOT NULL,
    status text GENERATED ALWAYS AS ({STATUS_OF_NODE}) STORED NOT NULL,
    children integer,
    live integer DEFAULT 0 NOT NULL,
    completed integer DEFAULT 0 NOT NULL,
    dead integer DEFAULT 0 NOT NULL,
    cancelled integer DEFAULT 0 NOT NULL,
    ended_as varchar,
    error jsonb,
    ready_at timestamptz,
    expanded_at timestamptz,
    CONSTRAINT workflow_nodes_counts_check CHECK (live >= 0 AND completed >= 0 AND dead >= 0 AND cancelled >= 0),
    CONSTRAINT workflow_nodes_ended_as_check CHECK (ended_as IN ('dead', 'cancelled')),
    CONSTRAINT workflow_nodes_once_check CHECK (ended_as IS NULL OR expanded_at IS NULL)
)
"""

EVENTS = """
CREATE TABLE workflow_events (
    workflow_id uuid NOT NULL,
    seq integer NOT NULL,
    type varchar NOT NULL,
    at timestamptz DEFAULT clock_timestamp() NOT NULL,
    data jsonb DEFAULT '{}'::jsonb NOT NULL,
    said boolean DEFAULT false NOT NULL,
    CONSTRAINT workflow_events_pkey PRIMARY KEY (workflow_id, seq)
)
"""

INDEXES = (
    "CREATE INDEX workflows_user ON workflows (user_id, workflow_id)",
    "CREATE INDEX workflows_status ON workflows (status, workflow_id)",
    "CREATE INDEX workflows_status_user ON workflows (user_id, status, workflow_id)",
    "CREATE INDEX workflows_name ON workflows (name, workflow_id)",
    "CREATE INDEX workflows_tags ON workflows USING gin (tags)",
    "CREATE INDEX workflows_unfinished ON workflows (workflow_id) WHERE unfinished",
    "CREATE UNIQUE INDEX workflow_nodes_workflow_id_key_key ON workflow_nodes (workflow_id, key)",
    "CREATE INDEX workflow_nodes_source ON workflow_nodes (source)",
    """
    CREATE INDEX workflow_nodes_ready ON workflow_nodes (node_id)
    WHERE ready_at IS NOT NULL AND expanded_at IS NULL AND ended_as IS NULL
    """,
    "CREATE INDEX workflow_events_unsaid ON workflow_events (workflow_id, seq) WHERE NOT said",
    """
    CREATE UNIQUE INDEX tasks_workflow_key ON tasks (workflow_id, workflow_key) WHERE workflow_key IS NOT NULL
    """,
    "CREATE INDEX tasks_asked ON tasks (user_id, task_id) WHERE status = 'blocked' AND asked_at IS NOT NULL",
    """
    CREATE INDEX tasks_ask_expiring ON tasks (ask_expires_at)
    WHERE status = 'blocked' AND asked_at IS NOT NULL AND ask_expires_at IS NOT NULL
    """,
)


def upgrade() -> None:
    for statement in (TASKS, EDGES, WORKFLOWS, NODES, EVENTS, *INDEXES):
        op.execute(statement)
