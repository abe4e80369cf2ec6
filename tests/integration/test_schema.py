"""The schema: migrations make what the models declare, and the database refuses what must never be."""

import asyncio
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from alembic import command
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import create_async_engine
from sqlmodel import SQLModel

import windlass.shared.models  # noqa: F401 - declares the tables
from tests.support.engine.store import Engine, an_engine, on_the_engine
from windlass.shared.filters import Filter
from windlass.shared.migrations.runner import alembic_config, migrate, newest_revision
from windlass.shared.migrations.sets import install_functions, show_demand
from windlass.shared.store import functions
from windlass.shared.store.operating import queues, reports
from windlass.shared.store.reading import dead_letters

PROJECT = Path(__file__).parents[2]

CATALOGUE = {
    "columns": """
        SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attgenerated::text,
               a.attidentity::text, pg_get_expr(d.adbin, d.adrelid)
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND c.relname <> 'alembic_version'
        ORDER BY c.relname, a.attnum
    """,
    "constraints": """
        SELECT conrelid::regclass::text, conname, contype::text, pg_get_constraintdef(oid)
        FROM pg_constraint
        WHERE connamespace = 'public'::regnamespace AND conrelid::regclass::text <> 'alembic_version'
        ORDER BY 1, 2
    """,
    "indexes": """
        SELECT tablename, indexname, indexdef FROM pg_indexes
        WHERE schemaname = 'public' AND tablename <> 'alembic_version' ORDER BY 1, 2
    """,
    "storage": """
        SELECT relname, reloptions FROM pg_class
        WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> 'alembic_version' ORDER BY 1
    """,
    "statistics": """
        SELECT stxname, stxrelid::regclass::text, pg_get_statisticsobjdef_expressions(oid)
        FROM pg_statistic_ext ORDER BY 1
    """,
    "functions": """
        SELECT p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), l.lanname::text,
               p.provolatile::text, p.prosrc, n.nspname::text
        FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE n.nspname = 'public' OR n.nspname LIKE 'windlass%' ORDER BY 1, 2
    """,
    "views": """
        SELECT relname, pg_get_viewdef(oid), relacl::text FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind = 'v' ORDER BY 1
    """,
    "others": """
        SELECT relname, relkind::text FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind NOT IN ('r', 'i') ORDER BY 1
    """,
}


async def catalogue(database_url: str) -> dict[str, list[tuple[Any, ...]]]:
    connection = await asyncpg.connect(database_url)
    try:
        return {what: [tuple(row) for row in await connection.fetch(query)] for what, query in CATALOGUE.items()}
    finally:
        await connection.close()


async def create_from_models(database_url: str) -> None:
    engine = create_async_engine(database_url.replace("postgresql://", "postgresql+asyncpg://", 1))
    async with engine.begin() as connection:
        await connection.run_sync(SQLModel.metadata.create_all)
        await connection.run_sync(install_functions)
        await connection.run_sync(show_demand)
    await engine.dispose()


@pytest.mark.parametrize("what", CATALOGUE)
def test_migrations_make_what_the_models_declare(what: str, database_url: str, empty_database_url: str) -> None:
    async def compare() -> None:
        await create_from_models(empty_database_url)
        migrated, declared = await catalogue(database_url), await catalogue(empty_database_url)
        assert migrated[what] == declared[what]
        assert what == "others" or migrated[what]

    asyncio.run(compare())


def test_migrating_twice_is_harmless(database_url: str) -> None:
    async def again() -> None:
        before = await catalogue(database_url)
        async with an_engine(database_url) as engine:
            task_id = await engine.submit()
            await migrate(database_url)
            assert await engine.status(task_id) == "queued"
            assert await reports.schema(engine.pool) == reports.Schema(newest_revision(), has_functions=True)
            assert (await engine.start(task_id)).attempt == 1, "the functions work, also over connections from before"
        assert await catalogue(database_url) == before

    asyncio.run(again())


def test_several_may_migrate_at_the_same_time(database_url: str, empty_database_url: str) -> None:
    async def together() -> None:
        await asyncio.gather(*(migrate(empty_database_url) for _ in range(3)))
        assert await catalogue(empty_database_url) == await catalogue(database_url)

    asyncio.run(together())


def test_before_the_first_migration_there_is_no_revision(empty_database_url: str) -> None:
    async def ask() -> None:
        pool = await asyncpg.create_pool(empty_database_url, min_size=0, max_size=1)
        assert await reports.schema(pool) == reports.Schema(None, has_functions=False)
        await pool.close()

    asyncio.run(ask())


