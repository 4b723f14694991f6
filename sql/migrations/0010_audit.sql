-- Postbell 0010: the audit.
--
-- Locks: none on existing tables.
-- Older workers: may run on; nothing they read changes.
-- Runs in one transaction that the caller opens.

SET LOCAL ROLE postbell_owner;

-- The conservation law and every other invariant, over notifications created since. No row: all is well. STABLE, so
-- all its queries share one snapshot; SECURITY DEFINER, so it sees everything whoever asks; the planner is set free,
-- because a worker's pinned session would make it quadratic. How much it looked at: postbell.audit_scope, in the same
-- statement the same snapshot.

CREATE FUNCTION postbell.audit(
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
    WITH place AS MATERIALIZED (
        SELECT * FROM postbell.places
    ),
    recent AS MATERIALIZED (
        SELECT o.id, o.routes FROM postbell.outbox o WHERE o.id >= postbell.uuid_floor(since)
    ),
    -- a minute of slack: the worker's ids follow the database's clock, not exactly
    sent AS MATERIALIZED (
        SELECT d.* FROM postbell.deliveries d WHERE d.id >= postbell.uuid_floor(since - interval '1 minute')
    )
    SELECT
        'two_places', p.notification_id,
        'route ' || p.route_no || ': ' || string_agg(p.place || coalesce(' ' || p.batch, ''), ', ')
    FROM place p
    GROUP BY p.notification_id, p.route_no
    HAVING count(*) > 1

    UNION ALL
    SELECT 'orphan', p.notification_id, p.place || ' without its notification'
    FROM place p
    WHERE NOT EXISTS (SELECT 1 FROM postbell.outbox o WHERE o.id = p.notification_id)

    -- nothing at all is left of it
    UNION ALL
    SELECT 'lost', r.id, 'no place, no final ledger row, no settlement'
    FROM recent r
    WHERE NOT EXISTS (SELECT 1 FROM place p WHERE p.notification_id = r.id)
        AND NOT EXISTS (SELECT 1 FROM postbell.settlements s WHERE s.notification_id = r.id)
        AND NOT EXISTS (SELECT 1 FROM sent d WHERE d.notification_id = r.id AND d.final)

    -- one of the routes it was queued for is gone without an end
    UNION ALL
    SELECT 'lost_route', x.id, 'route ' || x.route_no || ': no place, no final ledger row, no settlement'
    FROM (
        SELECT r.id, u.route_no
        FROM recent r
        CROSS JOIN LATERAL unnest(r.routes) u(route_no)
        WHERE u.route_no <> 0
    ) x
    WHERE NOT EXISTS (SELECT 1 FROM place p WHERE p.notification_id = x.id AND p.route_no = x.route_no)
        AND NOT EXISTS (
            SELECT 1 FROM postbell.settlements s
            WHERE s.notification_id = x.id AND coalesce(s.route_no, x.route_no) = x.route_no)
        AND NOT EXISTS (
            SELECT 1 FROM sent d
            WHERE d.notification_id = x.id AND d.route_no = x.route_no AND d.final)

    -- it was tried, and then nobody went on
    UNION ALL
    SELECT
        'unfinished', x.notification_id,
        'route ' || x.route_no || ': ledger rows, none final, no place, no settlement'
    FROM (
        SELECT d.notification_id, d.route_no
        FROM sent d
        GROUP BY 1, 2
        HAVING NOT bool_or(d.final)
    ) x
    WHERE NOT EXISTS (
            SELECT 1 FROM place p
            WHERE p.notification_id = x.notification_id AND p.route_no = x.route_no)
        AND NOT EXISTS (
            SELECT 1 FROM postbell.settlements s
            WHERE s.notification_id = x.notification_id AND coalesce(s.route_no, x.route_no) = x.route_no)

    -- a fresh row with a history would be sent again to devices that are done
    UNION ALL
    SELECT
        'history_forgotten', q.notification_id,
        'route ' || q.route_no || ': not prior, but the ledger has rows'
    FROM postbell.queue q
    WHERE NOT q.prior
        AND EXISTS (SELECT 1 FROM sent d WHERE d.notification_id = q.notification_id AND d.route_no = q.route_no)

    UNION ALL
    SELECT 'lease_shape', NULL, 'batch ' || l.batch
    FROM postbell.leases l
    WHERE length(l.open) <> cardinality(l.ids)
        OR cardinality(l.tenants) <> cardinality(l.ids)
        OR cardinality(l.urgencies) <> cardinality(l.ids)
        OR cardinality(l.attempts) <> cardinality(l.ids)
        OR cardinality(l.crashes) <> cardinality(l.ids)
        OR cardinality(l.cursors) <> cardinality(l.ids)
        OR cardinality(l.t_pos) <> cardinality(l.t_dev)
        OR bit_count(l.open) = 0

    UNION ALL
    SELECT 'not_recovered', NULL, 'batch ' || l.batch || ' lapsed at ' || l.until
    FROM postbell.leases l
    WHERE l.until < now() - grace

    UNION ALL
    SELECT 'default_partition', d.notification_id, 'ledger row ' || d.id
    FROM postbell.deliveries_default d

    -- two on-time final rows for one target of one batch
    UNION ALL
    SELECT 'two_ends', d.notification_id, 'device ' || d.device_no || ', batch ' || d.batch
    FROM sent d
    WHERE d.final AND NOT d.late
    GROUP BY d.notification_id, d.device_no, d.batch
    HAVING count(*) > 1

    -- delivered twice with nothing that explains it
    UNION ALL
    SELECT 'twice_delivered', d.notification_id, 'device ' || d.device_no
    FROM sent d
    WHERE d.outcome = 0
    GROUP BY d.notification_id, d.device_no
    HAVING count(*) > 1
        AND NOT bool_or(d.late)
        AND NOT EXISTS (
            SELECT 1 FROM sent u
            WHERE u.notification_id = d.notification_id AND u.device_no = d.device_no AND u.outcome = 6)

    -- a live token of a device that says it has none to give
    UNION ALL
    SELECT 'device_shape', NULL, 'device ' || d.device_no
    FROM postbell.devices d
    WHERE (d.token IS NOT NULL AND (d.token_registered_at IS NULL OR d.token_seq = 0))
        OR (d.status = 'disabled' AND d.token IS NOT NULL)
$$;

CREATE FUNCTION postbell.audit_scope(since timestamptz DEFAULT pg_catalog.now() - interval '1 day')
RETURNS TABLE (
    notifications bigint, queued bigint, leased bigint, deliveries bigint, settlements bigint, devices bigint
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT
        (SELECT count(*) FROM postbell.outbox o WHERE o.id >= postbell.uuid_floor(since)),
        (SELECT count(*) FROM postbell.queue),
        (SELECT coalesce(sum(bit_count(l.open)), 0)::bigint FROM postbell.leases l),
        (SELECT count(*) FROM postbell.deliveries d WHERE d.id >= postbell.uuid_floor(since - interval '1 minute')),
        (SELECT count(*) FROM postbell.settlements),
        (SELECT count(*) FROM postbell.devices)
$$;

RESET ROLE;
