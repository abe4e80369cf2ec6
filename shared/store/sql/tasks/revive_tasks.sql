-- Gives dead or cancelled tasks a new life, and with them the dependents that their ends had buried: a page of them at
-- once, the rest is left to the janitor. Returns those of the wanted that it changed, all that it revived, of these the
-- ones that it had to bury again, and by id which live tasks have the keys of those that it left as they are. A caller
-- that waits for keys calls `lock_keys_of` before it locks anything else. A caller that moves other tasks afterwards
-- has them locked with these (`beside`), because all tasks are locked in one order. The moves are written at the end:
-- that can lock tasks that are free, and nothing may be waited for after it. A task of a closed group is left as it is,
-- and so is one that a feature owns, unless its owner asks (`for_owner` has the owner's bit).

CREATE FUNCTION revive_tasks(
    wanted uuid[], beside uuid[] DEFAULT '{}', for_owner int DEFAULT 0,
    OUT changed uuid[], OUT everybody uuid[], OUT ended uuid[], OUT duplicates jsonb
) LANGUAGE plpgsql AS $$
DECLARE
    generation uuid[] := wanted;
    locked     uuid[] := wanted || beside;
    room       int := dependents_at_once();
    moment     timestamptz;
    refused    jsonb;
    revived    uuid[];
    moves      jsonb;
    written    jsonb := '[]';
BEGIN
    everybody := '{}';
    duplicates := '{}';
    PERFORM share_groups(groups_of(wanted));
    PERFORM 1 FROM tasks t WHERE t.task_id = ANY (locked) ORDER BY t.task_id FOR NO KEY UPDATE;
    WHILE generation IS NOT NULL LOOP
        refused := take_keys_back(generation);
        duplicates := duplicates || refused;
        -- Whoever ends one of their parents meanwhile comes to them afterwards, and counts anew.
        moment := clock_timestamp();

        WITH counted AS (
            SELECT t.task_id, t.status AS was, waits.unmet
            FROM unnest(generation) AS one(task_id)
            CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = one.task_id OFFSET 0) AS t
            CROSS JOIN LATERAL waits_of(t.task_id, t.approval) AS waits
            WHERE t.status IN :sources_of_revive AND NOT refused ? t.task_id::text
              AND t.concerns & :owners & ~for_owner = 0
              AND (t.group_id IS NULL OR NOT is_in_closed_group(t.group_id))
        ), moved AS (
            UPDATE tasks t SET
                status = CASE c.unmet WHEN 0 THEN 'queued' ELSE 'blocked' END, unmet = c.unmet, lane = 'retry',
                retry_count = 0, interrupt_count = 0, stall_count = 0, suspicion = 0, rate_limited_count = 0,
                error = NULL,
                exit_code = NULL, progress = NULL,
                provider_job_id = CASE WHEN t.job_open THEN t.provider_job_id END, cancel_requested = false,
                completed_at = NULL, claim_token = NULL,
                -- Who was not approved is asked about again.
                approval = CASE WHEN is_to_be_asked(t.approval)
                    THEN t.approval - ARRAY['decision', 'decided_at', 'decided_by', 'comment'] ELSE t.approval END,
                asked_at = NULL, ask_expires_at = NULL,
                life = t.life + 1,
                -- Who was never started keeps the time that it was submitted for.
                available_at = CASE t.attempt WHEN 0 THEN greatest(t.available_at, moment) ELSE moment END,
                expires_at = moment + make_interval(secs => t.max_age_seconds),
                updated_at = moment, last_seq = t.last_seq + 1
            FROM counted c WHERE t.task_id = c.task_id
            RETURNING t.task_id, t.status, t.last_seq, t.attempt, t.user_id, t.provider, t.actor, t.life, t.concerns,
                      c.was
        ), events AS (
            INSERT INTO task_events (task_id, seq, type, at, attempt, data)
            SELECT m.task_id, m.last_seq, 'revive', moment, m.attempt, jsonb_build_object('status', m.status)
            FROM moved m
        ), tallies AS (
            INSERT INTO task_tallies (user_id, provider, actor, status, tasks)
            SELECT m.user_id, m.provider, m.actor, m.was, -count(*) FROM moved m
            GROUP BY m.user_id, m.provider, m.actor, m.was
            UNION ALL
            SELECT m.user_id, m.provider, m.actor, m.status, count(*) FROM moved m WHERE m.status = 'blocked'
            GROUP BY m.user_id, m.provider, m.actor, m.status
        )
        SELECT array_agg(m.task_id),
               jsonb_agg(move_of(m.task_id, m.last_seq, m.life, m.told, 'revive', m.status, moment))
               FILTER (WHERE m.told <> 0)
        INTO revived, moves FROM (SELECT moved.*, :all_concerns_of(moved) AS told FROM moved) AS m;

        written := written || coalesce(moves, '[]');
        PERFORM wake_streams(revived), wake_dispatcher(providers_of(revived)) WHERE revived IS NOT NULL;
        everybody := everybody || revived;
        generation := with_free_groups(revived, dependents_of(revived, true, room));
        room := room - coalesce(cardinality(generation), 0);
        -- Locked before it is looked at: one that is just being buried, because of a parent that lives again, would be
        -- taken for one that waits.
        generation := lock_dependents(revived, generation, locked, true);
        locked := locked || generation;
        generation := buried_by_parents(generation);
    END LOOP;
    IF written <> '[]' THEN
        PERFORM write_moves(written);
    END IF;
    -- What has another parent that is still dead is buried again, with that one named as the reason.
    ended := settle_children(everybody);
    ended := ended || settle_dependents(ended, wait_for_nobody());
    changed := ARRAY(SELECT each FROM unnest(everybody) AS each WHERE each = ANY (wanted));
