-- An agent platform's own tables beside Postbell, for the catalog of that name: what changes is committed with its
-- notification, and what is over is not told any more.
--
-- For a database to try things in, after the migrations and the catalog, as whoever applied the migrations, with
-- CREATEROLE:
--   psql -1 -v ON_ERROR_STOP=1 -f sql/examples/agent-platform.sql

-- A role of the app owns its tables and functions; it may enqueue.
DO $$ BEGIN
    CREATE ROLE agents_app NOLOGIN;
    GRANT postbell_producer TO agents_app;
    GRANT agents_app TO CURRENT_USER;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL;  -- of another database of this server
END $$;

CREATE SCHEMA agents AUTHORIZATION agents_app;
GRANT USAGE ON SCHEMA agents TO postbell_dispatcher, postbell_owner;
SET LOCAL ROLE agents_app;

CREATE TABLE agents.sessions (
    id             uuid    PRIMARY KEY DEFAULT gen_random_uuid(),
    principal_id   text    NOT NULL,
    -- what the platform does for itself: its failures are shown elsewhere
    is_operational boolean NOT NULL DEFAULT false
);
CREATE TABLE agents.runs (
    id         uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    session_id uuid NOT NULL REFERENCES agents.sessions ON DELETE CASCADE,
    status     text NOT NULL DEFAULT 'running'
        CHECK (status IN ('running', 'waiting', 'completed', 'failed', 'cancelled'))
);
CREATE TABLE agents.approvals (
    id         uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    run_id     uuid        NOT NULL REFERENCES agents.runs ON DELETE CASCADE,
    tool_name  text        NOT NULL,
    expires_at timestamptz NOT NULL,
    decision   text        CHECK (decision IN ('approved', 'denied'))
);
CREATE TABLE agents.questions (
    id       uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    run_id   uuid NOT NULL REFERENCES agents.runs ON DELETE CASCADE,
    question text NOT NULL,
    answer   text
);
CREATE TABLE agents.occurrences (
    id            uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    schedule_id   uuid        NOT NULL,
    principal_id  text        NOT NULL,
    title         text        NOT NULL,
    scheduled_for timestamptz NOT NULL,
    status        text
);

-- ---------------------------------------------------------------------------------------------------------------------
-- The back end: each function is one change and its notification, in the caller's transaction

CREATE FUNCTION agents.request_approval(run uuid, tool text, expires_at timestamptz) RETURNS uuid
LANGUAGE plpgsql SET search_path = pg_catalog, agents, pg_temp AS $$
DECLARE
    asked uuid;
BEGIN
    UPDATE runs r SET status = 'waiting' WHERE r.id = run;
    INSERT INTO approvals AS a (run_id, tool_name, expires_at)
    VALUES (run, tool, request_approval.expires_at) RETURNING a.id INTO asked;
    INSERT INTO postbell.outbox (kind, principal_id, dedupe_key, subject, thread, expires_at, payload)
    SELECT 'approval_requested', s.principal_id, 'approval.requested:' || asked, 'approval:' || asked,
        'session:' || s.id, request_approval.expires_at,
        jsonb_build_object('approval_id', asked, 'session_id', s.id, 'run_id', run, 'tool_name', tool)
    FROM runs r JOIN sessions s ON s.id = r.session_id
    WHERE r.id = run
    ON CONFLICT DO NOTHING;
    RETURN asked;
END
$$;

