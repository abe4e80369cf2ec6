"""Triggers that a storm installs in the database, because rows do not show this afterwards: at every commit whether
each workflow that was touched has the counts of its tasks or an outbox row waits for it, and with each claim which
transactions were committed by then.

They refuse nothing: a wrong commit succeeds, and is recorded.
"""

from tests.support.servers.databases import ask, execute

COUNTED = """
CREATE TABLE public.storm_failures (
    workflow_id uuid, task_id uuid, change int, xid xid8 DEFAULT pg_current_xact_id());

CREATE FUNCTION public.storm_note_failure() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO public.storm_failures (workflow_id, task_id, change) VALUES (NEW.group_id, NEW.task_id, 1);
    ELSE
        INSERT INTO public.storm_failures (workflow_id, task_id, change) VALUES (OLD.group_id, OLD.task_id, -1);
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION public.storm_differs(id uuid) RETURNS text LANGUAGE sql STABLE AS $$
    -- One statement, and so one snapshot: the caller need not have locked the workflow.
    SELECT format('is %s (%s live, %s completed, %s dead, %s cancelled, %s failures) and its tasks say %s (%s, %s, %s,'
                  ' %s, %s)', w.status, w.live, w.completed, w.dead, w.cancelled, w.failures, follows.status,
                  anew.live, anew.completed, anew.dead, anew.cancelled, anew.failures)
    FROM workflows w CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE item.status IN ('blocked', 'queued', 'running', 'retrying')) AS live,
               count(*) FILTER (WHERE item.status = 'completed') AS completed,
               count(*) FILTER (WHERE item.status = 'dead') AS dead,
               count(*) FILTER (WHERE item.status = 'cancelled') AS cancelled,
               coalesce(sum(item.failures), 0) AS failures
        FROM (
            SELECT t.status, (
                SELECT count(*) FROM task_events e
                WHERE e.task_id = t.task_id AND e.data ->> 'status' = 'dead'
                  AND coalesce(e.data #>> '{error,type}', '') <> 'DependencyFailed') - (
                SELECT count(*) FROM public.storm_failures f
                WHERE f.workflow_id = w.workflow_id AND f.task_id = t.task_id AND f.change < 0) AS failures
            FROM tasks t WHERE t.workflow_id = w.workflow_id::text AND t.concerns & 2 <> 0
            UNION ALL
            SELECT b.status, (
                SELECT coalesce(sum(f.change), 0) FROM public.storm_failures f WHERE f.task_id = b.barrier_id)
            FROM barriers b WHERE b.group_id = w.workflow_id
        ) AS item
    ) AS anew CROSS JOIN LATERAL (
        -- Written here again, in the order of the page that promises it: it must not share code with the product.
        SELECT CASE
            WHEN w.cancel_requested AND anew.live = 0 THEN 'cancelled'
            WHEN NOT w.cancel_requested AND anew.failures >= w.failure_threshold THEN 'escalated'
            WHEN anew.live > 0 THEN 'running'
            WHEN anew.dead > 0 THEN 'failed'
            WHEN anew.cancelled > 0 THEN 'cancelled'
            ELSE 'completed' END AS status
    ) AS follows
    WHERE w.workflow_id = id
      AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.feature = 'workflow' AND o.subject = w.workflow_id) AND (
        follows.status <> w.status
        OR (w.live, w.completed, w.dead, w.cancelled, w.failures)
           <> (anew.live, anew.completed, anew.dead, anew.cancelled, anew.failures))
$$;

CREATE TABLE public.storm_mismatches (workflow_id uuid, at timestamptz DEFAULT clock_timestamp(), words text);

CREATE FUNCTION public.storm_compare() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.storm_mismatches (workflow_id, words)
    SELECT found.id, found.words FROM (
        SELECT id, public.storm_differs(id) AS words FROM (
            SELECT (coalesce(to_jsonb(NEW) ->> 'workflow_id', to_jsonb(OLD) ->> 'subject'))::uuid AS id) AS one
    ) AS found WHERE found.words IS NOT NULL;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER storm_compare_tasks AFTER INSERT OR UPDATE OF status ON tasks
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.concerns & 2 <> 0) EXECUTE FUNCTION public.storm_compare();
CREATE CONSTRAINT TRIGGER storm_compare_workflows AFTER INSERT OR UPDATE ON workflows
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.storm_compare();
CREATE CONSTRAINT TRIGGER storm_compare_handled AFTER DELETE ON outbox
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (OLD.feature = 'workflow') EXECUTE FUNCTION public.storm_compare();
"""

CLAIMS = """
CREATE TRIGGER storm_note_failure AFTER INSERT OR DELETE ON group_failures
FOR EACH ROW EXECUTE FUNCTION public.storm_note_failure();

CREATE TABLE public.storm_stands (workflow_id uuid, seq int, stands boolean, xid xid8 DEFAULT pg_current_xact_id());

CREATE FUNCTION public.storm_note_status() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.storm_stands (workflow_id, seq, stands)
    SELECT w.workflow_id, NEW.seq, w.status = 'escalated' OR w.cancel_requested
    FROM workflows w WHERE w.workflow_id = NEW.workflow_id;
    RETURN NULL;
END $$;

CREATE TRIGGER storm_note_status AFTER INSERT ON workflow_events
FOR EACH ROW EXECUTE FUNCTION public.storm_note_status();

-- Stable, so that it sees what the claim saw that it is part of, and not what was committed since.
CREATE FUNCTION public.storm_note_claim() RETURNS trigger LANGUAGE plpgsql STABLE AS $$
BEGIN
    NEW.data := NEW.data || jsonb_build_object('saw', pg_current_snapshot()::text);
    RETURN NEW;
END $$;

CREATE TRIGGER storm_note_claim BEFORE INSERT ON task_events
FOR EACH ROW WHEN (NEW.type = 'claim') EXECUTE FUNCTION public.storm_note_claim();
"""


def install_witness(database_url: str) -> None:
    if ask(database_url, "SELECT to_regclass('public.storm_mismatches')")[0][0] is not None:
        return
    execute(database_url, COUNTED)
    execute(database_url, CLAIMS)
