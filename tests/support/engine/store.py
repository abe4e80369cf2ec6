"""The store on a real database, with short ways to say what a test means."""

import asyncio
import functools
import inspect
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID, uuid4

import asyncpg
from sqlmodel import SQLModel
from uuid_utils.compat import uuid7

import windlass.shared.models  # noqa: F401 - declares the tables
from tests.support.servers.databases import create_database, execute
from tests.support.servers.private_servers import Servers
from windlass.shared import db
from windlass.shared.features.projects import operations as projects
from windlass.shared.settings import Settings
from windlass.shared.store import tasks
from windlass.shared.store.flow_control.flow import Rules
from windlass.shared.store.operating import workers
from windlass.shared.store.record import fetch
from windlass.shared.store.rows import TaskEventRow, TaskRow
from windlass.shared.store.tasks import Claim, Claimed, Ending, Refused, Report, Submission

CONNECTIONS = 12
RULES = Rules.of(Settings())
ENDS = [("complete", "completed"), ("retry", "retrying"), ("bury", "dead"), ("interrupt", "queued")]
A_FAILURE = {
    "type": "ServiceUnavailable",
    "kind": "transient",
    "message": "busy",
    "details": {},
    "stack_trace": "Traceback: …",
    "attempt": 1,
}


def on_the_engine(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Runs an async test whose first argument is an engine on an empty database."""
    signature = inspect.signature(test)

    @functools.wraps(test)
    def run(servers: Servers, migrated_template: str, **arguments: Any) -> None:
        url = empty_database(servers.database_url, migrated_template)

        async def on_an_empty_database() -> None:
            async with an_engine(url) as engine:
                await test(engine, **arguments)

        asyncio.run(on_an_empty_database())

    del run.__wrapped__  # pytest would look for the fixtures of the test inside
    run.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[
            *(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in ("servers", "migrated_template")),
            *(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in list(signature.parameters.values())[1:]),
        ]
    )
    return run


def empty_database(server_url: str, template: str) -> str:
    """One database for all these tests, emptied for each: there are hundreds, and making a new one takes its time."""
    url = the_database(server_url, template)
    execute(url, "; ".join(f"DELETE FROM {table}" for table in SQLModel.metadata.tables))
    return url


@functools.cache
def the_database(server_url: str, template: str) -> str:
    create_database(server_url, "engine", template)
    return urlunsplit(urlsplit(server_url)._replace(path="/engine"))


@asynccontextmanager
async def an_engine(database_url: str) -> AsyncIterator["Engine"]:
    pool = await db.open_pool(Settings(database_url=database_url), "test", most=CONNECTIONS)
    try:
        engine = Engine(database_url, pool)
        await engine.provide("probe", limit=None)
        yield engine
    finally:
        await pool.close()


class Engine:
    """Several open connections to one database, and what workers, clients and operators do through them."""

    def __init__(self, database_url: str, pool: asyncpg.Pool) -> None:
        self.database_url = database_url
        self.pool = pool
        self._report_numbers = itertools.count(1)

    # What clients and operators do

    async def submit(self, **fields: Any) -> UUID:
        (row,) = await tasks.submit(self.pool, [a_submission(**fields)])
        task_id: UUID = row["task_id"]
        return task_id

    async def submit_many(self, number: int, **fields: Any) -> list[UUID]:
        """In the order of their age."""
        rows = await tasks.submit(self.pool, [a_submission(**fields) for _ in range(number)])
        return [row["task_id"] for row in rows]

    async def cancel(self, task_id: UUID) -> str:
        row = await tasks.cancel(self.pool, task_id)
        assert row is not None
        return str(row["status"])

    async def revive(self, task_id: UUID) -> str:
        """As the api does: the task of a run is revived through its project."""
        row = await tasks.revive(self.pool, task_id)
        assert row is not None
        if row.is_owned:
            await projects.revive(self.pool, UUID(row.project_id), task_id)
        return await self.status(task_id)

    async def provide(self, name: str, *, limit: int | None, actors: Sequence[str] = ("probe",)) -> None:
        """A provider for probes, or for these actors' tasks, or another limit for it."""
        await self.sql(
            """
            INSERT INTO providers (name, actor, configured_limit) VALUES ($1, $3, $2)
            ON CONFLICT (name) DO UPDATE SET configured_limit = $2
            """,
            name,
            limit,
            actors[0],
        )
        await self.sql(
            """
            INSERT INTO queues (queue, provider, actor)
            SELECT actor || '.' || $1, $1, actor FROM unnest($2::text[]) AS actor
            ON CONFLICT (queue) DO NOTHING
            """,
            name,
            list(actors),
        )

    # What workers do

    async def claim(
        self,
        task_id: UUID,
        *,
        token: UUID | None = None,
        worker: str = "worker-1",
        lease_seconds: float = 30,
        alone: bool = False,
    ) -> Claimed | Refused:
        claim = Claim(task_id, token or uuid4())
        (answer,) = await tasks.claim(self.pool, worker, [claim], lease_seconds, alone=alone)
        return answer

    async def start(
        self, task_id: UUID, *, worker: str = "worker-1", lease_seconds: float = 30, alone: bool = False
    ) -> Claimed:
        """A claim that has to be granted."""
        answer = await self.claim(task_id, worker=worker, lease_seconds=lease_seconds, alone=alone)
        assert isinstance(answer, Claimed), answer
        return answer

    async def running(self, *, worker: str = "worker-1", **fields: Any) -> Claimed:
        """A task that somebody runs."""
        return await self.start(await self.submit(**fields), worker=worker)

    async def finish(self, attempt: Claimed, transition: str = "complete", **fields: Any) -> str | None:
        (status,) = await tasks.end(self.pool, [an_ending(attempt, transition, **fields)], RULES)
        return status

    async def completed(self, **fields: Any) -> UUID:
        attempt = await self.running(**fields)
        assert await self.finish(attempt) == "completed"
        return attempt.task_id

    async def dead(self, **fields: Any) -> UUID:
        attempt = await self.running(**fields)
        assert await self.finish(attempt, "bury") == "dead"
        return attempt.task_id

    async def say(self, attempt: Claimed, **fields: Any) -> bool:
        """Whether a report was heard; one that somebody is in the way of is offered again."""
        fields.setdefault("number", next(self._report_numbers))
        report = Report(attempt.task_id, attempt.attempt, attempt.claim_token, **fields)
        heard = await tasks.report(self.pool, [report])
        return await self.say(attempt, **fields) if heard.skipped else heard.kept == {attempt.task_id}

    async def renew(self, *attempts: Claimed, lease_seconds: float = 30) -> list[tuple[bool, bool]]:
        """Whether each one still owns its task, and whether it is to be cancelled."""
        held = {attempt.claim_token: attempt.task_id for attempt in attempts}
        rows = await workers.renew(self.pool, "worker-1", held, lease_seconds)
        answers = {row["claim_token"]: (row["owned"], row["cancel_requested"]) for row in rows}
        return [answers[attempt.claim_token] for attempt in attempts]

    # What time does

    async def lapse(self, *task_ids: UUID, seconds_ago: float = 1) -> None:
        """Their leases ran out so long ago."""
        await self.sql(
            """
            UPDATE tasks SET lease_expires_at = clock_timestamp() - make_interval(secs => $2)
            WHERE task_id = ANY ($1)
            """,
            list(task_ids),
            seconds_ago,
        )

    async def outlive(self, *task_ids: UUID) -> None:
        """They have grown too old to start."""
        await self.sql(
            "UPDATE tasks SET expires_at = clock_timestamp() - interval '1 s' WHERE task_id = ANY ($1)", list(task_ids)
        )

    async def become_due(self, *task_ids: UUID) -> None:
        await self.sql("UPDATE tasks SET available_at = clock_timestamp() WHERE task_id = ANY ($1)", list(task_ids))

    # What a reader sees

    async def row(self, task_id: UUID) -> TaskRow:
        row = await tasks.get(self.pool, task_id)
        assert row is not None
        return row

    async def status(self, task_id: UUID) -> str:
        return str((await self.row(task_id))["status"])

    async def statuses(self, task_ids: list[UUID]) -> list[str]:
        return [await self.status(task_id) for task_id in task_ids]

    async def history(self, task_id: UUID) -> list[TaskEventRow]:
        return await fetch(
            self.pool, TaskEventRow, "SELECT * FROM task_events WHERE task_id = $1 ORDER BY seq", task_id
        )

    async def story(self, task_id: UUID) -> list[str]:
        return [event["type"] for event in await self.history(task_id)]

    async def count(self, condition: str) -> int:
        number: int = await self.pool.fetchval(f"SELECT count(*) FROM tasks WHERE {condition}")
        return number

    # What a test forces

    async def sql(self, statement: str, *arguments: Any) -> None:
        await self.pool.execute(statement, *arguments)

    @asynccontextmanager
    async def holding(self, statement: str, *arguments: Any) -> AsyncIterator[asyncpg.Connection]:
        """An open transaction of somebody's that has run a statement, and keeps its locks until the block ends, however
        long that takes."""
        for_ever = {"idle_in_transaction_session_timeout": "0"}
        connection = await asyncpg.connect(self.database_url, server_settings=for_ever)
        try:
            async with connection.transaction():
                await connection.execute(statement, *arguments)
                yield connection
        finally:
            await connection.close()

    async def be_connected(self, number: int) -> None:
        """So many connections are open: of those who are to wait for a lock at once, nobody waits for one before, while
        the patience of the others ends."""
        async with AsyncExitStack() as stack:
            for _ in range(number):
                await stack.enter_async_context(self.pool.acquire())

    async def until_waiting(self, number: int) -> None:
        """Until so many calls wait for a lock."""

        async def waiting() -> bool:
            found: int = await self.pool.fetchval(
                """
                SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND application_name LIKE 'windlass%' AND wait_event_type = 'Lock'
                """
            )
            return found == number

        await until(waiting)

    @asynccontextmanager
    async def listening(self, channel: str) -> AsyncIterator[list[str]]:
        """What is heard on a channel; whatever was sent inside the block has arrived when the block ends."""
        heard: list[str] = []
        connection = await asyncpg.connect(self.database_url)
        try:
            await connection.add_listener(
                channel, lambda _connection, _pid, _channel, payload: heard.append(str(payload))
            )
            yield heard
            await connection.execute("SELECT 1")
        finally:
            await connection.close()


async def until(condition: Callable[[], Awaitable[bool]], *, seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 - the condition is in Postgres
            await asyncio.sleep(0.002)


def a_submission(**fields: Any) -> Submission:
    """A probe of Ann's, unless the fields say otherwise."""
    usual = {"actor": "probe", "provider": "probe", "payload": {}, "user_id": "ann", "timeout_seconds": 300.0}
    return Submission(**{"task_id": uuid7(), **usual, **fields})


def an_ending(attempt: Claimed, transition: str, **fields: Any) -> Ending:
    if transition in {"retry", "bury"}:
        fields.setdefault("error", A_FAILURE)
    if transition == "retry":
        fields.setdefault("retry_cost", 1)
    fields.setdefault("concerns", attempt.concerns)
    return Ending(attempt.task_id, attempt.attempt, attempt.claim_token, transition, **fields)
