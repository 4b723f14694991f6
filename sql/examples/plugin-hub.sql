-- A plugin hub's own tables beside Postbell, for the catalog of that name: a plugin with codes of its own, jobs that
-- end, and people who were given an app or not.
--
-- For a database to try things in, after the migrations and the catalog, as whoever applied the migrations, with
-- CREATEROLE:
--   psql -1 -v ON_ERROR_STOP=1 -f sql/examples/plugin-hub.sql

-- A role of the hub owns its tables and functions, a role of each plugin its namespace; both may enqueue.
DO $$ BEGIN
    CREATE ROLE hub_app NOLOGIN;
    CREATE ROLE hub_plugin_music NOLOGIN;
    GRANT postbell_producer TO hub_app, hub_plugin_music;
    GRANT hub_app, hub_plugin_music TO CURRENT_USER;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL;  -- of another database of this server
END $$;

CREATE SCHEMA hub AUTHORIZATION hub_app;
GRANT USAGE ON SCHEMA hub TO postbell_dispatcher, postbell_owner;
SET LOCAL ROLE hub_app;

-- Who was given which app of which publisher. The platform's own codes are everybody's.
CREATE TABLE hub.grants (
    person    text NOT NULL,
    namespace text NOT NULL,
    PRIMARY KEY (person, namespace)
);
CREATE TABLE hub.jobs (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    person text   NOT NULL,
    state  text   NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'finished', 'failed'))
);

-- ---------------------------------------------------------------------------------------------------------------------
-- The back end: each function is one change and its notification, in the caller's transaction

-- A failure is a code of its own; why it failed is in the job's log, which the app opens by the id.
CREATE FUNCTION hub.end_job(job bigint, state text) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, hub, pg_temp AS $$
    WITH ended AS (
        UPDATE jobs j SET state = end_job.state WHERE j.id = job AND j.state = 'running' RETURNING j.*
    )
    INSERT INTO postbell.outbox (kind, principal_id, dedupe_key, subject, thread, payload)
    SELECT 'code', e.person, 'job:' || e.id, 'job:' || e.id, 'officer/core',
        jsonb_build_object('code', 'officer/core:job-' || e.state, 'id', e.id)
    FROM ended e
    ON CONFLICT DO NOTHING;
$$;

-- What a plugin tells somebody: a code of its own, known or not, and numbers.
CREATE FUNCTION hub.tell(person text, code text, event text, n int DEFAULT NULL) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, hub, pg_temp AS $$
    INSERT INTO postbell.outbox (kind, principal_id, dedupe_key, thread, payload)
    VALUES ('code', person, code || ':' || event || ':' || person, split_part(code, ':', 1),
        jsonb_strip_nulls(jsonb_build_object('code', code, 'n', n)))
    ON CONFLICT DO NOTHING;
$$;

CREATE FUNCTION hub.dismiss_job(job bigint) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, hub, pg_temp AS $$
    DELETE FROM jobs j WHERE j.id = job
$$;

-- ---------------------------------------------------------------------------------------------------------------------
-- Hooks: asked right before sending

-- Which of these their principal may still see: the platform's codes, and those of apps that they were given.
CREATE FUNCTION hub.may_see(
    ids uuid[], tenants text[], principals text[], subjects text[], payloads jsonb[])
RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, hub, pg_temp AS $$
    SELECT n.id
    FROM unnest(ids, principals, payloads) n(id, person, payload)
    CROSS JOIN LATERAL split_part(n.payload ->> 'code', ':', 1) code(namespace)
    WHERE code.namespace = 'officer/core'
        OR EXISTS (SELECT 1 FROM grants g WHERE g.person = n.person AND g.namespace = code.namespace)
$$;

-- Which of these are over: of jobs that were dismissed.
CREATE FUNCTION hub.jobs_over(
    ids uuid[], tenants text[], principals text[], subjects text[], payloads jsonb[])
RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, hub, pg_temp AS $$
    SELECT n.id
    FROM unnest(ids, subjects) n(id, subject)
    WHERE n.subject LIKE 'job:%'
        AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = split_part(n.subject, ':', 2)::bigint)
$$;

REVOKE ALL ON FUNCTION hub.may_see, hub.jobs_over FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hub.may_see, hub.jobs_over TO postbell_dispatcher;

-- The plugin is installed: it gets a namespace, and brings its codes itself.
SET LOCAL ROLE postbell_owner;
SELECT postbell.assign_namespace('hub_plugin_music', 'officerdev/music');
SELECT postbell.set_hook('code', 'access', 'hub.may_see'::regproc);
SELECT postbell.set_hook('code', 'stale', 'hub.jobs_over'::regproc);
SET LOCAL ROLE hub_plugin_music;
SELECT postbell.install_codes('{
    "12.3": {"title": "{n} new tracks", "target": "music", "route": "music/{id}", "thread": "music"}
}');
RESET ROLE;