LONGEST_CHECKS = 6000
"""Characters of a table's rules, as Postgres stores them; each thousand takes some three microseconds a statement."""

NOW = datetime.now(UTC)
SAME = uuid4()
A_TASK = {"task_id": uuid4(), "actor": "probe", "provider": "probe", "status": "queued", "timeout_seconds": 1.0,
          "user_id": "ann"}  # fmt: skip
A_RUNNING_TASK = {**A_TASK, "status": "running", "lease_expires_at": NOW, "claim_token": uuid4(), "worker_id": "w",
                  "attempt": 1}  # fmt: skip
A_HELD_TASK = {**A_TASK, "held": ["workflow"], "held_at": NOW, "due_at": NOW,
               "available_at": datetime.max.replace(tzinfo=UTC)}  # fmt: skip
A_RUN = {"run_id": uuid4(), "project_id": uuid4(), "item_id": uuid4(), "task_id": uuid4(), "life": 1, "mode": "loop"}
BUSY = {"state": "running", "mode": "loop", "current_run_id": uuid4(), "started_at": NOW}
GOOD_ROWS: dict[str, dict[str, Any]] = {
    "tasks": A_TASK,
    "task_events": {"task_id": uuid4(), "seq": 1, "type": "submit", "attempt": 0},
    "task_dependencies": {"parent_id": uuid4(), "child_id": uuid4()},
    "providers": {"name": "somebody", "actor": "probe"},
    "actors": {"name": "probe"},
    "global_subscriptions": {"bits": 0},
    "submission_keys": {"user_id": "ann", "kind": "dedupe", "key": "k", "task_id": uuid4()},
    "generations": {
        "generation_id": uuid4(),
        "task_id": uuid4(),
        "attempt": 1,
        "user_id": "ann",
        "provider": "leonardo",
        "operation": "txt2img",
        "status": "intended",
        "callback_hash": b"1",
    },
    "contents": {
        "content_id": uuid4(),
        "generation_id": uuid4(),
        "index": 0,
        "provider_url": "http://there",
        "size_bytes": 1,
        "media_type": "image/png",
        "extension": "png",
        "place": "here",
        "sha256": "0",
    },
    "bulk_jobs": {"bulk_id": uuid4(), "action": "retry", "user_id": "ann", "matched": 1},
    "workers": {"worker_id": "w", "hostname": "h", "pid": 1, "queues": [], "capacity": 1},
    "service_reports": {"service": "janitor", "instance_id": "j", "healthy": True},
    "api_keys": {"key_id": "k", "secret_hash": b"", "role": "admin", "user_id": "root"},
    "projects": {"project_id": uuid4(), "user_id": "ann", "name": "site"},
    "project_items": {"item_id": uuid4(), "project_id": uuid4(), "position": 1024},
    "project_runs": A_RUN,
    "agent_events": {
        "event_id": uuid4(),
        "task_id": uuid4(),
        "life": 1,
        "attempt": 1,
        "user_id": "ann",
        "actor": "agent",
        "provider": "local",
        "status": "dead",
        "title": "",
        "text": "",
    },
    "embedding_models": {"model_id": uuid4(), "name": "wide", "provider": "vectors", "dimensions": 8},
    "embedding_jobs": {"job_id": uuid4(), "model_id": uuid4(), "task_id": uuid4(), "event_ids": []},
    "project_events": {"project_id": uuid4(), "seq": 1, "type": "start"},
    "workflows": {"workflow_id": uuid4(), "user_id": "ann", "name": "report"},
    "task_groups": {"group_id": uuid4()},
    "group_failures": {"group_id": uuid4(), "task_id": uuid4(), "life": 1},
    "barriers": {"barrier_id": uuid4(), "group_id": uuid4(), "key": "pages", "source": uuid4()},
    "workflow_nodes": {"node_id": uuid4(), "workflow_id": uuid4(), "template": "{}"},
    "webhooks": {"webhook_id": uuid4(), "user_id": "ann", "url": "https://example.org/", "secret": b"sealed"},
    "deliveries": {
        "delivery_id": uuid4(),
        "webhook_id": uuid4(),
        "body_id": 1,
        "type": "task.dead",
        "subject": "x",
        "seq": 1,
        "task_id": uuid4(),
    },
    "schedules": {
        "schedule_id": uuid4(),
        "user_id": "ann",
        "name": "nightly",
        "every_seconds": 60,
        "kind": "task",
        "overlap": "skip",
        "catch_up": "latest",
        "catch_up_window_seconds": 3600.0,
        "jitter_seconds": 0.0,
    },
    "schedule_runs": {"schedule_id": uuid4(), "due_at": NOW, "outcome": "missed", "cause": "time"},
}
BAD_ROWS: list[tuple[str, dict[str, Any]]] = [
    ("tasks_sound_check", {"status": "sleeping"}),
    ("tasks_sound_check", {"lane": "middle"}),
    ("tasks_priority_check", {"priority": 10}),
    ("tasks_priority_check", {"priority": -1}),
    ("tasks_sound_check", {"attempt": -1}),
    ("tasks_sound_check", {"retry_count": -1}),
    ("tasks_sound_check", {"max_retries": -1}),
    ("tasks_sound_check", {"interrupt_count": -1}),
    ("tasks_sound_check", {"stall_count": -1}),
    ("tasks_sound_check", {"rate_limited_count": -1}),
    ("tasks_sound_check", {"report_count": -1}),
    ("tasks_sound_check", {"last_seq": 0}),
    ("tasks_timeout_check", {"timeout_seconds": 0.0}),
    ("tasks_sound_check", {"lease_expires_at": NOW}),
    ("tasks_sound_check", {**A_RUNNING_TASK, "lease_expires_at": None}),
    ("tasks_sound_check", {**A_RUNNING_TASK, "claim_token": None}),
    ("tasks_sound_check", {**A_RUNNING_TASK, "worker_id": None}),
    ("tasks_sound_check", {**A_RUNNING_TASK, "attempt": 0}),
    ("tasks_sound_check", {"completed_at": NOW}),
    ("tasks_sound_check", {"status": "completed"}),
    ("tasks_sound_check", {"status": "cancelled"}),
    ("tasks_sound_check", {"status": "dead", "error": "{}"}),
    ("tasks_sound_check", {"result": "1"}),
    ("tasks_sound_check", {"status": "dead", "completed_at": NOW, "error": "{}", "result": "1"}),
    ("tasks_sound_check", {"status": "dead", "completed_at": NOW}),
    ("tasks_sound_check", {"unmet": 1}),
    ("tasks_sound_check", {"status": "blocked", "unmet": 0}),
    ("tasks_sound_check", {**A_RUNNING_TASK, "unmet": 1}),
    ("tasks_sound_check", {**A_RUNNING_TASK, "completed_at": NOW}),
    ("tasks_sound_check", {**A_RUNNING_TASK, "result": "1"}),
    ("tasks_sound_check", {"status": "completed", "completed_at": NOW, "unmet": 1}),
    ("tasks_sound_check", {"status": "cancelled", "completed_at": NOW, "result": "1"}),
    ("tasks_sound_check", {"status": "cancelled", "completed_at": NOW, "lease_expires_at": NOW}),
    ("tasks_sound_check", {"status": "retrying", "unmet": 1}),
    ("tasks_sound_check", {"status": "blocked", "unmet": 1, "result": "1"}),
    ("tasks_sound_check", {"life": 0}),
    ("tasks_sound_check", {"concerns": -1}),
    ("tasks_sound_check", {"held": ["workflow"]}),
    ("tasks_sound_check", {"due_at": NOW, "held_at": NOW}),
    ("tasks_sound_check", {"held": ["workflow"], "due_at": NOW, "held_at": NOW}),
    ("tasks_sound_check", {**A_HELD_TASK, "held_at": None}),
    ("tasks_sound_check", {**A_HELD_TASK, "job_open": True}),
    ("tasks_sound_check", {**A_HELD_TASK, "status": "cancelled", "completed_at": NOW}),
    ("task_events_seq_check", {"seq": 0}),
    ("task_dependencies_no_loop_check", {"parent_id": SAME, "child_id": SAME}),
    ("task_dependencies_met_on_check", {"parent_id": uuid4(), "met_on": "never"}),
    ("workflows_counts_check", {"workflow_id": uuid4(), "live": -1, "total": -1}),
    ("workflows_counts_check", {"workflow_id": uuid4(), "live": 1, "total": 2}),
    ("workflows_failure_threshold_check", {"workflow_id": uuid4(), "failure_threshold": 0}),
    ("task_groups_failure_limit_check", {"failure_limit": 0}),
    ("barriers_status_check", {"status": "sleeping"}),
    ("barriers_members_check", {"members": -1}),
    ("webhooks_state_check", {"webhook_id": uuid4(), "state": "tired"}),
    ("webhooks_scope_check", {"webhook_id": uuid4(), "scope": "some"}),
    ("deliveries_state_check", {"delivery_id": uuid4(), "state": "held"}),
    ("deliveries_delivered_check", {"delivery_id": uuid4(), "state": "delivered"}),
    ("providers_limit_check", {"configured_limit": -1}),
    ("providers_limit_check", {"limit_override": -1}),
    ("providers_retry_share_check", {"retry_share": 101}),
    ("providers_breaker_mode_check", {"breaker_mode": "ajar"}),
    ("providers_breaker_state_check", {"breaker_state": "ajar", "breaker_until": NOW}),
    ("providers_breaker_until_check", {"breaker_state": "open"}),
    ("providers_breaker_until_check", {"breaker_until": NOW}),
    ("providers_rate_window_check", {"rate_counts": [1]}),
    ("actors_concurrency_limit_check", {"concurrency_limit": 0}),
    ("submission_keys_kind_check", {"kind": "secret"}),
    ("generations_status_check", {"status": "lost"}),
    ("generations_job_check", {"status": "open"}),
    ("contents_numbers_check", {"size_bytes": -1}),
    ("bulk_jobs_action_check", {"action": "delete"}),
    ("bulk_jobs_state_check", {"state": "asleep"}),
    ("workers_state_check", {"state": "asleep"}),
    ("workers_capacity_check", {"capacity": 0}),
    ("service_reports_service_check", {"service": "api"}),
    ("api_keys_role_check", {"role": "god"}),
    ("projects_sound_check", {**BUSY, "state": "asleep"}),
    ("projects_sound_check", {"mode": "twice"}),
    ("projects_sound_check", {"on_failure": "weep"}),
    ("projects_sound_check", {"stop_reason": "bored"}),
    ("projects_sound_check", {"current_run_id": uuid4()}),
    ("projects_sound_check", {**BUSY, "current_run_id": None}),
    ("projects_sound_check", {**BUSY, "forced_at": NOW}),
    ("projects_sound_check", {**BUSY, "archived_at": NOW}),
    ("projects_sound_check", {**BUSY, "mode": None}),
    ("projects_sound_check", {**BUSY, "started_at": None}),
    ("projects_sound_check", {"forced_at": NOW}),
    ("projects_sound_check", {"last_seq": -1}),
    ("project_items_state_check", {"state": "running"}),
    ("project_runs_sound_check", {"state": "asleep", "ended_at": NOW}),
    ("project_runs_sound_check", {"mode": "twice"}),
    ("project_runs_sound_check", {"state": "dead"}),
    ("project_runs_sound_check", {"ended_at": NOW}),
    ("project_runs_sound_check", {"life": 0}),
    ("project_runs_sound_check", {"attempts_before": -1}),
    ("project_events_seq_check", {"seq": 0}),
    ("agent_events_status_check", {"status": "running"}),
    ("embedding_models_state_check", {"state": "asleep"}),
    ("embedding_models_dimensions_check", {"dimensions": 0}),
    ("embedding_jobs_state_check", {"state": "asleep"}),
    ("schedules_kind_check", {"kind": "party"}),
    ("schedules_overlap_check", {"overlap": "perhaps"}),
    ("schedules_catch_up_check", {"catch_up": "some"}),
    ("schedules_state_check", {"state": "asleep"}),
    ("schedules_rule_check", {"cron": "* * * * *"}),
    ("schedules_rule_check", {"every_seconds": 9}),
    ("schedules_pause_check", {"state": "paused"}),
    ("schedules_next_check", {"next_at": NOW, "deleted_at": NOW}),
    ("schedules_counters_check", {"failures": -1}),
    ("schedule_runs_outcome_check", {"outcome": "perhaps"}),
    ("schedule_runs_cause_check", {"cause": "whim"}),
    ("schedule_runs_count_check", {"count": 2}),
    ("schedule_runs_started_check", {"outcome": "started"}),
    ("schedule_runs_started_check", {"outcome": "waiting"}),
    ("schedule_runs_started_check", {"ended_at": NOW}),
    ("global_subscriptions_only_check", {"is_only": False}),
]


