// swift-format-ignore-file
// Written by scripts/embed-migrations from sql/migrations; not edited by hand.

extension Migration {
    /// 0019_retention.sql
    static let retention0019 = Migration(
        version: 19, name: "retention",
        checksum: "ec8251cff2b6a2bc56c88f3168c458ebbd9a0c3b2929bfdbb80b5497add0da73",
        sql: #"""
-- Postbell 0019: what is kept how long, and the removal of what was kept long enough.
--
-- Locks: none on existing tables.
-- Older workers: may run on; they remove nothing.
-- Runs in one transaction that the caller opens.

SET LOCAL ROLE postbell_owner;

-- One policy per table. Nothing is removed until somebody says for how long it is kept.
CREATE TABLE postbell.retention (
    table_name     text        PRIMARY KEY,
    keep           interval,                                -- null: for ever
    at_least       interval    NOT NULL DEFAULT '1 day',    -- of the outbox: how long a dedupe key counts for certain
    removed_before timestamptz NOT NULL DEFAULT '-infinity',  -- nothing later than this was ever removed
    -- where the walk through the table goes on; null: at its beginning
    resume_after   uuid,
    resume_block   bigint,
    changed_at     timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    changed_by     text        NOT NULL DEFAULT SESSION_USER,
    CHECK (keep >= at_least)
);

INSERT INTO postbell.retention (table_name)
VALUES ('outbox'), ('deliveries'), ('supersessions'), ('erasures'), ('receipts'), ('events'), ('workers');

-- Retention is the whole instance's: a login that is confined to a tenant has no part in it, whatever it names.
CREATE FUNCTION postbell.refuse_confined() RETURNS void
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM postbell.role_tenants r WHERE r.role_name = SESSION_USER) THEN
        PERFORM postbell.refuse('notification.not_permitted', 'retention is for all tenants, and not for this login');
    END IF;
END
$$;

CREATE FUNCTION postbell.refuse_retention(detail text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING MESSAGE = 'retention.invalid: ' || detail, ERRCODE = 'PB501';
END
$$;

-- Says how long the rows of a table are kept; null: for ever. What is told by other rows is kept as long as they are:
-- the status of a notification by the ledger, how its requeueing came by events, the worker of an attempt by workers.
CREATE FUNCTION postbell.set_retention(table_name text, keep interval) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
BEGIN
    PERFORM postbell.refuse_confined();
    UPDATE postbell.retention p SET keep = keep, changed_at = clock_timestamp(), changed_by = SESSION_USER
    WHERE p.table_name = table_name;
    IF NOT FOUND THEN
        PERFORM postbell.refuse_retention('there is no policy for a table of that name');
    END IF;
    IF EXISTS (
            SELECT 1
            FROM (VALUES ('deliveries', 'outbox'), ('events', 'outbox'), ('workers', 'deliveries')) n(longer, shorter)
            JOIN postbell.retention l ON l.table_name = n.longer
            JOIN postbell.retention s ON s.table_name = n.shorter
            WHERE l.keep IS NOT NULL AND (s.keep IS NULL OR l.keep < s.keep)) THEN
        PERFORM postbell.refuse_retention(
            'deliveries and events are kept at least as long as outbox, and workers as long as deliveries');
    END IF;
EXCEPTION WHEN check_violation THEN
    PERFORM postbell.refuse_retention('that is shorter than at_least of its policy');
END
$$;

-- From when on the history is whole: what the audit may expect to find. The minutes are for what belongs together and
-- has the time of two clocks.
CREATE FUNCTION postbell.retained_since() RETURNS timestamptz
LANGUAGE sql STABLE AS $$
    SELECT max(p.removed_before) + interval '10 min'
    FROM postbell.retention p
    WHERE p.table_name IN ('outbox', 'deliveries')
$$;

-- Notifications that are over, with their ends and acknowledgements. Looks at `row_limit` of those that are old enough
-- and goes on behind them the next time, so open ones never hold up the others. A notification is kept from the last of
-- what happened to it: when it was planned for, its ends, its rows on the ledger. What is open, or on a lease that was
-- not given back, is left alone: an end is never taken back, so what is over in this snapshot stays so. Waits for
-- nobody.
CREATE FUNCTION postbell.retain_outbox(cutoff timestamptz, row_limit int, OUT removed bigint, OUT is_behind boolean)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
DECLARE
    first uuid := coalesce(
        (SELECT p.resume_after FROM postbell.retention p WHERE p.table_name = 'outbox'),
        '00000000-0000-0000-0000-000000000000');
    bound uuid := postbell.uuid_floor(cutoff);
    last  uuid;
BEGIN
    WITH stretch AS MATERIALIZED (
        SELECT o.id, o.planned_at
        FROM postbell.outbox o
        WHERE o.id > first AND o.id < bound
        ORDER BY o.id
        LIMIT row_limit
    ),
    held AS MATERIALIZED (
        SELECT u.id FROM postbell.leases l, unnest(l.ids) u(id)
    ),
    over AS MATERIALIZED (
        SELECT s.id
        FROM stretch s
        WHERE s.planned_at < cutoff
            AND NOT EXISTS (SELECT 1 FROM postbell.queue q WHERE q.notification_id = s.id)
            AND s.id NOT IN (SELECT h.id FROM held h)
            AND NOT EXISTS (
                SELECT 1 FROM postbell.settlements e WHERE e.notification_id = s.id AND e.at >= cutoff)
            AND NOT EXISTS (
                SELECT 1 FROM postbell.deliveries d WHERE d.notification_id = s.id AND d.id >= bound)
    ),
    locked AS MATERIALIZED (
        SELECT n.tid, n.id, n.tenant_id
        FROM over v
        CROSS JOIN LATERAL (
            SELECT o.ctid AS tid, o.id, o.tenant_id
            FROM postbell.outbox o
            WHERE o.id = v.id
            FOR UPDATE SKIP LOCKED
        ) n
    ),
    ends AS (
        DELETE FROM postbell.settlements e
        WHERE e.notification_id = ANY (ARRAY(SELECT l.id FROM locked l))
    ),
    acknowledged AS (
        DELETE FROM postbell.acknowledgements a
        WHERE a.ctid = ANY (ARRAY(
            -- one by one: as a join it could become a walk through all there are
            SELECT k.tid
            FROM locked l
            CROSS JOIN LATERAL (
                SELECT a.ctid AS tid
                FROM postbell.acknowledgements a
                WHERE a.tenant_id = l.tenant_id AND a.notification_id = l.id
                OFFSET 0
            ) k))
    ),
    gone AS (
        DELETE FROM postbell.outbox o
        WHERE o.ctid = ANY (ARRAY(SELECT l.tid FROM locked l))
        RETURNING o.id
    )
    SELECT
        (SELECT count(*) FROM gone),
        count(*) = row_limit,
        (SELECT s.id FROM stretch s ORDER BY s.id DESC LIMIT 1)
    INTO removed, is_behind, last
    FROM stretch;
    UPDATE postbell.retention p SET
        resume_after = CASE WHEN is_behind THEN last END,
        removed_before = CASE WHEN removed > 0 THEN greatest(p.removed_before, cutoff) ELSE p.removed_before END
    WHERE p.table_name = 'outbox';
END
$$;

-- Rows of a table whose ids are of the time that they tell of, the oldest first.
CREATE FUNCTION postbell.retain_appended(
    policy text, cutoff timestamptz, row_limit int, OUT removed bigint, OUT is_behind boolean
)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET jit = off AS $$
BEGIN
    EXECUTE format(
        'DELETE FROM postbell.%1$I t
        WHERE t.ctid = ANY (ARRAY(
            SELECT o.ctid FROM postbell.%1$I o WHERE o.id < $1 ORDER BY o.id LIMIT $2 FOR UPDATE SKIP LOCKED))',
        policy)
    USING postbell.uuid_floor(cutoff), row_limit;
    GET DIAGNOSTICS removed = ROW_COUNT;
    is_behind := removed = row_limit;
END
$$;

-- Rows of a table without an index by time: walks through it, some blocks a call, and begins anew at its end.
CREATE FUNCTION postbell.retain_walked(
    policy text, time_column text, cutoff timestamptz, OUT removed bigint, OUT is_behind boolean
)
LANGUAGE plpgsql VOLATILE SET jit = off AS $$
DECLARE
    blocks bigint := pg_relation_size(format('postbell.%I', policy)) / current_setting('block_size')::int;
    first  bigint := coalesce((SELECT p.resume_block FROM postbell.retention p WHERE p.table_name = policy), 0);
    next   bigint := first + 200;
BEGIN
    EXECUTE format(
        'DELETE FROM postbell.%I t WHERE t.ctid >= $1 AND t.ctid < $2 AND t.%I < $3', policy, time_column)
    USING format('(%s,0)', first)::tid, format('(%s,0)', next)::tid, cutoff;
    GET DIAGNOSTICS removed = ROW_COUNT;
    is_behind := next < blocks;
    UPDATE postbell.retention p SET resume_block = CASE WHEN is_behind THEN next END WHERE p.table_name = policy;
END
$$;

-- Removes what was kept long enough, a small batch of each table that has a policy; answers how much, and whether
-- there is more to look at. Days of the ledger: drop_ledger_day. For one session at a time; others answer nothing.
CREATE FUNCTION postbell.retain(
    row_limit int DEFAULT 500, OUT table_name text, OUT removed bigint, OUT is_behind boolean
) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    reading timestamptz := clock_timestamp();
    policy  record;
    -- a fact counts for what was enqueued before it, so it stays until nothing so old is left
    oldest  timestamptz;
BEGIN
    PERFORM postbell.refuse_confined();
    IF NOT pg_try_advisory_xact_lock(postbell.awake_class(), -2) THEN
        RETURN;
    END IF;
    FOR policy IN
        SELECT p.table_name AS name, reading - p.keep AS cutoff
        FROM postbell.retention p
        WHERE p.keep IS NOT NULL AND p.table_name <> 'deliveries'
        ORDER BY p.table_name <> 'outbox', p.table_name
    LOOP
        table_name := policy.name;
        IF table_name = 'outbox' THEN
            SELECT r.* INTO removed, is_behind FROM postbell.retain_outbox(policy.cutoff, row_limit) r;
        ELSIF table_name = 'workers' THEN
            DELETE FROM postbell.workers w
            WHERE w.heartbeat_at < policy.cutoff
                AND NOT EXISTS (SELECT 1 FROM postbell.leases l WHERE l.owner = w.owner);
            GET DIAGNOSTICS removed = ROW_COUNT;
            is_behind := false;
        ELSIF table_name = 'events' THEN
            SELECT r.* INTO removed, is_behind
            FROM postbell.retain_appended(table_name, policy.cutoff, row_limit) r;
        ELSE
            SELECT least(policy.cutoff, min(f.created_at)) INTO oldest
            FROM (SELECT o.created_at FROM postbell.outbox o ORDER BY o.id LIMIT 1) f;
            IF table_name = 'receipts' THEN
                SELECT r.* INTO removed, is_behind FROM postbell.retain_walked(table_name, 'seen_at', oldest) r;
            ELSE
                SELECT r.* INTO removed, is_behind FROM postbell.retain_appended(table_name, oldest, row_limit) r;
            END IF;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;

-- The audit of 0010, which looks back to where the history is whole, and no further.
CREATE OR REPLACE FUNCTION postbell.audit(
    since timestamptz DEFAULT pg_catalog.now() - interval '1 day',
    grace interval    DEFAULT '60 s'
)
RETURNS TABLE (fault text, notification_id uuid, detail text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_hashjoin = on
SET enable_mergejoin = on
SET enable_seqscan = on
SET enable_bitmapscan = on
SET enable_nestloop = on
AS $$
    SELECT f.*
    FROM (
        SELECT * FROM postbell.audit_work(greatest(since, postbell.retained_since()), grace)
        UNION ALL SELECT * FROM postbell.audit_ledger(greatest(since, postbell.retained_since()))
        UNION ALL SELECT * FROM postbell.audit_registry(greatest(since, postbell.retained_since()))
    ) f
    WHERE (SELECT postbell.confined_tenant()) IS NULL
        OR EXISTS (
            SELECT 1 FROM postbell.outbox o
            WHERE o.id = f.notification_id AND o.tenant_id = (SELECT postbell.confined_tenant()))
    -- always asked: who named another's tenant is refused, also where there is no fault
    UNION ALL
    SELECT NULL::text, NULL::uuid, NULL::text WHERE postbell.confined_tenant() = ''
$$;

REVOKE ALL ON postbell.retention FROM PUBLIC;
REVOKE ALL ON FUNCTION
    postbell.refuse_confined(),
    postbell.refuse_retention(text),
    postbell.set_retention(text, interval),
    postbell.retained_since(),
    postbell.retain_outbox(timestamptz, int),
    postbell.retain_appended(text, timestamptz, int),
    postbell.retain_walked(text, text, timestamptz),
    postbell.retain(int)
FROM PUBLIC;
GRANT SELECT ON postbell.retention TO postbell_reader;
GRANT EXECUTE ON FUNCTION postbell.retain(int) TO postbell_dispatcher, postbell_operator;
GRANT EXECUTE ON FUNCTION postbell.set_retention(text, interval) TO postbell_operator;

RESET ROLE;
"""#)
}
