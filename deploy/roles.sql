-- The logins of an installation of Postbell. Run it with psql, in the application's database, before the first
-- `postbell migrate`; again at any time, it changes only what differs.
--
--   psql -X -d app -f deploy/roles.sql
--   psql -X -d app -v producer=app_backend -v dispatchers=postbell_apns,postbell_fcm -f deploy/roles.sql
--
-- Runs as the database's owner with CREATEROLE; no superuser is needed. PostgreSQL 15 to 18.
--
-- A login that exists already (an application's, say) is only granted its part and keeps its own settings. One that is
-- made here gets limits too, and its comment says so. No password is set: give one with psql's \password, which sends
-- no clear text, or let pg_hba.conf take a certificate or the name of the Unix user (deploy/README.md).

\set ON_ERROR_STOP on
\set QUIET on
\if :{?migrator} \else \set migrator postbell_migrate \endif
\if :{?producer} \else \set producer postbell_app \endif
\if :{?registrar} \else \set registrar postbell_devices \endif
\if :{?dispatchers} \else \set dispatchers postbell_apns \endif
\if :{?reader} \else \set reader postbell_oncall \endif
\if :{?operator} \else \set operator postbell_admin \endif

BEGIN;

-- A DO block sees no variable of psql; settings of the transaction carry them there.
\o /dev/null
SELECT set_config('postbell_logins.migrator', :'migrator', true),
       set_config('postbell_logins.producer', :'producer', true),
       set_config('postbell_logins.registrar', :'registrar', true),
       set_config('postbell_logins.dispatchers', :'dispatchers', true),
       set_config('postbell_logins.reader', :'reader', true),
       set_config('postbell_logins.operator', :'operator', true);
\o

-- The roles that carry the rights. Migration 0001 makes them too, but then the migrator would need CREATEROLE.
DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY[
        'postbell_owner', 'postbell_producer', 'postbell_registrar',
        'postbell_dispatcher', 'postbell_reader', 'postbell_operator'
    ] LOOP
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = wanted) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
        END IF;
    END LOOP;
    IF NOT pg_catalog.pg_has_role('postbell_operator', 'postbell_reader', 'MEMBER') THEN
        GRANT postbell_reader TO postbell_operator;
    END IF;
END
$$;

-- The logins. Each row: the part it plays, its most sessions (-1: no limit), and the settings of one made here.
DO $$
DECLARE
    login  record;
    found  record;
    listed text;