END $$;

-- Those that are dead because a parent failed.

CREATE FUNCTION buried_by_parents(children uuid[]) RETURNS uuid[] LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT array_agg(t.task_id) FROM unnest(children) AS child(task_id)
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = child.task_id OFFSET 0) AS t
        WHERE t.status = 'dead' AND t.error ->> 'type' = 'DependencyFailed');
END $$;

CREATE FUNCTION revive_task(wanted uuid)
RETURNS TABLE (:columns_of_tasks, revived jsonb, ended jsonb, duplicate_of uuid, is_owned boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    back  uuid[];
    over  uuid[];
    alike jsonb := '{}';
BEGIN
    PERFORM lock_keys_of(ARRAY[wanted]);
    SELECT r.everybody, r.ended, r.duplicates INTO back, over, alike FROM revive_tasks(ARRAY[wanted]) AS r;
    RETURN QUERY SELECT :each_of_tasks(t), counts_of(back), counts_of(over), (alike ->> wanted::text)::uuid,
                        t.concerns & :owners <> 0
    FROM tasks t WHERE t.task_id = wanted;
END $$;

-- The children whose groups are free, which are locked from here on; the others' parents are left to the janitor. So a
-- group that is just being closed revives nothing.

CREATE FUNCTION with_free_groups(parents uuid[], children uuid[]) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    wanted uuid[] := groups_of(children);
    free   uuid[];
    behind uuid[];
BEGIN
    IF cardinality(wanted) = 0 THEN RETURN children; END IF;
    free := ARRAY(SELECT g.group_id FROM task_groups g WHERE g.group_id = ANY (wanted) FOR SHARE SKIP LOCKED);
    IF cardinality(free) = cardinality(wanted) THEN RETURN children; END IF;
    SELECT array_agg(t.task_id) INTO behind FROM unnest(children) AS one(task_id)
    CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = one.task_id OFFSET 0) AS t
    WHERE t.group_id IS NOT NULL AND t.group_id <> ALL (free);
    PERFORM leave_unsettled(ARRAY(
        SELECT DISTINCT d.parent_id FROM task_dependencies d
        WHERE d.child_id = ANY (behind) AND d.parent_id = ANY (parents)), true);
    RETURN ARRAY(SELECT child FROM unnest(children) AS child WHERE child <> ALL (behind));
END $$;
