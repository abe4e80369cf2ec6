-- Which tasks are suspected of killing their workers, and therefore run alone: see docs/decisions/0031.

-- So many at most were few. As many as a worker of the usual size runs at once: where one of its tasks kills it, that
-- one must be found; and the innocent among them wait for each other, so there must not be many.
CREATE FUNCTION were_few(tasks_lost bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT tasks_lost <= 8 $$;

-- Once is an accident: machines fail, too.
CREATE FUNCTION runs_alone(suspicion int) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT suspicion >= 2 $$;

-- Whether an attempt was seen to work: it has said something, or its lease was renewed for a while, several times over.
CREATE FUNCTION ran_well(report_count int, started_at timestamptz, renewed_at timestamptz)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT report_count > 0 OR renewed_at - started_at >= interval '30 s' $$;