-- A decision ends the notification, wherever it is.
CREATE FUNCTION agents.decide_approval(approval uuid, decision text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, agents, pg_temp AS $$
BEGIN
    UPDATE approvals a SET decision = decide_approval.decision WHERE a.id = approval;
    PERFORM postbell.supersede('default', 'approval:' || approval);
END
$$;

CREATE FUNCTION agents.ask_question(run uuid, question text) RETURNS uuid
LANGUAGE plpgsql SET search_path = pg_catalog, agents, pg_temp AS $$
DECLARE
    asked uuid;
BEGIN
    UPDATE runs r SET status = 'waiting' WHERE r.id = run;
    INSERT INTO questions AS q (run_id, question) VALUES (run, ask_question.question) RETURNING q.id INTO asked;
    -- the question itself stays here: the app fetches it
    INSERT INTO postbell.outbox (kind, principal_id, dedupe_key, subject, thread, payload)
    SELECT 'question_asked', s.principal_id, 'run.waiting_for_user:' || run || ':' || asked, 'question:' || asked,
        'session:' || s.id, jsonb_build_object('question_id', asked, 'run_id', run, 'session_id', s.id)
    FROM runs r JOIN sessions s ON s.id = r.session_id
    WHERE r.id = run
    ON CONFLICT DO NOTHING;
    RETURN asked;
END
$$;

-- A run must end, whatever becomes of its notification: enqueue_or_note makes of a refusal an event.
CREATE FUNCTION agents.fail_run(run uuid) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, agents, pg_temp AS $$
DECLARE
    its sessions;
BEGIN
    UPDATE runs r SET status = 'failed' WHERE r.id = run;
    SELECT s.* INTO its FROM runs r JOIN sessions s ON s.id = r.session_id WHERE r.id = run;
    PERFORM postbell.enqueue_or_note(
        'run_failed', its.principal_id, 'run.failed:' || run, subject => 'run:' || run,
        thread => 'session:' || its.id,
        payload => jsonb_build_object('run_id', run, 'session_id', its.id)::text);
END
$$;

-- The title is taken over as it is now; postbell makes it one safe line, or replaces it.
CREATE FUNCTION agents.finish_occurrence(occurrence uuid, status text) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, agents, pg_temp AS $$
    UPDATE occurrences o SET status = finish_occurrence.status WHERE o.id = occurrence;
    INSERT INTO postbell.outbox (kind, principal_id, dedupe_key, subject, payload)
    SELECT 'schedule_run_finished', o.principal_id, 'schedule.run_accounted:' || o.id, 'occurrence:' || o.id,
        jsonb_build_object(
            'schedule_id', o.schedule_id, 'occurrence_id', o.id, 'status', o.status, 'schedule_title', o.title,
            'scheduled_for', to_char(o.scheduled_for AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"+00:00"'))
    FROM occurrences o
    WHERE o.id = occurrence
    ON CONFLICT DO NOTHING;
$$;

-- What is open of the session is emptied and never sent.
CREATE FUNCTION agents.delete_session(session uuid) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, agents, pg_temp AS $$
    SELECT postbell.erase('default', 'session:' || session);
    DELETE FROM sessions s WHERE s.id = session;
$$;

-- ---------------------------------------------------------------------------------------------------------------------
-- Hooks: asked right before sending, for what changes the tables and does not say so

-- Approvals that are decided, have expired or are gone.
CREATE FUNCTION agents.approvals_over(
    ids uuid[], tenants text[], principals text[], subjects text[], payloads jsonb[])
RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, agents, pg_temp AS $$
    SELECT n.id
    FROM unnest(ids, payloads) n(id, payload)
    LEFT JOIN approvals a ON a.id = (n.payload ->> 'approval_id')::uuid
    WHERE a.id IS NULL OR a.decision IS NOT NULL OR a.expires_at <= now()
$$;

-- Questions that are answered, of runs that wait no longer, or gone.
CREATE FUNCTION agents.questions_over(
    ids uuid[], tenants text[], principals text[], subjects text[], payloads jsonb[])
RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, agents, pg_temp AS $$
    SELECT n.id
    FROM unnest(ids, payloads) n(id, payload)
    LEFT JOIN questions q ON q.id = (n.payload ->> 'question_id')::uuid
    LEFT JOIN runs r ON r.id = q.run_id
    WHERE q.id IS NULL OR q.answer IS NOT NULL OR r.status <> 'waiting'
$$;

-- Failures of the platform's own sessions, and of sessions that are gone.
CREATE FUNCTION agents.failures_over(
    ids uuid[], tenants text[], principals text[], subjects text[], payloads jsonb[])
RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, agents, pg_temp AS $$
    SELECT n.id
    FROM unnest(ids, payloads) n(id, payload)
    LEFT JOIN runs r ON r.id = (n.payload ->> 'run_id')::uuid
    LEFT JOIN sessions s ON s.id = r.session_id
    WHERE s.id IS NULL OR s.is_operational
$$;

REVOKE ALL ON FUNCTION agents.approvals_over, agents.questions_over, agents.failures_over FROM PUBLIC;
GRANT EXECUTE ON FUNCTION agents.approvals_over, agents.questions_over, agents.failures_over TO postbell_dispatcher;

SET LOCAL ROLE postbell_owner;
SELECT postbell.set_hook('approval_requested', 'stale', 'agents.approvals_over'::regproc);
SELECT postbell.set_hook('question_asked', 'stale', 'agents.questions_over'::regproc);
SELECT postbell.set_hook('run_failed', 'stale', 'agents.failures_over'::regproc);
RESET ROLE;
