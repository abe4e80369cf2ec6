"""Projects of the edition before: no end of a run is lost by the upgrade."""

import asyncio
import json
from uuid import UUID

from tests.support.engine.projects import Project, an_item
from tests.support.engine.store import an_engine
from tests.support.older_build import OlderBuild
from tests.support.servers.databases import ask
from windlass.shared import db
from windlass.shared.migrations.runner import migrate

LEAVE_UNTOLD = """
INSERT INTO untold (subject, task_id, seq, move, error)
SELECT 'run', task_id, last_seq, jsonb_build_object(
    'task_id', task_id, 'seq', last_seq, 'life', life, 'concerns', 1, 'move', 'cancel', 'status', status,
    'at', completed_at), 'refused'
FROM tasks WHERE task_id = $1
"""


def test_ends_before_an_upgrade_are_followed(empty_database_url: str, older_build: OlderBuild) -> None:
    url, old = empty_database_url, older_build.schema
    older_build.migrate(url)
    untold, unnoticed, ended_by_newer = projects = [loop_of(url, old) for _ in range(3)]
    tasks = {project: task_of(url, project) for project in projects}
    for project in (untold, unnoticed):
        ask(url, "UPDATE tasks SET concerns = 0 WHERE task_id = $1", tasks[project])
        ask(url, f"SELECT 1 FROM {old}.cancel_tasks(ARRAY[$1::uuid])", tasks[project])
        ask(url, "UPDATE tasks SET concerns = 1 WHERE task_id = $1", tasks[project])
    ask(url, LEAVE_UNTOLD, tasks[untold])
    asyncio.run(migrate(url))

    async def follow() -> None:
        async with an_engine(url) as engine:
            for project_id in (untold, unnoticed):
                project = Project(engine, project_id)
                assert await project.state() == ("idle", "stopped")
                assert await project.ends() == ["cancelled"]
            project = Project(engine, ended_by_newer)
            await project.finish()
            assert await project.ends() == ["completed", "running"]

    asyncio.run(follow())


def test_items_lose_the_level_that_an_older_edition_stored(empty_database_url: str, older_build: OlderBuild) -> None:
    url = empty_database_url
    older_build.migrate(url)
    loop_of(url, older_build.schema)
    ask(url, """UPDATE project_items SET task = task || '{"level": 3}' WHERE title = 'two'""")
    (before,) = ask(url, "SELECT task - 'level' AS task FROM project_items WHERE title = 'two'")
    asyncio.run(migrate(url))
    assert ask(url, "SELECT task FROM project_items WHERE title = 'two'") == [before]


def loop_of(url: str, old: str) -> UUID:
    """A project of the older edition with three items, which loops."""
    wanted = {"task_id": str(an_item("")["item_id"]), "user_id": "ann", "name": "site", "defaults": {}}
    document = json.dumps({**wanted, "on_failure": "stop", "idempotency_ttl_seconds": 60})
    (row,) = ask(url, f"SELECT project_id FROM {old}.create_project($1::text::jsonb)", document)
    items = db.as_json([an_item(title) for title in ("one", "two", "three")])
    ask(url, f"SELECT {old}.add_items($1, $2::text::jsonb)", row["project_id"], items)
    ask(url, f"SELECT * FROM {old}.start_project($1, 'loop', NULL)", row["project_id"])
    return UUID(str(row["project_id"]))


def task_of(url: str, project_id: UUID) -> UUID:
    (row,) = ask(url, "SELECT task_id FROM project_runs WHERE project_id = $1 AND ended_at IS NULL", project_id)
    return UUID(str(row["task_id"]))
