"""Sets of functions in a database: what they stand on, and which of the old ones `migrate` drops."""

import asyncio
import logging
import subprocess
from typing import Any

import asyncpg
import pytest

from tests.support.engine.store import an_engine
from tests.support.older_build import OlderBuild
from tests.support.servers.databases import ask, execute
from tests.support.waiting import wait_until
from windlass.services.api.operators.health import NOT_MIGRATED, postgres_health
from windlass.shared import db
from windlass.shared.migrations.runner import migrate
from windlass.shared.store.columns import COLUMNS
from windlass.shared.store.functions import named, schema

OUTSIDE = """
    SELECT pg_describe_object(d.classid, d.objid, d.objsubid) AS what
    FROM pg_depend d JOIN pg_proc p ON p.oid = d.refobjid AND d.refclassid = 'pg_proc'::regclass
    WHERE p.pronamespace::regnamespace::text LIKE 'windlass%'
"""


def old_set(database_url: str, number: int, *, days_ago: float) -> str:
    """One that some build made long ago."""
    name = f"windlass_{number:012d}"
    execute(database_url, f"CREATE SCHEMA {name}")
    execute(database_url, f"CREATE FUNCTION {name}.answer() RETURNS int LANGUAGE sql AS 'SELECT 42'")
    execute(database_url, f"CREATE FUNCTION {name}.answer(p providers) RETURNS int LANGUAGE sql AS 'SELECT 42'")
    remember(database_url, name, days_ago=days_ago)
    return name


def remember(database_url: str, name: str, *, days_ago: float) -> None:
    execute(
        database_url,
        f"""
        INSERT INTO function_sets (name, level, migrated_at)
        VALUES ('{name}', 1, clock_timestamp() - interval '{days_ago} days')
        ON CONFLICT (name) DO UPDATE SET migrated_at = excluded.migrated_at
        """,
    )


def sets_in(database_url: str) -> set[str]:
    """Those that are there, in truth and by the table."""
    found = {row[0] for row in ask(database_url, "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'windlass%'")}
    assert found == {row[0] for row in ask(database_url, "SELECT name FROM function_sets")}
    return found


def the_one(database_url: str, query: str) -> Any:
    ((value,),) = ask(database_url, query)
    return value


def test_migrating_makes_the_own_set_and_says_so(database_url: str) -> None:
    assert the_one(database_url, "SELECT name FROM function_sets") == schema()
    assert sets_in(database_url) == {schema()}


def test_no_function_returns_the_row_type_of_a_table(database_url: str) -> None:
    """Its columns change with the table, under a function that is never changed."""
    returned = """
        SELECT p.proname FROM pg_proc p
        CROSS JOIN LATERAL (
            SELECT p.prorettype AS type UNION ALL
            SELECT a.type FROM unnest(p.proallargtypes, p.proargmodes) AS a(type, mode) WHERE a.mode IN ('o', 'b', 't')
        ) AS said
        JOIN pg_type t ON t.oid = said.type JOIN pg_class c ON c.oid = t.typrelid
        WHERE p.pronamespace::regnamespace::text = $1
    """
    assert ask(database_url, returned, schema()) == []
    execute(database_url, f"CREATE FUNCTION {schema()}.careless() RETURNS SETOF tasks LANGUAGE sql AS 'TABLE tasks'")
    assert [row[0] for row in ask(database_url, returned, schema())] == ["careless"], "else it would find nothing ever"


def test_the_columns_that_functions_return_are_those_of_the_tables(database_url: str) -> None:
    there = ask(
        database_url,
        """
        SELECT c.relname, a.attname, a.atttypid::regtype::text AS type FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname = ANY ($1::text[])
        ORDER BY c.relname, a.attnum
        """,
        list(COLUMNS),
    )
    drawn = [(table, name, kind) for table, columns in COLUMNS.items() for name, kind in columns.items()]
    kinds = [kind for _, _, kind in drawn]
    in_full = "SELECT kind::regtype::text FROM unnest($1::text[]) WITH ORDINALITY AS u(kind, place) ORDER BY place"
    meant = ask(database_url, in_full, kinds)
    named_alike = [(table, name, row[0]) for (table, name, _), row in zip(drawn, meant, strict=True)]
    assert sorted(named_alike) == sorted(tuple(row) for row in there)
    assert [each[:2] for each in named_alike if each[0] == "tasks"] == [tuple(r)[:2] for r in there if r[0] == "tasks"]


def test_nothing_outside_stands_on_a_set(database_url: str) -> None:
    assert ask(database_url, OUTSIDE) == []
    execute(database_url, f"CREATE VIEW careless AS SELECT {named('were_few')}(1)")
    assert len(ask(database_url, OUTSIDE)) == 1, "else it would find nothing ever"


