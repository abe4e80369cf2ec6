-- A project's backlog: one function for each move of an item, under the project's lock. Whatever may change which item
-- is first changes what runs, as long as no worker has claimed it.

-- A place before all others, behind all others, or between two: any number of them is free between any two.

CREATE FUNCTION head_of(of_project uuid) RETURNS numeric LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT coalesce(min(i.position), 1024) - 1024 FROM project_items i WHERE i.project_id = of_project);
END $$;

-- The shortest fraction between two: their middle would grow by a digit each time. (A division would lose digits.)

CREATE FUNCTION place_between(low numeric, high numeric) RETURNS numeric LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    digits int := 0;
    middle numeric := (low + high) * 0.5;
BEGIN
    WHILE trunc(middle, digits) <= low OR trunc(middle, digits) >= high LOOP
        digits := digits + 1;
    END LOOP;
    RETURN trim_scale(trunc(middle, digits));
END $$;

-- Where an item stands beside another; null when it is beside itself, or the other is not there.

CREATE FUNCTION place_beside(of_project uuid, moved uuid, neighbour uuid, is_before boolean)
RETURNS numeric LANGUAGE plpgsql STABLE AS $$
DECLARE
    near numeric;
    far  numeric;
BEGIN
    SELECT i.position INTO near FROM project_items i
    WHERE i.item_id = neighbour AND i.project_id = of_project AND i.item_id <> moved;
    IF near IS NULL THEN RETURN NULL; END IF;
    IF is_before THEN
        SELECT max(i.position) INTO far FROM project_items i
        WHERE i.project_id = of_project AND i.position < near AND i.item_id <> moved;
        RETURN CASE WHEN far IS NULL THEN near - 1024 ELSE place_between(far, near) END;
    END IF;
    SELECT min(i.position) INTO far FROM project_items i
    WHERE i.project_id = of_project AND i.position > near AND i.item_id <> moved;
    RETURN CASE WHEN far IS NULL THEN near + 1024 ELSE place_between(near, far) END;
END $$;

-- Where thousands were put into one gap, places have grown long: all are numbered anew, once in a long while.

