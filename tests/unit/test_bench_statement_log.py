"""Counting what Postgres was asked, from its log."""

from collections import Counter

from bench.footprint import by_statement, owner_of
from bench.statement_log import Asked, statements

LOG = """\
postgres | windlass-api-listen windlass_0123456789ab~LOG:  statement: SELECT 1
postgres | windlass-janitor~LOG:  execute __asyncpg_stmt_3__:
postgres | \t    INSERT INTO service_reports (service)
postgres | \t    VALUES ($1)
postgres | windlass-janitor~DETAIL:  parameters: $1 = 'janitor'
postgres | ~LOG:  checkpoint starting: time
rabbitmq | something of another server
postgres | windlass-api-listen~LOG:  statement: SELECT windlass_0123456789ab.ring()
"""


def test_every_statement_is_found_with_its_connection_and_in_one_line() -> None:
    assert list(statements(iter(LOG.splitlines()))) == [
        Asked("windlass-api-listen", "SELECT 1"),
        Asked("windlass-janitor", "INSERT INTO service_reports (service) VALUES ($1)"),
        Asked("windlass-api-listen", "SELECT ring()"),
    ]


def test_a_connection_belongs_to_a_process() -> None:
    names = ["windlass-api-lists", "windlass-heartbeat-listen", "windlass-actors-writer", "windlass-dispatcher"]
    assert [owner_of(name) for name in names] == ["api", "worker", "worker", "dispatcher"]
    assert owner_of("psql") == "psql"


def test_the_most_frequent_statement_comes_first() -> None:
    asked = Counter({Asked("a", "SELECT 1"): 2, Asked("b", "SELECT 1"): 3, Asked("a", "SELECT 2"): 4})
    assert by_statement(asked) == [("SELECT 1", 5), ("SELECT 2", 4)]
