"""What a storm installs in the database to count how often each end of a task is handled, and to stop orchestrators in
the middle of a batch.

The trigger runs in the transaction of the subscriber, also for an event that is there already.
"""

from tests.support.servers.databases import ask, execute

UNIT = "storm.unit"
"""A setting of an orchestrator's connections: the name of its process."""

GATE = "hashtext('storm batch')"

LEDGER = f"""
CREATE TABLE public.storm_ledger (task_id uuid, life int, status text);

CREATE FUNCTION public.storm_note_handled() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared({GATE}, hashtext(current_setting('{UNIT}', true)));
    INSERT INTO public.storm_ledger VALUES (NEW.task_id, NEW.life, NEW.status);
    RETURN NEW;
END $$;

CREATE TRIGGER storm_handled BEFORE INSERT ON agent_events FOR EACH ROW EXECUTE FUNCTION public.storm_note_handled();
"""

CLOSE_THE_GATE = f"SELECT pg_advisory_lock({GATE}, hashtext($1))"
IS_IN_A_BATCH = "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid)))"


def install_ledger(database_url: str) -> None:
    if ask(database_url, "SELECT to_regclass('public.storm_ledger')")[0][0] is None:
        execute(database_url, LEDGER)


def as_unit(database_url: str, name: str) -> str:
    """The address for connections that carry the name of their process."""
    return f"{database_url}{'&' if '?' in database_url else '?'}{UNIT}={name}"
