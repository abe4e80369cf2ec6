"""Actors of the user's own: what each version takes, who runs which, and the steps that need not be done again."""

from alembic import op

revision = "0013"
down_revision = "0012"

ACTOR_VERSIONS = """
CREATE TABLE actor_versions (
    actor varchar NOT NULL,
    version varchar NOT NULL,
    definition jsonb DEFAULT '{}'::jsonb NOT NULL,
    registered_at timestamptz,
    created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT actor_versions_pkey PRIMARY KEY (actor, version)
)
"""

WORKERS = """
ALTER TABLE workers
    ADD COLUMN actor_versions jsonb DEFAULT '{}'::jsonb NOT NULL,
    ADD COLUMN broken jsonb DEFAULT '{}'::jsonb NOT NULL
"""

TASK_STEPS = """
CREATE TABLE task_steps (
    task_id uuid NOT NULL,
    name varchar NOT NULL,
    attempt integer NOT NULL,
    result jsonb,
    elapsed_ms bigint NOT NULL,
    created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT task_steps_pkey PRIMARY KEY (task_id, name)
)
"""

TASK_CHILDREN = """
CREATE TABLE task_children (
    task_id uuid NOT NULL,
    place varchar NOT NULL,
    child_id uuid NOT NULL,
    life integer NOT NULL,
    CONSTRAINT task_children_pkey PRIMARY KEY (task_id, place)
)
"""

TASKS_BY_TYPE = """
CREATE INDEX tasks_finished_type ON tasks (status, task_type, task_id)
WHERE status IN ('completed', 'dead', 'cancelled') AND task_type IS NOT NULL
"""

TASKS_BY_AGENT = """
CREATE INDEX tasks_finished_agent ON tasks (status, (payload ->> 'subagent_type'), task_id)
WHERE status IN ('completed', 'dead', 'cancelled') AND actor = 'agent'
"""


def upgrade() -> None:
    for statement in (ACTOR_VERSIONS, WORKERS, TASK_STEPS, TASK_CHILDREN, TASKS_BY_TYPE, TASKS_BY_AGENT):
        op.execute(statement)
