-- Settles the dependents of barriers whose status was changed: of one that ended they are unblocked or buried, and of
-- one that was reopened they are revived by the janitor. The caller may have locked tasks, so a dependent that another
-- transaction has locked is left to the janitor, too. Returns the tasks that were buried.

CREATE FUNCTION settle_barriers(ended uuid[], reopened uuid[]) RETURNS uuid[] LANGUAGE plpgsql AS $$
BEGIN
    PERFORM leave_unsettled(reopened, true) WHERE cardinality(reopened) > 0;
    RETURN settle_dependents(ended, wait_for_nobody());
END $$;