CREATE FUNCTION renumber_items(of_project uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE project_items i SET position = placed.place * 1024
    FROM (SELECT o.item_id, row_number() OVER (ORDER BY o.position) AS place
          FROM project_items o WHERE o.project_id = of_project) AS placed
    WHERE i.item_id = placed.item_id;
END $$;

-- Puts items behind all others, and returns why not, if it does not.

CREATE FUNCTION add_items(wanted uuid, items jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    project projects;
    added   record;
BEGIN
    SELECT * INTO project FROM projects p WHERE p.project_id = wanted FOR NO KEY UPDATE;
    IF project.archived_at IS NOT NULL THEN RETURN 'project-archived'; END IF;
    FOR added IN
        WITH last AS (SELECT coalesce(max(i.position), 0) AS position FROM project_items i WHERE i.project_id = wanted)
        INSERT INTO project_items (item_id, project_id, position, title, given, task)
        SELECT (item.it ->> 'item_id')::uuid, wanted, last.position + 1024 * item.place, item.it ->> 'title',
               item.it -> 'given', item.it -> 'task'
        FROM jsonb_array_elements(items) WITH ORDINALITY AS item(it, place) CROSS JOIN last
        RETURNING project_items.item_id
    LOOP
        PERFORM note_item(added.item_id, 'add');
    END LOOP;
    PERFORM rebind_project(wanted);
    RETURN NULL;
END $$;

-- Locks the project for a change of one item, and says what is against it. The run's task is locked with it, if the
-- item is bound: nobody claims it meanwhile.

CREATE FUNCTION lock_item(of_project uuid, wanted uuid) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    project projects;
    run     project_runs;
BEGIN
    SELECT * INTO project FROM projects p WHERE p.project_id = of_project FOR NO KEY UPDATE;
    IF NOT EXISTS (SELECT 1 FROM project_items i WHERE i.item_id = wanted AND i.project_id = of_project) THEN
        RETURN 'item-not-found';
    ELSIF project.archived_at IS NOT NULL THEN
        RETURN 'project-archived';
    END IF;
    SELECT * INTO run FROM project_runs r WHERE r.project_id = of_project AND r.ended_at IS NULL;
    IF run.item_id = wanted AND NOT is_unclaimed(run) THEN RETURN 'item-running'; END IF;
    RETURN NULL;
END $$;

-- Changes what an item says, or where it stands. What was decided about another text of it does not hold for this one.

CREATE FUNCTION change_item(of_project uuid, wanted uuid, changes jsonb, neighbour uuid, is_before boolean)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    bar   text := lock_item(of_project, wanted);
    place numeric;
BEGIN
    IF bar IS NOT NULL THEN RETURN bar; END IF;
    IF neighbour IS NOT NULL THEN
        place := place_beside(of_project, wanted, neighbour, is_before);
        IF place IS NULL THEN RETURN 'neighbour-not-found'; END IF;
        UPDATE project_items i SET position = place, updated_at = clock_timestamp() WHERE i.item_id = wanted;
        IF scale(place) > 200 THEN
            PERFORM renumber_items(of_project);
        END IF;
        PERFORM note_item(wanted, 'move');
    END IF;
    IF changes <> '{}' THEN
        UPDATE project_items i SET
            title = CASE WHEN changes ? 'title' THEN changes ->> 'title' ELSE i.title END,
            given = coalesce(changes -> 'given', i.given), task = coalesce(changes -> 'task', i.task),
            last_run_id = CASE WHEN changes ? 'task' THEN NULL ELSE i.last_run_id END, updated_at = clock_timestamp()
        WHERE i.item_id = wanted;
        PERFORM note_item(wanted, 'edit');
    END IF;
    PERFORM rebind_project(of_project);
    RETURN NULL;
END $$;

CREATE FUNCTION skip_item(of_project uuid, wanted uuid) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    bar text := lock_item(of_project, wanted);
BEGIN
    IF bar IS NOT NULL THEN RETURN bar; END IF;
    UPDATE project_items i SET state = :item_target_of_skip, last_run_id = NULL, updated_at = clock_timestamp()
    WHERE i.item_id = wanted AND i.state IN :item_sources_of_skip AND i.state <> :item_target_of_skip;
    IF FOUND THEN
        PERFORM note_item(wanted, 'skip'), rebind_project(of_project);
    ELSIF EXISTS (SELECT 1 FROM project_items i WHERE i.item_id = wanted AND i.state <> :item_target_of_skip) THEN
        RETURN 'item-done';
    END IF;
    RETURN NULL;
END $$;

-- Where it stands: it waits again, and one that waits already goes on waiting.

CREATE FUNCTION requeue_item(of_project uuid, wanted uuid) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    bar text := lock_item(of_project, wanted);
BEGIN
    IF bar IS NOT NULL THEN RETURN bar; END IF;
    UPDATE project_items i SET state = :item_target_of_requeue, last_run_id = NULL, updated_at = clock_timestamp()
    WHERE i.item_id = wanted AND i.state IN :item_sources_of_requeue AND i.state <> :item_target_of_requeue;
    IF FOUND THEN
        PERFORM note_item(wanted, 'requeue'), rebind_project(of_project);
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION delete_item(of_project uuid, wanted uuid) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    bar text := lock_item(of_project, wanted);
BEGIN
    IF bar IS NOT NULL THEN RETURN bar; END IF;
    PERFORM note_item(wanted, 'delete');
    DELETE FROM project_items i WHERE i.item_id = wanted;
    PERFORM rebind_project(of_project);
    RETURN NULL;
END $$;

-- For whoever could not choose anew when the backlog changed.

CREATE FUNCTION choose_anew(wanted uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM projects p WHERE p.project_id = wanted FOR NO KEY UPDATE;
    PERFORM rebind_project(wanted);
END $$;

-- The item is chosen late. Where the project runs and no worker has its task, the run goes over to the item that is
-- first now, or to the new text of its own: the run's task is set first, and the old one cancelled as superseded, which
-- tells nobody. An item that was named is not exchanged for another. Where nothing is left, the run is withdrawn. The
-- caller has locked the project.

CREATE FUNCTION rebind_project(wanted uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    run    project_runs;
    chosen uuid;
    former uuid;
BEGIN
    SELECT * INTO run FROM project_runs r WHERE r.project_id = wanted AND r.ended_at IS NULL;
    former := run.task_id;
    IF run.run_id IS NULL OR (SELECT p.state FROM projects p WHERE p.project_id = wanted) <> 'running' THEN
        RETURN;
    END IF;
    SELECT i.item_id INTO chosen FROM project_items i
    WHERE i.item_id = CASE WHEN run.named THEN run.item_id ELSE first_waiting(wanted) END
      AND i.state IN :item_sources_of_fulfil;
    IF chosen IS NULL AND run.named AND run.mode = 'loop' THEN
        chosen := first_waiting(wanted);
    END IF;
    IF EXISTS (SELECT 1 FROM project_items i WHERE i.item_id = chosen AND i.last_run_id = run.run_id)
       OR run.revived_from IS NOT NULL OR NOT is_unclaimed(run) THEN
        RETURN;
    END IF;
    IF chosen IS NULL THEN
        PERFORM withdraw_run(run, 'finished');
        RETURN;
    END IF;
    UPDATE project_items i SET last_run_id = NULL WHERE i.item_id = run.item_id AND i.last_run_id = run.run_id;
    UPDATE project_runs r SET
        task_id = submit_item(wanted, i.task, p.user_id), item_id = chosen, named = r.named AND r.item_id = chosen,
        life = 1, attempts_before = 0
    FROM project_items i JOIN projects p ON p.project_id = i.project_id
    WHERE r.run_id = run.run_id AND i.item_id = chosen RETURNING r.* INTO run;
    UPDATE project_items i SET last_run_id = run.run_id WHERE i.item_id = chosen;
    UPDATE tasks t SET concerns = t.concerns & ~:concern_of_run WHERE t.task_id = former;
    PERFORM cancel_tasks(ARRAY[former], 'superseded');
    PERFORM note_project(wanted, ARRAY[note_of_run(run, 'rebind')]);
END $$;
