"""Tellers of a test's own, in a database of its own: the same functions with somebody to tell."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID, uuid4

from tests.support.engine.store import Engine
from tests.support.servers.databases import create_database, drop_database, execute
from windlass.shared.concerns import Concern
from windlass.shared.store import functions

LISTENING = """
CREATE TABLE IF NOT EXISTS heard (teller text, task_id uuid, seq int, move jsonb);
CREATE TABLE IF NOT EXISTS subject (name text PRIMARY KEY);
"""

GOOD = """
INSERT INTO heard
SELECT '{name}', (m ->> 'task_id')::uuid, (m ->> 'seq')::int, m FROM jsonb_array_elements(moves) AS m
"""
"""What a teller does that notes what it is told."""


@contextmanager
def a_database_with_tellers(server_url: str, template: str, tellers: Mapping[Concern, str]) -> Iterator[str]:
    name = f"telling_{uuid4().hex[:8]}"
    create_database(server_url, name, template)
    try:
        url = urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))
        install_tellers(url, tellers)
        yield url
    finally:
        drop_database(server_url, name)


def install_tellers(url: str, tellers: Mapping[Concern, str]) -> None:
    """By concern the body of its teller; `GOOD` notes what it hears in the table `heard`."""
    named = {concern: f"tell_{concern.word}_of_a_test" for concern in tellers}
    execute(url, LISTENING)
    for concern, body in tellers.items():
        execute(url, teller(named[concern], body.format(name=concern.word)))
    for statement in set(functions.statements(named)) - set(functions.statements()):
        execute(url, statement.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"))


def teller(name: str, body: str) -> str:
    return f"""
    CREATE OR REPLACE FUNCTION {name}(moves jsonb) RETURNS void LANGUAGE plpgsql AS $$ BEGIN {body}; END $$
    """


async def replace_teller(engine: Engine, concern: Concern, body: str) -> None:
    await engine.sql(teller(f"tell_{concern.word}_of_a_test", body.format(name=concern.word)))


async def heard(engine: Engine, task_id: UUID | None = None) -> list[dict[str, Any]]:
    """What was told, in order."""
    rows = await engine.pool.fetch(
        "SELECT move FROM heard WHERE $1::uuid IS NULL OR task_id = $1 ORDER BY task_id, seq", task_id
    )
    return [row["move"] for row in rows]


async def moves_heard(engine: Engine, task_id: UUID) -> list[tuple[str, str]]:
    return [(move["move"], move["status"]) for move in await heard(engine, task_id)]
