"""What a storm installs in the database to know which endpoints had subscribed to what happened, in statements of its
own: noted when a move of a task, a workflow or a project is written, at its commit, and when its outbox row is deleted.
An endpoint that had subscribed at the first two moments, and was not changed until the third, must have a delivery."""

from tests.support.servers.databases import ask, execute

WITNESS = """
CREATE TABLE public.storm_heard (
    webhook_id uuid, task_id uuid, seq int, life int, type text, moment text, at timestamptz);

CREATE FUNCTION public.storm_receives(w webhooks, t tasks, status text, at timestamptz) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT w.deleted_at IS NULL AND (
        (w.webhook_id = t.webhook_id AND status <> 'retrying')
        OR (t.actor NOT IN ('embed', 'probe', 'webhook') AND w.created_at <= at
            AND ('task.' || status = ANY (w.events) OR 'task.*' = ANY (w.events))
            AND (w.scope = 'all' OR w.user_id = t.user_id)
            AND (w.filter ->> 'actor' IS NULL OR w.filter ->> 'actor' = t.actor)
            AND (w.filter ->> 'tag' IS NULL OR to_jsonb(t.tags) ? (w.filter ->> 'tag'))
            AND (w.filter ->> 'project_id' IS NULL OR w.filter ->> 'project_id' = t.project_id)
            AND (w.filter ->> 'workflow_id' IS NULL OR w.filter ->> 'workflow_id' = t.workflow_id)))
$$;

CREATE FUNCTION public.storm_note_heard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.storm_heard
    SELECT w.webhook_id, t.task_id, NEW.seq, t.life, 'task.' || (NEW.data ->> 'status'), TG_ARGV[0], NEW.at
    FROM tasks t CROSS JOIN webhooks w
    WHERE t.task_id = NEW.task_id AND public.storm_receives(w, t, NEW.data ->> 'status', NEW.at);
    RETURN NULL;
END $$;

CREATE TRIGGER storm_heard_at_the_move AFTER INSERT ON task_events FOR EACH ROW
WHEN (NEW.type IN ('complete', 'bury', 'cancel', 'retry', 'stall')
      AND NEW.data ->> 'status' IN ('completed', 'dead', 'cancelled', 'retrying'))
EXECUTE FUNCTION public.storm_note_heard('move');

CREATE CONSTRAINT TRIGGER storm_heard_at_the_commit AFTER INSERT ON task_events DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW
WHEN (NEW.type IN ('complete', 'bury', 'cancel', 'retry', 'stall')
      AND NEW.data ->> 'status' IN ('completed', 'dead', 'cancelled', 'retrying'))
EXECUTE FUNCTION public.storm_note_heard('commit');
"""

OF_OTHERS = """
CREATE FUNCTION public.storm_has_subscribed(w webhooks, type text, owner text, tags jsonb, id uuid, named text)
RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT w.deleted_at IS NULL AND (type = ANY (w.events) OR split_part(type, '.', 1) || '.*' = ANY (w.events))
       AND (w.scope = 'all' OR w.user_id = owner) AND w.filter ->> 'actor' IS NULL
       AND (w.filter ->> 'tag' IS NULL OR tags ? (w.filter ->> 'tag'))
       AND NOT EXISTS (
           SELECT 1 FROM unnest(ARRAY['project_id', 'workflow_id']) AS one(name)
           WHERE w.filter ? one.name AND NOT (one.name = named AND w.filter ->> one.name = id::text))
$$;

CREATE FUNCTION public.storm_note_heard_of_workflow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.storm_heard
    SELECT w.webhook_id, f.workflow_id, NEW.seq, 1, 'workflow.' || (NEW.data ->> 'status'), TG_ARGV[0], NEW.at
    FROM workflows f CROSS JOIN webhooks w
    WHERE f.workflow_id = NEW.workflow_id AND w.created_at <= NEW.at AND public.storm_has_subscribed(
        w, 'workflow.' || (NEW.data ->> 'status'), f.user_id, to_jsonb(f.tags), f.workflow_id, 'workflow_id');
    RETURN NULL;
END $$;

-- A start has the number of the run that it opens, which is noted behind it.
CREATE FUNCTION public.storm_note_heard_of_project() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    happened text := CASE NEW.type WHEN 'start' THEN 'project.started' ELSE 'project.stopped' END;
BEGIN
    INSERT INTO public.storm_heard
    SELECT w.webhook_id, p.project_id, NEW.seq + (NEW.type = 'start')::int, 1, happened, TG_ARGV[0], NEW.at
    FROM projects p CROSS JOIN webhooks w
    WHERE p.project_id = NEW.project_id AND w.created_at <= NEW.at
      AND public.storm_has_subscribed(w, happened, p.user_id, '[]', p.project_id, 'project_id');
    RETURN NULL;
END $$;
"""
HANDLED = """
CREATE FUNCTION public.storm_note_heard_at_last() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.storm_heard
    SELECT w.webhook_id, OLD.task_id, OLD.seq, OLD.life, 'task.' || OLD.status,
           CASE WHEN w.updated_at <= OLD.at THEN 'unchanged' ELSE 'handled' END, OLD.at
    FROM tasks t CROSS JOIN webhooks w
    WHERE t.task_id = OLD.task_id AND OLD.status IN ('completed', 'dead', 'cancelled', 'retrying')
      AND public.storm_receives(w, t, OLD.status, OLD.at);
    INSERT INTO public.storm_heard
    SELECT w.webhook_id, (OLD.data ->> 'subject')::uuid, (OLD.data ->> 'seq')::int, 1, OLD.move,
           CASE WHEN w.updated_at <= OLD.at THEN 'unchanged' ELSE 'handled' END, OLD.at
    FROM webhooks w
    WHERE OLD.task_id IS NULL AND split_part(OLD.move, '.', 1) IN ('workflow', 'project') AND w.created_at <= OLD.at
      AND public.storm_has_subscribed(
          w, OLD.move, OLD.data ->> 'owner', coalesce(OLD.data #> '{about,tags}', '[]'),
          CASE WHEN OLD.move LIKE 'workflow.%' OR OLD.move LIKE 'project.%' THEN (OLD.data ->> 'subject')::uuid END,
          split_part(OLD.move, '.', 1) || '_id');
    RETURN NULL;
END $$;

CREATE TRIGGER storm_heard_at_last AFTER DELETE ON outbox FOR EACH ROW
WHEN (OLD.feature = 'webhook') EXECUTE FUNCTION public.storm_note_heard_at_last();
"""
TRIGGERS = """
CREATE TRIGGER storm_heard_at_the_move AFTER INSERT ON {subject}_events FOR EACH ROW
WHEN ({told}) EXECUTE FUNCTION public.storm_note_heard_of_{subject}('move');

CREATE CONSTRAINT TRIGGER storm_heard_at_the_commit AFTER INSERT ON {subject}_events DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN ({told}) EXECUTE FUNCTION public.storm_note_heard_of_{subject}('commit');
"""
TOLD = {
    "workflow": "NEW.type <> 'restore' AND NEW.data ->> 'status' IN ('completed', 'failed', 'escalated', 'cancelled')",
    "project": "NEW.type IN ('start', 'finish')",
}


def install_witness(database_url: str) -> None:
    if ask(database_url, "SELECT to_regclass('public.storm_heard')")[0][0] is None:
        execute(database_url, WITNESS)
        execute(database_url, OF_OTHERS)
        execute(database_url, HANDLED)
        for subject, told in TOLD.items():
            execute(database_url, TRIGGERS.format(subject=subject, told=told))
