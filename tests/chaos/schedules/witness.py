"""What a storm installs in the database to know which times a schedule has had: each rule that it was given, and from
when on. Nothing is refused."""

from tests.support.servers.databases import ask, execute

WITNESS = """
CREATE TABLE public.storm_rules (
    schedule_id uuid, number bigserial, every_seconds int, anchor_at timestamptz, since timestamptz);

CREATE FUNCTION public.storm_note_rule() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.storm_rules (schedule_id, every_seconds, anchor_at, since)
    VALUES (NEW.schedule_id, NEW.every_seconds, NEW.anchor_at, NEW.last_due_at);
    RETURN NULL;
END $$;

CREATE TRIGGER storm_rule_made AFTER INSERT ON schedules FOR EACH ROW EXECUTE FUNCTION public.storm_note_rule();
CREATE TRIGGER storm_rule_changed AFTER UPDATE ON schedules FOR EACH ROW
WHEN ((OLD.every_seconds, OLD.anchor_at) IS DISTINCT FROM (NEW.every_seconds, NEW.anchor_at))
EXECUTE FUNCTION public.storm_note_rule();
"""

SLEEP = """
UPDATE schedules SET last_due_at = last_due_at - interval '{minutes} min', next_at = clock_timestamp()
WHERE schedule_id = '{schedule_id}' AND state = 'active' AND deleted_at IS NULL AND next_at IS NOT NULL
"""
"""As if nobody had looked at it for so long: all times since are due once more, with those that have their rows."""


def install_witness(database_url: str) -> None:
    if ask(database_url, "SELECT to_regclass('public.storm_rules')")[0][0] is None:
        execute(database_url, WITNESS)


def send_to_sleep(database_url: str, schedule_id: str, minutes: int) -> None:
    execute(database_url, SLEEP.format(schedule_id=schedule_id, minutes=minutes))
