"""Tags in a table of their own, where the tasks of each stand in the order of a list."""

from alembic import op

revision = "0007"
down_revision = "0006"

CHANGES = """
CREATE TABLE task_tags (
    tag VARCHAR NOT NULL,
    task_id UUID NOT NULL,
    CONSTRAINT task_tags_pkey PRIMARY KEY (tag, task_id)
);

INSERT INTO task_tags (tag, task_id) SELECT DISTINCT tag, task_id FROM tasks, unnest(tags) AS tag ORDER BY tag, task_id;

DROP INDEX tasks_finished_tags;
"""


def upgrade() -> None:
    for statement in CHANGES.split(";\n"):
        if statement.strip():
            op.execute(statement)
