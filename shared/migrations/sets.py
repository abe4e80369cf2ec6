"""The sets of functions in a database: each build makes its own, and the old ones go when nobody can want them."""

import logging

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from windlass.shared.store import functions

log = logging.getLogger(__name__)

SCALE_DEMAND = (
    """
    CREATE OR REPLACE FUNCTION public.read_demand() RETURNS TABLE (queue text, wanted bigint) LANGUAGE plpgsql STABLE
    SECURITY DEFINER SET search_path = public, pg_temp AS $$
    BEGIN RETURN QUERY SELECT d.queue, d.wanted FROM {schema}.demand() AS d; END $$
    """,
    "CREATE OR REPLACE VIEW public.scale_demand AS SELECT queue, wanted FROM read_demand()",
    "GRANT SELECT ON public.scale_demand TO PUBLIC",
)
"""What autoscalers read, with a login and no other right: names of queues and numbers. It calls the set of the build
that was migrated last, by a text that Postgres reads at each call: nothing in the catalogue depends on the set."""

KEPT_DAYS = 30
KEPT_SETS = 3
"""However old, for a way back."""

IS_THERE = text("SELECT to_regnamespace(:name) IS NOT NULL")

REMEMBER = text("""
    INSERT INTO function_sets (name) VALUES (:name) ON CONFLICT (name) DO UPDATE SET migrated_at = excluded.migrated_at
""")

OLD = text("""
    SELECT s.name FROM function_sets s
    WHERE s.name ~ '^windlass_[0-9a-f]{12}$' AND s.name <> :own
      AND s.migrated_at < clock_timestamp() - make_interval(days => :days)
      AND s.name NOT IN (SELECT l.name FROM function_sets l ORDER BY l.migrated_at DESC LIMIT :sets)
      AND NOT EXISTS (
          SELECT 1 FROM pg_stat_activity a
          WHERE a.datname = current_database() AND position(s.name IN a.application_name) > 0)
    ORDER BY s.migrated_at
""")

FUNCTIONS = text("""
    SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace = to_regnamespace(:name)
""")


def make_own(connection: Connection) -> None:
    """This build's set, unless it is there: nothing in a set is ever changed, so nobody's call meets another text."""
    name = functions.schema()
    if not connection.scalar(IS_THERE, {"name": name}):
        install_functions(connection)
        log.info("the functions of this version are in %s", name)
    connection.execute(REMEMBER, {"name": name})
    show_demand(connection)


def install_functions(connection: Connection) -> None:
    name = functions.schema()
    connection.exec_driver_sql(f"CREATE SCHEMA {name}")
    # They run with the rights of who calls them: to be allowed in here is to be allowed nothing else.
    connection.exec_driver_sql(f"GRANT USAGE ON SCHEMA {name} TO PUBLIC")
    for statement in functions.statements():
        connection.exec_driver_sql(statement)


def show_demand(connection: Connection) -> None:
    for statement in SCALE_DEMAND:
        connection.exec_driver_sql(statement.format(schema=functions.schema()))


def drop_old(connection: Connection) -> None:
    """Those that no build has asked for in a long time, and no process is connected with. What else stands on one of
    them is not ours to take away: that set stays."""
    wanted = {"days": KEPT_DAYS, "sets": KEPT_SETS, "own": functions.schema()}
    for name in connection.scalars(OLD, wanted).all():
        try:
            with connection.begin_nested():
                _drop(connection, name)
        except DBAPIError as error:
            log.warning("the old functions in %s stay: %s", name, error.orig)
        else:
            log.info("dropped the old functions in %s", name)


def _drop(connection: Connection, name: str) -> None:
    for function in connection.scalars(FUNCTIONS, {"name": name}).all():
        connection.exec_driver_sql(f"DROP FUNCTION {function} RESTRICT")
    connection.exec_driver_sql(f"DROP SCHEMA IF EXISTS {name} RESTRICT")
    connection.execute(text("DELETE FROM function_sets WHERE name = :name"), {"name": name})