BEGIN
    FOR login IN
        SELECT trim(name) AS name, part.*
        FROM (VALUES
            -- A migration takes as long as it takes, but others queue behind its wait for a lock only so long.
            ('migrator', 'postbell_owner', 4, ARRAY[
                'statement_timeout = 0', 'lock_timeout = ''10s''', 'idle_in_transaction_session_timeout = ''1min''',
                'search_path = pg_catalog, pg_temp', 'TimeZone = ''UTC''']),
            -- The insert is part of the application's own transaction, so its tables stay on the path, and its pool
            -- decides on sessions. Postbell's functions pin their path themselves.
            ('producer', 'postbell_producer', -1, ARRAY[
                'statement_timeout = ''30s''', 'lock_timeout = ''5s''',
                'idle_in_transaction_session_timeout = ''1min''',
                'search_path = "$user", public, pg_temp', 'TimeZone = ''UTC''']),
            ('registrar', 'postbell_registrar', -1, ARRAY[
                'statement_timeout = ''10s''', 'lock_timeout = ''2s''',
                'idle_in_transaction_session_timeout = ''10s''',
                'search_path = pg_catalog, pg_temp', 'TimeZone = ''UTC''']),
            -- A worker has three sessions, and one more while it starts or applies retention: 80 is twenty workers.
            ('dispatchers', 'postbell_dispatcher', 80, ARRAY[
                'statement_timeout = ''10s''', 'lock_timeout = ''1s''',
                'idle_in_transaction_session_timeout = ''10s''',
                'search_path = pg_catalog, pg_temp', 'TimeZone = ''UTC''']),
            -- People write `TABLE ledger`. A forgotten transaction would hold back VACUUM on the queue.
            ('reader', 'postbell_reader', 20, ARRAY[
                'statement_timeout = ''1min''', 'lock_timeout = ''2s''',
                'idle_in_transaction_session_timeout = ''1min''', 'default_transaction_read_only = on',
                'search_path = pg_catalog, postbell, pg_temp', 'TimeZone = ''UTC''']),
            ('operator', 'postbell_operator', 10, ARRAY[
                'statement_timeout = ''5min''', 'lock_timeout = ''2s''',
                'idle_in_transaction_session_timeout = ''1min''',
                'search_path = pg_catalog, postbell, pg_temp', 'TimeZone = ''UTC'''])
        ) AS part (variable, granted, sessions, settings),
        LATERAL regexp_split_to_table(current_setting('postbell_logins.' || part.variable), ',') AS name
    LOOP
        IF login.name = '' OR login.name ~ '^(pg_|postbell_(owner|producer|registrar|dispatcher|reader|operator)$)' THEN
            RAISE EXCEPTION 'role "%" cannot be the login of the %', login.name, login.variable
                USING HINT = 'Name a login of your own, as in -v ' || login.variable || '=postbell_x.';
        END IF;
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = login.name) THEN
            EXECUTE format('CREATE ROLE %I LOGIN', login.name);
            EXECUTE format('COMMENT ON ROLE %I IS %L', login.name, 'Postbell: kept by deploy/roles.sql');
        END IF;
        SELECT r.oid, r.rolsuper, coalesce(shobj_description(r.oid, 'pg_authid'), '') LIKE 'Postbell: %' AS is_ours
        INTO found FROM pg_catalog.pg_roles r WHERE r.rolname = login.name;
        IF found.rolsuper THEN
            RAISE EXCEPTION 'role "%" is a superuser, whom no grant limits', login.name
                USING HINT = 'Name another login for the ' || login.variable || '.';
        END IF;
        IF NOT EXISTS (
            SELECT FROM pg_catalog.pg_auth_members
            WHERE roleid = login.granted::regrole AND member = found.oid
        ) THEN
            EXECUTE format('GRANT %I TO %I', login.granted, login.name);
        END IF;
        CONTINUE WHEN NOT found.is_ours;
        EXECUTE format('ALTER ROLE %I CONNECTION LIMIT %s', login.name, login.sessions);
        FOREACH listed IN ARRAY login.settings LOOP
            EXECUTE format('ALTER ROLE %I SET %s', login.name, listed);
        END LOOP;
    END LOOP;
END
$$;

-- A worker talks to the outside, so its login must not be able to do anyone else's work.
DO $$
DECLARE
    mixed record;
BEGIN
    SELECT d.name, g.name AS other INTO mixed
    FROM regexp_split_to_table(current_setting('postbell_logins.dispatchers'), '\s*,\s*') AS d (name),
         unnest(ARRAY['postbell_owner', 'postbell_producer', 'postbell_registrar', 'postbell_reader']) AS g (name)
    WHERE pg_catalog.pg_has_role(trim(d.name), g.name, 'MEMBER');
    IF FOUND THEN
        RAISE EXCEPTION 'role "%" is to dispatch and is a member of % too', mixed.name, mixed.other
            USING HINT = 'Give the worker a login of its own.';
    END IF;
END
$$;

-- CREATE for the schema itself; CONNECT because a careful database has taken it from PUBLIC.
SET LOCAL client_min_messages = error;
SELECT format('GRANT CREATE ON DATABASE %I TO %I', current_database(), :'migrator') \gexec
SELECT format(
    'GRANT CONNECT ON DATABASE %I TO postbell_owner, postbell_producer, postbell_registrar, postbell_dispatcher, '
    'postbell_reader, postbell_operator', current_database()) \gexec
DO $$
BEGIN
    IF NOT has_database_privilege(current_setting('postbell_logins.migrator'), current_database(), 'CREATE') THEN
        RAISE EXCEPTION 'role "%" may not create the schema in database "%"',
            current_setting('postbell_logins.migrator'), current_database()
            USING HINT = 'Run this script as the owner of the database.';
    END IF;
END
$$;

COMMIT;
