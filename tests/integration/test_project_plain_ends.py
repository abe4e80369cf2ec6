"""Projects cost a plain task nothing: its end reads no more and calls nothing more because they exist."""

import re

import asyncpg

from tests.support.engine.projects import Project
from tests.support.engine.store import RULES, Engine, an_ending, on_the_engine
from windlass.shared import db
from windlass.shared.store.functions import named
from windlass.shared.store.tasks import Claimed

CALLED = "SELECT funcname, calls FROM pg_stat_xact_user_functions WHERE calls > 0"
READ = """
SELECT relname FROM pg_stat_xact_user_tables
WHERE relname LIKE 'project%' AND seq_scan + coalesce(idx_scan, 0) + n_tup_ins + n_tup_upd > 0
"""
END = f"SELECT * FROM {named('end_tasks')}($1::text::jsonb, $2::text::jsonb)"


async def what_it_takes(engine: Engine, attempt: Claimed) -> tuple[set[str], set[str], int]:
    """The functions that an end calls, the tables of projects that it touches, and how many pages it reads."""
    connection = await asyncpg.connect(engine.database_url, server_settings={"track_functions": "all"})
    ending = (db.as_json([an_ending(attempt, "complete")]), db.as_json(RULES))
    explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {END}"
    pages = []
    try:
        for _ in range(6):  # when plans and pages are where they belong
            transaction = connection.transaction()
            await transaction.start()
            plan = await connection.fetchval(explain, *ending)
            called = {row["funcname"] for row in await connection.fetch(CALLED)}
            touched = {row["relname"] for row in await connection.fetch(READ)}
            await transaction.rollback()
            pages.append(sum(int(blocks) for blocks in re.findall(r"Shared (?:Hit|Read) Blocks\": (\d+)", plan)[:2]))
        return called, touched, min(pages)
    finally:
        await connection.close()


@on_the_engine
async def test_a_plain_end_reads_nothing_of_projects_however_many_there_are(engine: Engine) -> None:
    called, touched, pages = await what_it_takes(engine, await engine.running())
    assert touched == set()
    assert not {name for name in called if "project" in name or "subject" in name or "run" in name}
    for _ in range(20):
        project = await Project.made(engine, "one", "two")
        await project.start("loop")
    plain = await engine.running(project_id=str(project.project_id))
    called_among_many, touched, pages_among_many = await what_it_takes(engine, plain)
    assert (called_among_many, touched) == (called, set()), "the id of a project is a label to a plain task"
    assert pages_among_many <= pages + 6, "trees of twenty more tasks"


@on_the_engine
async def test_the_end_of_a_run_writes_one_row_and_reads_nothing_of_projects(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two")
    await project.start("loop")
    called, touched, _ = await what_it_takes(engine, await project.claimed())
    assert "write_outbox" in called
    assert touched == set()


@on_the_engine
async def test_a_look_at_projects_is_seen_by_the_same_measure(engine: Engine) -> None:
    project = await Project.made(engine, "one")
    connection = await asyncpg.connect(engine.database_url)
    try:
        async with connection.transaction():
            await connection.execute(f"SELECT {named('lock_project')}($1)", project.project_id)
            assert {"projects", "project_items"} <= {row["relname"] for row in await connection.fetch(READ)}
    finally:
        await connection.close()
