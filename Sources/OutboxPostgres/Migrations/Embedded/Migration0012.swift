// swift-format-ignore-file
// Written by scripts/embed-migrations from sql/migrations; not edited by hand.

extension Migration {
    /// 0012_hooks.sql
    static let hooks0012 = Migration(
        version: 12, name: "hooks",
        checksum: "1c7f9e30d0a0329113d660523e9c8f36bb3216e4439e7b3cabf5a5b4e5c457da",
        sql: #"""
-- Postbell 0012: hooks of the app, which are asked before a notification of their kind is sent.
--
-- Locks: ACCESS EXCLUSIVE for a moment on workers (a column).
-- Older workers: must be stopped before a hook is set; they do not ask it.
-- Runs in one transaction that the caller opens.

SET LOCAL ROLE postbell_owner;

-- Which function of the app answers for a kind, all revisions of it. Named, not referenced: a function that is dropped
-- leaves its row behind, so that its kind is held back instead of let through.
CREATE TABLE postbell.hooks (
    kind            text        NOT NULL,
    purpose         text        NOT NULL CHECK (purpose IN ('stale', 'access')),
    function_schema name        NOT NULL,
    function_name   name        NOT NULL,
    timeout         interval    NOT NULL CHECK (timeout BETWEEN '10 ms' AND '10 s'),
    set_at          timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    set_by          text        NOT NULL DEFAULT SESSION_USER,
    PRIMARY KEY (kind, purpose)
);

-- The function of that name that has a hook's arguments; null: there is none.
CREATE FUNCTION postbell.hook_function(function_schema name, function_name name) RETURNS oid
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.oid
    FROM pg_proc p
    JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = $1
        AND p.proname = $2
        -- uuid[], text[], text[], text[], jsonb[]
        AND p.proargtypes = '2951 1009 1009 1009 3807'::oidvector
$$;

-- What is wrong with a function as a hook; null: nothing. The one place of the rules: asked when a hook is set, by
-- `postbell check`, and before each call, since a function can be replaced.
CREATE FUNCTION postbell.hook_fault(function oid) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE
        WHEN f.oid IS NULL THEN 'the function does not exist'
        WHEN f.proargtypes <> '2951 1009 1009 1009 3807'::oidvector
            OR f.prorettype <> 'uuid'::regtype
            OR NOT f.proretset
            OR f.prokind <> 'f'
            THEN 'it must be a function (uuid[], text[], text[], text[], jsonb[]) that returns SETOF uuid'
        WHEN NOT f.prosecdef THEN 'it must be SECURITY DEFINER'
        WHEN r.rolsuper OR r.rolbypassrls OR r.rolcreaterole
            THEN 'its owner must be a role of the app without SUPERUSER, BYPASSRLS and CREATEROLE'
        WHEN EXISTS (
            SELECT 1 FROM pg_roles p
            WHERE p.rolname IN ('postbell_owner', 'postbell_operator', 'postbell_dispatcher', 'postbell_registrar')
                AND pg_has_role(f.proowner, p.oid, 'MEMBER'))
            THEN 'its owner must be a role of the app, not a member of Postbell''s roles'
        -- where pg_temp is not named, temporary tables hide all others
        WHEN path.setting IS NULL OR path.setting !~ '(^|,) *pg_temp$' OR path.setting ~ '\$user'
            THEN 'it must pin its search_path, with pg_temp last and without $user'
        WHEN EXISTS (
            SELECT 1 FROM aclexplode(coalesce(f.proacl, acldefault('f', f.proowner))) a
            WHERE a.grantee NOT IN (f.proowner, (SELECT d.oid FROM pg_roles d WHERE d.rolname = 'postbell_dispatcher')))
            THEN 'only postbell_dispatcher may execute it: REVOKE it from PUBLIC and others'
        WHEN NOT has_schema_privilege('postbell_dispatcher', f.pronamespace, 'USAGE')
            THEN 'postbell_dispatcher lacks USAGE on its schema'
        WHEN NOT has_function_privilege('postbell_dispatcher', f.oid, 'EXECUTE')
            THEN 'postbell_dispatcher lacks EXECUTE on it'
    END
    FROM (SELECT $1 AS asked) x
    LEFT JOIN pg_proc f ON f.oid = x.asked
    LEFT JOIN pg_roles r ON r.oid = f.proowner
    LEFT JOIN LATERAL (
        SELECT substr(c, length('search_path=') + 1) AS setting
        FROM unnest(f.proconfig) c
        WHERE c LIKE 'search\_path=%'
    ) path ON true
$$;

-- Names the function that is asked before a kind's notifications are sent: `stale` answers which of them are over,
-- `access` which of them their principal may still see. Idempotent; null removes the hook.
CREATE FUNCTION postbell.set_hook(kind text, purpose text, function regprocedure, timeout interval DEFAULT '2 s')
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    fault text;
BEGIN
    IF set_hook.purpose IS NULL OR set_hook.purpose NOT IN ('stale', 'access') THEN
        PERFORM postbell.refuse('kind.hook', 'a hook is stale or access');
    END IF;
    IF set_hook.function IS NULL THEN
        DELETE FROM postbell.hooks h WHERE h.kind = set_hook.kind AND h.purpose = set_hook.purpose;
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT 1 FROM postbell.kinds k WHERE k.name = set_hook.kind) THEN
        PERFORM postbell.refuse('kind.hook', 'there is no such kind');
    END IF;
    IF set_hook.timeout IS NULL OR set_hook.timeout NOT BETWEEN '10 ms' AND '10 s' THEN
        PERFORM postbell.refuse('kind.hook', 'timeout must be 10 ms to 10 s');
    END IF;
    fault := postbell.hook_fault(set_hook.function);
    IF fault IS NOT NULL THEN
        PERFORM postbell.refuse('kind.hook', fault);
    END IF;
    INSERT INTO postbell.hooks AS h (kind, purpose, function_schema, function_name, timeout)
    SELECT set_hook.kind, set_hook.purpose, n.nspname, p.proname, set_hook.timeout
    FROM pg_proc p
    JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE p.oid = set_hook.function
    ON CONFLICT (kind, purpose) DO UPDATE SET
        function_schema = excluded.function_schema,
        function_name = excluded.function_name,
        timeout = excluded.timeout,
        set_at = excluded.set_at,
        set_by = excluded.set_by
    WHERE (h.function_schema, h.function_name, h.timeout)
        <> (excluded.function_schema, excluded.function_name, excluded.timeout);
END
$$;

-- Hooks that cannot be asked as things are, and why.
CREATE FUNCTION postbell.hook_faults() RETURNS TABLE (kind text, purpose text, function text, fault text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT h.kind, h.purpose, format('%I.%I', h.function_schema, h.function_name), f.fault
    FROM postbell.hooks h
    CROSS JOIN LATERAL (
        SELECT postbell.hook_fault(postbell.hook_function(h.function_schema, h.function_name)) AS fault
    ) f
    WHERE f.fault IS NOT NULL
    ORDER BY h.kind, h.purpose
$$;

-- Asks a hook about notifications: what its function answers, each value once, and at most one value more than was
-- asked about. Runs as the caller, a dispatcher, until the function takes over as its own owner. The planner is the
-- server's own again, for the tables are the app's.
CREATE FUNCTION postbell.ask_hook(kind text, purpose text, ids uuid[]) RETURNS SETOF uuid
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = on SET enable_hashjoin = on SET enable_mergejoin = on SET enable_bitmapscan = on
SET plan_cache_mode = auto
AS $$
#variable_conflict use_column
DECLARE
    hook  postbell.hooks;
    fault text;
BEGIN
    SELECT h.* INTO hook FROM postbell.hooks h WHERE h.kind = ask_hook.kind AND h.purpose = ask_hook.purpose;
    IF hook.kind IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'PB204', MESSAGE = 'kind.no_hook: the hook was removed';
    END IF;
    fault := postbell.hook_fault(postbell.hook_function(hook.function_schema, hook.function_name));
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'PB203', MESSAGE = 'kind.hook: ' || fault;
    END IF;
    RETURN QUERY EXECUTE format(
        'SELECT DISTINCT f.id
        FROM (
            SELECT
                array_agg(n.id) AS ids, array_agg(n.tenant_id) AS tenants, array_agg(n.principal_id) AS principals,
                array_agg(n.subject) AS subjects, array_agg(n.payload::jsonb) AS payloads
            FROM postbell.outbox n
            WHERE n.id = ANY ($1)
            HAVING count(*) > 0
        ) a
        CROSS JOIN LATERAL %I.%I(a.ids, a.tenants, a.principals, a.subjects, a.payloads) f(id)
        LIMIT $2',
        hook.function_schema, hook.function_name)
    USING ask_hook.ids, cardinality(ask_hook.ids) + 1;
END
$$;

-- What each worker says of the kinds whose hooks fail: kind to reason, since, until.
ALTER TABLE postbell.workers ADD COLUMN hooks jsonb NOT NULL DEFAULT '{}';

-- Kinds of which a live worker sends nothing, because their hooks fail.
CREATE VIEW postbell.hook_health WITH (security_invoker = true) AS
SELECT
    h.key AS kind, w.name AS worker, h.value ->> 'reason' AS reason,
    (h.value ->> 'since')::timestamptz AS since, (h.value ->> 'until')::timestamptz AS until
FROM postbell.workers w
CROSS JOIN LATERAL pg_catalog.jsonb_each(w.hooks) h
WHERE w.stopped_at IS NULL AND w.heartbeat_at > pg_catalog.now() - postbell.heartbeat_limit();

REVOKE ALL ON postbell.hooks, postbell.hook_health FROM PUBLIC;
REVOKE ALL ON FUNCTION
    postbell.hook_function(name, name),
    postbell.hook_fault(oid),
    postbell.set_hook(text, text, regprocedure, interval),
    postbell.hook_faults(),
    postbell.ask_hook(text, text, uuid[])
FROM PUBLIC;
GRANT SELECT ON postbell.hooks, postbell.hook_health TO postbell_dispatcher, postbell_reader;
GRANT UPDATE (hooks) ON postbell.workers TO postbell_dispatcher;
GRANT EXECUTE ON FUNCTION
    postbell.hook_function(name, name),
    postbell.hook_fault(oid),
    postbell.hook_faults(),
    postbell.ask_hook(text, text, uuid[])
TO postbell_dispatcher;

RESET ROLE;
"""#)
}