async def insert(connection: asyncpg.Connection, table: str, row: dict[str, Any]) -> None:
    values = ", ".join(f"${number}" for number, _ in enumerate(row, start=1))
    await connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({values})", *row.values())


def table_of(constraint: str) -> str:
    return max((table for table in GOOD_ROWS if constraint.startswith(f"{table}_")), key=len)


def test_the_database_refuses_every_row_that_must_never_be(database_url: str) -> None:
    async def try_them_all() -> None:
        connection = await asyncpg.connect(database_url)
        for table, row in GOOD_ROWS.items():
            await insert(connection, table, row)
        for task in (A_RUNNING_TASK, A_HELD_TASK):
            await insert(connection, "tasks", {**task, "task_id": uuid4()})
        for constraint, change in BAD_ROWS:
            table = table_of(constraint)
            with pytest.raises(asyncpg.CheckViolationError) as refused:
                await insert(connection, table, {**GOOD_ROWS[table], **change})
            assert refused.value.constraint_name == constraint, change
        await connection.close()

    asyncio.run(try_them_all())


@on_the_engine
async def test_every_check_of_the_database_is_tried_above(engine: Engine) -> None:
    rows = await engine.pool.fetch(
        "SELECT conname FROM pg_constraint WHERE contype = 'c' AND connamespace = 'public'::regnamespace"
    )
    assert {row["conname"] for row in rows} == {constraint for constraint, _ in BAD_ROWS}