def test_whoever_may_connect_may_call(database_url: str) -> None:
    execute(database_url, "CREATE ROLE guest_of_sets")
    try:
        execute(database_url, f"SET ROLE guest_of_sets; SELECT {named('were_few')}(1)")
    finally:
        execute(database_url, "DROP ROLE guest_of_sets")


def test_functions_in_public_are_left_alone(database_url: str) -> None:
    """Those of the builds from before there were sets."""
    execute(database_url, "CREATE FUNCTION public.wake_dispatcher() RETURNS int LANGUAGE sql AS 'SELECT 42'")
    asyncio.run(migrate(database_url))
    assert the_one(database_url, "SELECT public.wake_dispatcher()") == 42
    assert the_one(database_url, "SELECT to_regproc('public.claim_tasks')") is None, "nor is one made there"


def test_old_sets_go_but_never_the_last_three(database_url: str) -> None:
    oldest, old, third, second = (old_set(database_url, days, days_ago=days) for days in (90, 60, 40, 35))
    asyncio.run(migrate(database_url))
    assert sets_in(database_url) == {schema(), second, third}
    assert {oldest, old}.isdisjoint(sets_in(database_url))


def test_young_sets_stay_however_many(database_url: str) -> None:
    young = {old_set(database_url, days, days_ago=days) for days in (1, 2, 3, 4, 29)}
    asyncio.run(migrate(database_url))
    assert sets_in(database_url) == {schema(), *young}


def test_the_own_set_stays_however_old(database_url: str) -> None:
    later = {old_set(database_url, days, days_ago=days) for days in (40, 50, 60)}
    remember(database_url, schema(), days_ago=100)
    asyncio.run(migrate(database_url))
    assert sets_in(database_url) >= {schema()}
    assert len(sets_in(database_url) & later) == 2
    newest = "SELECT name FROM function_sets ORDER BY migrated_at DESC LIMIT 1"
    assert the_one(database_url, newest) == schema()


def test_a_set_that_a_process_is_connected_with_stays(database_url: str) -> None:
    used = old_set(database_url, 90, days_ago=90)
    for days in (40, 50):
        old_set(database_url, days, days_ago=days)

    async def while_connected() -> None:
        connection = await asyncpg.connect(
            database_url, server_settings={"application_name": f"windlass-actors-writer {used}"}
        )
        await migrate(database_url)
        await connection.close()

    asyncio.run(while_connected())
    assert used in sets_in(database_url)
    still_connected = f"SELECT pid FROM pg_stat_activity WHERE application_name LIKE '% {used}'"
    wait_until("Postgres knows that it has left", lambda: not ask(database_url, still_connected))
    asyncio.run(migrate(database_url))
    assert used not in sets_in(database_url)


def test_a_set_that_something_stands_on_stays_and_is_told(database_url: str, caplog: pytest.LogCaptureFixture) -> None:
    used, unused = old_set(database_url, 90, days_ago=90), old_set(database_url, 80, days_ago=80)
    for days in (40, 50):
        old_set(database_url, days, days_ago=days)
    execute(database_url, f"CREATE VIEW somebody_s AS SELECT {used}.answer()")
    with caplog.at_level(logging.WARNING, "windlass.shared.migrations.sets"):
        asyncio.run(migrate(database_url))
    assert used in sets_in(database_url)
    assert unused not in sets_in(database_url)
    assert the_one(database_url, "SELECT * FROM somebody_s") == 42
    assert f"the old functions in {used} stay" in caplog.text


def test_the_set_of_an_earlier_edition_that_was_dropped_does_not_come_back(
    empty_database_url: str, older_build: OlderBuild
) -> None:
    """It would not be closed, as the set that was dropped was."""
    url = empty_database_url
    older_build.migrate(url)
    asyncio.run(migrate(url))
    older_build.migrate(url)
    assert sets_in(url) == {schema(), older_build.schema}, "its set is there, so it creates none"
    for days in (40, 50):
        old_set(url, days, days_ago=days)
    remember(url, older_build.schema, days_ago=100)
    asyncio.run(migrate(url))
    assert older_build.schema not in sets_in(url)
    with pytest.raises(subprocess.CalledProcessError):
        older_build.migrate(url)
    assert older_build.schema not in sets_in(url)


def test_without_its_set_a_process_is_not_ready(database_url: str) -> None:
    """The tables are there, and the functions of another build."""
    old_set(database_url, 1, days_ago=1)
    execute(database_url, f"DROP SCHEMA {schema()} CASCADE")

    async def look() -> None:
        async with an_engine(database_url) as engine:
            assert await postgres_health(engine.pool) == {"status": "unhealthy", "detail": NOT_MIGRATED}
            with pytest.raises(db.NOT_MIGRATED):
                await engine.submit()
            await migrate(database_url)
            assert (await postgres_health(engine.pool))["status"] == "healthy"
            await engine.submit()

    asyncio.run(look())
