"""The oldest schema that the api says it is ready on is one on which everything that it asks Postgres is answered."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
from alembic import command
from alembic.script import ScriptDirectory
from litestar import Litestar
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from tests.conftest import a_database
from tests.support.installation import KEY
from tests.support.servers.private_servers import Servers
from windlass.services.api.http.request_ids import identify_requests
from windlass.services.api.main import create_app
from windlass.services.api.operators.health import OLDEST_SUPPORTED_REVISION
from windlass.shared.migrations.runner import alembic_config
from windlass.shared.migrations.sets import install_functions
from windlass.shared.settings import Settings

PROBE = {"actor": "probe", "tags": ["red"], "dedupe_key": "once", "project_id": "p", "workflow_id": "w"}
FILTERS: list[dict[str, Any]] = [
    {"tag": ["red", "blue"], "status": ["queued", "dead"]},
    {"q": "boat", "full": "true"},
    {"actor": "probe", "provider": "probe", "user_id": "ann"},
    {"project_id": "p", "workflow_id": "w", "workflow_run_id": "r", "interaction_id": "i", "error_type": "TimedOut"},
    {"parent_task_id": str(uuid4()), "created_after": "2026-01-01T00:00:00Z", "updated_after": "2026-01-01T00:00:00Z"},
]


def revisions() -> Iterator[str]:
    """The newest first."""
    for script in ScriptDirectory.from_config(alembic_config()).walk_revisions():
        yield script.revision


async def bring_to(database_url: str, revision: str, *, with_functions: bool = True) -> None:
    def upgrade(connection: Connection) -> None:
        config = alembic_config()
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        if with_functions:
            install_functions(connection)

    engine = create_async_engine(database_url.replace("postgresql://", "postgresql+asyncpg://", 1))
    try:
        async with engine.begin() as connection:
            await connection.run_sync(upgrade)
    finally:
        await engine.dispose()


@asynccontextmanager
async def the_api(app: Litestar, *, patience_seconds: float) -> AsyncIterator[httpx.AsyncClient]:
    async with app.lifespan():
        # On a schema that lacks what it writes first it waits for the migration, and refuses what it is asked.
        await asyncio.wait({app.state.preparing}, timeout=patience_seconds)
        transport = httpx.ASGITransport(identify_requests(app), raise_app_exceptions=False)  # type: ignore[arg-type]
        headers = {"Authorization": f"Bearer {KEY}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://here", headers=headers) as client:
            yield client


def reads(app: Litestar, task_id: str) -> Iterator[str]:
    """Every GET that there is, about a task of ours, and about things that nobody has made."""
    ids = {"task_id": task_id, "bulk_id": str(uuid4()), "content_id": str(uuid4())}
    for path, operations in app.openapi_schema.to_schema()["paths"].items():
        # Health is judged by the revision itself, and a stream would not end.
        if "get" in operations and "stream" not in path and "health" not in path:
            for part in [part[1:-1] for part in path.split("/") if part.startswith("{")]:
                path = path.replace(f"{{{part}}}", ids.get(part, "probe"))  # noqa: PLW2901 - filled in step by step
            yield f"{path}?q=words" if path.endswith("/search") else path


async def failures_at(database_url: str, directory: Path, revision: str) -> list[str]:
    """What the api cannot do on a schema of this revision."""
    try:
        await bring_to(database_url, revision)
    except DBAPIError as error:
        return [f"its functions cannot be made: {error.orig}"]
    app = create_app(Settings(database_url=database_url, api_key=KEY, data_dir=directory))
    answers = []
    # Where it should become ready it is waited for; of an older one that would mean to wait for ever.
    patience = 60 if revision >= OLDEST_SUPPORTED_REVISION else 5
    async with the_api(app, patience_seconds=patience) as client:
        answers.append(await client.post("/api/v1/tasks", json=PROBE))
        task_id = answers[0].json().get("task_id", str(uuid4()))
        answers += [await client.post(f"/api/v1/tasks/{task_id}/{act}") for act in ("cancel", "retry")]
        bulk = {"action": "cancel", "filter": {"tag": ["red"]}, "dry_run": True}
        answers.append(await client.post("/api/v1/tasks/bulk", json=bulk))
        answers += [await client.get(path) for path in reads(app, task_id)]
        answers += [await client.get("/api/v1/tasks", params=filters) for filters in FILTERS]
        answers += [await client.get("/api/v1/queues/dlq", params={"tag": "red", "group_by": "error"})]
    assert len(answers) > 20, "else nothing was asked"
    assert not [each.text for each in answers if each.status_code == 422], "else something was not asked"
    return [
        f"{each.request.method} {each.request.url.path}: {each.text}"
        for each in answers
        # Before it has written its first key, which comes after what else it lacks, it lets nobody in.
        if each.status_code >= 500 or each.status_code == HTTPStatus.UNAUTHORIZED
    ]


def test_the_api_is_ready_on_the_oldest_schema_that_answers_all_it_asks_and_on_none_before_it(
    servers: Servers, tmp_path: Path
) -> None:
    oldest = None
    failures: list[str] = []
    for revision in revisions():
        with a_database(servers, "template1") as url:
            failures = asyncio.run(failures_at(url, tmp_path, revision))
        if failures:
            break
        oldest = revision
    assert oldest == OLDEST_SUPPORTED_REVISION, failures