@on_the_engine
async def test_what_is_parsed_in_every_statement_on_a_busy_table_is_short(engine: Engine) -> None:
    """Of a CHECK Postgres keeps no more than its text. A function's it keeps, in each connection."""
    rows = await engine.pool.fetch(
        """
        SELECT conrelid::regclass::text AS name, sum(length(conbin::text)) AS characters FROM pg_constraint
        WHERE contype = 'c' AND conrelid = ANY ('{tasks,projects,project_runs}'::regclass[]) GROUP BY 1
        """
    )
    assert {row["name"]: row["characters"] < LONGEST_CHECKS for row in rows} == dict.fromkeys(
        ("tasks", "projects", "project_runs"), True
    )


def assignments_of_status(text: str) -> list[str]:
    """The SET lists of updates of `tasks`, and the inserts into it, that give a status."""
    sets = re.findall(
        r"UPDATE\s+tasks\b(?:\s+\w+)?\s+SET\b(.*?)(?:\bWHERE\b|\bFROM\b|\bRETURNING\b|;|$)", text, re.DOTALL
    )
    return [each for each in sets if re.search(r"(?<![.\w])status\s*=", each)] + re.findall(
        r"INSERT\s+INTO\s+tasks\b", text
    )


def test_status_is_assigned_in_the_store_s_functions_and_nowhere_else() -> None:
    within = [path for path in functions.files() if assignments_of_status(path.read_text())]
    assert len(within) >= 8, "else the search would find nothing anywhere"
    elsewhere = [
        path.relative_to(PROJECT)
        for folder in ("shared", "services")
        for path in (PROJECT / folder).rglob("*")
        if path.suffix in {".py", ".sql"} and not path.is_relative_to(functions.FOLDER.resolve())
        if assignments_of_status(path.read_text())
    ]
    assert elsewhere == []


