"""Closes the function sets of earlier editions, for an edition that cannot run beside them."""

from sqlalchemy import Connection, text

ALIVE_SECONDS = 30
"""A worker that has sent no heartbeat for as long as a lease lasts is not alive."""

ALIVE = text("""
    SELECT worker_id FROM workers
    WHERE state IN ('active', 'stopping') AND heartbeat_at > clock_timestamp() - make_interval(secs => :seconds)
    ORDER BY worker_id
""")

FUNCTIONS = text("""
    SELECT format('%s(%s) RETURNS %s', p.oid::regproc, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid))
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname ~ '^windlass_[0-9a-f]{12}$' AND p.prokind = 'f' ORDER BY p.oid
""")

CLOSED = """
CREATE OR REPLACE FUNCTION {signature} LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RAISE EXCEPTION 'edition-too-old: the database was migrated to a newer edition, stop this process'
    USING ERRCODE = 'undefined_function';
END $$
"""
"""Processes of earlier editions treat the error as a database that is not migrated: they change nothing and wait."""


class OlderWorkersAlive(Exception):
    """Workers of an earlier edition are running, and this migration would stop their tasks in the middle."""

    def __init__(self, worker_ids: list[str]) -> None:
        names = ", ".join(worker_ids[:5]) + (", …" if len(worker_ids) > 5 else "")
        super().__init__(
            f"{len(worker_ids)} workers of an earlier edition are running ({names}). Stop every process of that"
            f" edition first; a killed worker counts as stopped after {ALIVE_SECONDS} seconds. With --force the"
            " migration goes ahead, and their tasks are recovered when the leases expire."
        )


def close_earlier_sets(connection: Connection, *, force: bool) -> None:
    """Replaces the body of every function by an error. The sets stay, so that the `migrate` of an earlier edition finds
    its set and does not create it again."""
    if not force and (alive := list(connection.scalars(ALIVE, {"seconds": ALIVE_SECONDS}))):
        raise OlderWorkersAlive(alive)
    for signature in connection.scalars(FUNCTIONS).all():
        connection.exec_driver_sql(CLOSED.format(signature=signature))