def test_what_had_ended_before_is_counted_after_the_second_revision(empty_database_url: str) -> None:
    def to_the_first(connection: Connection) -> None:
        config = alembic_config()
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")

    async def from_one_to_the_newest() -> None:
        engine = create_async_engine(empty_database_url.replace("postgresql://", "postgresql+asyncpg://", 1))
        async with engine.begin() as connection:
            await connection.run_sync(to_the_first)
        await engine.dispose()
        old = await asyncpg.connect(empty_database_url)
        died = {"status": "dead", "completed_at": NOW, "error": '{"type": "NotFound", "message": "no job 17"}'}
        for change in ({}, {"status": "completed", "completed_at": NOW}, died, died):
            await insert(old, "tasks", {**A_TASK, "task_id": uuid4(), **change})
        await old.close()

        await migrate(empty_database_url)
        async with an_engine(empty_database_url) as now:
            _, states = await queues.status(now.pool, user_id=None, heard_within_seconds=30)
            assert {state: number for state, number in states.items() if number} == {
                "queued": 1,
                "completed": 1,
                "dead": 2,
            }
            (group,) = await dead_letters.group_by_error(now.pool, Filter(), owner=None, limit=10)
            assert (group["fingerprint"], group["count"]) == ("NotFound: no job #", 2)

    asyncio.run(from_one_to_the_newest())
