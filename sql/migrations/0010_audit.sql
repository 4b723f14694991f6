-- Postbell 0010: the audit.
--
-- Locks: none on existing tables.
-- Older workers: may run on; nothing they read changes.
-- Runs in one transaction that the caller opens.

SET LOCAL ROLE postbell_owner;

-- What the ledger and settlements may say; anything else is a fault of whoever wrote it.
CREATE FUNCTION postbell.is_reason(reason text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(reason IN (
        'superseded', 'seen', 'erased', 'cancelled', 'expired', 'ceiling', 'rejected', 'crashes', 'muted', 'revoked',
        'coalesced', 'read', 'no_access', 'no_device', 'no_token', 'no_credential', 'token_changed'), false)
$$;

-- Work: each open piece of it in exactly one place, and nothing gone without an end.
CREATE FUNCTION postbell.audit_work(since timestamptz, grace interval)
RETURNS TABLE (fault text, notification_id uuid, detail text)
LANGUAGE sql STABLE AS $$
    WITH place AS MATERIALIZED (
        SELECT * FROM postbell.places
    ),
    recent AS MATERIALIZED (
        SELECT o.id, o.routes FROM postbell.outbox o WHERE o.id >= postbell.uuid_floor(since)
    ),
    -- a minute of slack: the worker's ids follow the database's clock, not exactly
    sent AS MATERIALIZED (
        SELECT d.notification_id, d.route_no, bool_or(d.final) AS final
        FROM postbell.deliveries d
        WHERE d.id >= postbell.uuid_floor(since - interval '1 minute')
        GROUP BY d.notification_id, d.route_no
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
    FROM sent x
    WHERE NOT x.final
        AND NOT EXISTS (
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
        OR EXISTS (SELECT 1 FROM unnest(l.t_pos) t(pos) WHERE t.pos NOT BETWEEN 1 AND cardinality(l.ids))

    UNION ALL
    SELECT 'not_recovered', NULL, 'batch ' || l.batch || ' lapsed at ' || l.until
    FROM postbell.leases l
    WHERE l.until < now() - grace

    -- work that counts for a tenant whose notification it is not
    UNION ALL
    SELECT 'foreign_tenant', o.id, x.place || ', tenant ' || x.tenant_no
    FROM (
        SELECT q.notification_id, q.tenant_no, 'queue' AS place
        FROM postbell.queue q
        UNION ALL
        SELECT u.id, u.tenant_no, 'lease'
        FROM postbell.leases l, unnest(l.ids, l.tenants) u(id, tenant_no)
    ) x
    JOIN postbell.outbox o ON o.id = x.notification_id
    WHERE o.tenant_no IS DISTINCT FROM x.tenant_no
$$;

-- The ledger: what was sent, against what was wanted, and against itself.
CREATE FUNCTION postbell.audit_ledger(since timestamptz)
RETURNS TABLE (fault text, notification_id uuid, detail text)
LANGUAGE sql STABLE AS $$
    WITH sent AS MATERIALIZED (
        SELECT
            d.id, d.notification_id, d.batch, d.device_no, d.attempted_at, d.answer_us, d.retry_at, d.tenant_no,
            d.route_no, d.attempt, d.outcome, d.provider_status, d.final, d.late, d.reason,
            o.id AS known, o.created_at, o.expires_at, o.tenant_id, o.tenant_no AS own_tenant_no, o.principal_id,
            o.kind_no, o.subject, o.thread
        FROM postbell.deliveries d
        LEFT JOIN postbell.outbox o ON o.id = d.notification_id
        WHERE d.id >= postbell.uuid_floor(since - interval '1 minute')
    )
    SELECT 'default_partition', d.notification_id, 'ledger row ' || d.id
    FROM postbell.deliveries_default d

    UNION ALL
    SELECT 'ledger_orphan', d.notification_id, 'ledger row ' || d.id || ' without its notification'
    FROM sent d
    WHERE d.known IS NULL

    UNION ALL
    SELECT 'foreign_tenant', d.notification_id, 'ledger row ' || d.id || ', tenant ' || d.tenant_no
    FROM sent d
    WHERE d.tenant_no <> d.own_tenant_no

    -- sent to somebody else's device
    UNION ALL
    SELECT 'foreign_device', d.notification_id, 'device ' || d.device_no || ', ledger row ' || d.id
    FROM sent d
    JOIN postbell.devices v ON v.device_no = d.device_no
    WHERE (v.tenant_id, v.principal_id) <> (d.tenant_id, d.principal_id)

    -- an outcome that is none, or that the rest of its row denies
    UNION ALL
    SELECT 'ledger_shape', d.notification_id, 'ledger row ' || d.id || ', outcome ' || d.outcome
    FROM sent d
    WHERE d.outcome NOT BETWEEN 0 AND 7
        OR (d.outcome IN (0, 1, 2, 7) AND NOT d.final)
        OR (d.outcome IN (4, 5) AND d.final)
        OR (d.outcome = 0 AND d.provider_status NOT BETWEEN 200 AND 299)
        OR (d.outcome = 7 AND (d.provider_status IS NOT NULL OR NOT postbell.is_reason(d.reason)))
        OR (d.final AND d.retry_at IS NOT NULL)
        OR d.answer_us < 0

    -- ids are cut into days, which go as a whole
    UNION ALL
    SELECT 'ledger_time', d.notification_id, 'ledger row ' || d.id || ', sent at ' || d.attempted_at
    FROM sent d
    WHERE d.id < postbell.uuid_floor(d.attempted_at - interval '1 day')
        OR d.id > postbell.uuid_floor(d.attempted_at + interval '1 day')

    -- final twice, each time by who held the lease
    UNION ALL
    SELECT 'two_ends', d.notification_id, 'device ' || d.device_no
    FROM sent d
    WHERE d.final AND NOT d.late
    GROUP BY d.notification_id, d.device_no
    HAVING count(*) > 1

    -- sent by a later lease although it had its end. A second, because two workers' clocks may differ a little
    UNION ALL
    SELECT 'sent_after_end', d.notification_id, 'device ' || d.device_no || ', ledger row ' || d.id
    FROM sent e
    JOIN sent d USING (notification_id, device_no)
    WHERE e.final
        AND NOT e.late
        AND d.outcome <> 7
        AND NOT d.late
        AND d.batch <> e.batch
        AND d.attempted_at > e.attempted_at + coalesce(e.answer_us, 0) * interval '1 microsecond' + interval '1 s'

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

    -- recovery writes `unknown` for those alone whose answer its lease never brought
    UNION ALL
    SELECT 'unknown_beside_known', d.notification_id, 'device ' || d.device_no || ', batch ' || d.batch
    FROM sent u
    JOIN sent d USING (notification_id, device_no, batch)
    WHERE u.outcome = 6
        AND u.reason = 'lease_lost'
        AND d.id <> u.id
        AND NOT d.late

    UNION ALL
    SELECT 'sent_late', d.notification_id, 'ledger row ' || d.id || ', deadline ' || d.expires_at
    FROM sent d
    WHERE d.outcome <> 7 AND d.attempted_at > d.expires_at + interval '1 s'

    -- sent long after a fact against it. The fact's time is when it was written, not when it committed: who has an
    -- open transaction for more than five minutes is found here too
    UNION ALL
    SELECT 'sent_though_over', d.notification_id, 'ledger row ' || d.id || ', ' || d.what || ' at ' || d.at
    FROM (
        SELECT s.id, s.notification_id, s.outcome, s.attempted_at, 'superseded' AS what, u.at
        FROM sent s
        JOIN postbell.supersessions u ON u.tenant_id = s.tenant_id AND u.subject = s.subject AND u.at > s.created_at
        UNION ALL
        SELECT s.id, s.notification_id, s.outcome, s.attempted_at, 'erased', e.at
        FROM sent s
        JOIN postbell.erasures e ON e.tenant_id = s.tenant_id AND e.thread = s.thread AND e.at > s.created_at
        UNION ALL
        SELECT s.id, s.notification_id, s.outcome, s.attempted_at, 'seen', r.seen_at
        FROM sent s
        JOIN postbell.kinds k ON k.kind_no = s.kind_no AND k.ends_when_seen
        JOIN postbell.receipts r ON r.tenant_id = s.tenant_id
            AND r.principal_id = s.principal_id
            AND r.subject = s.subject
            AND r.seen_at > s.created_at
        UNION ALL
        SELECT s.id, s.notification_id, s.outcome, s.attempted_at, w.status, w.at
        FROM sent s
        JOIN postbell.settlements w ON w.notification_id = s.notification_id AND w.route_no IS NULL
    ) d
    WHERE d.outcome <> 7 AND d.attempted_at > d.at + interval '5 min'

    -- more attempts than the kind's own list of waits allows, and no end
    UNION ALL
    SELECT 'over_ceiling', d.notification_id, 'device ' || d.device_no || ': ' || count(DISTINCT d.batch) || ' attempts'
    FROM sent d
    JOIN postbell.kinds k ON k.kind_no = d.kind_no
    WHERE k.retry NOT LIKE '%..%'
    GROUP BY d.notification_id, d.device_no, k.retry
    HAVING NOT bool_or(d.final)
        AND count(DISTINCT d.batch) FILTER (WHERE d.outcome IN (3, 6) AND d.attempted_at IS NOT NULL)
            > cardinality(string_to_array(k.retry, ',')) + 1
$$;

-- Ends, devices and events.
CREATE FUNCTION postbell.audit_registry(since timestamptz)
RETURNS TABLE (fault text, notification_id uuid, detail text)
LANGUAGE sql STABLE AS $$
    -- an end that no view can read, or of the whole notification by what ends one route
    SELECT 'settlement_shape', s.notification_id, 'settlement ' || s.seq
    FROM postbell.settlements s
    WHERE s.at >= since
        AND (s.status NOT IN ('dispatched', 'superseded', 'cancelled', 'expired', 'failed')
            OR NOT postbell.is_reason(s.reason)
            OR (s.route_no IS NULL AND s.status IN ('dispatched', 'failed')))

    UNION ALL
    SELECT 'foreign_tenant', s.notification_id, 'settlement ' || s.seq || ', tenant ' || s.tenant_no
    FROM postbell.settlements s
    JOIN postbell.outbox o ON o.id = s.notification_id
    WHERE s.at >= since AND s.tenant_no <> o.tenant_no

    -- a live token of a device that says it has none to give, or an environment where the provider has none
    UNION ALL
    SELECT 'device_shape', NULL, 'device ' || d.device_no
    FROM postbell.devices d
    WHERE (d.token IS NOT NULL AND (d.token_registered_at IS NULL OR d.token_seq = 0))
        OR (d.status IN ('disabled', 'revoked') AND d.token IS NOT NULL)
        OR (d.provider = 'apns') <> (d.environment IS NOT NULL)

    UNION ALL
    SELECT 'token_twice', NULL, 'devices ' || string_agg(d.device_no::text, ', ' ORDER BY d.device_no)
    FROM postbell.devices d
    WHERE d.token IS NOT NULL
    GROUP BY d.token, d.provider, d.environment
    HAVING count(*) > 1

    -- a token that was cleared because of an answer that the ledger does not have
    UNION ALL
    SELECT 'effect_without_cause', n.id, e.name || ' ' || (e.detail ->> 'reason') || ', device ' || v.device_no
    FROM postbell.events e
    CROSS JOIN LATERAL (SELECT (e.detail ->> 'notification_id')::uuid AS id) n
    JOIN postbell.devices v ON v.id = e.device_id
    WHERE e.at >= since
        AND e.name = 'device.push_token_invalidated'
        AND n.id IS NOT NULL
        AND NOT EXISTS (
            SELECT 1 FROM postbell.deliveries d
            WHERE d.notification_id = n.id
                AND d.device_no = v.device_no
                AND d.outcome = CASE e.detail ->> 'reason' WHEN 'token_invalid' THEN 1 ELSE 3 END)

    -- a success that nobody delivered; the five minutes are for an effect that had to wait for its device
    UNION ALL
    SELECT 'effect_without_cause', NULL, 'success of device ' || v.device_no || ' at ' || v.last_success_at
    FROM postbell.devices v
    WHERE v.last_success_at > since + interval '5 min'
        AND v.device_no NOT IN (
            SELECT d.device_no
            FROM postbell.deliveries d
            WHERE d.id >= postbell.uuid_floor(since - interval '1 minute') AND d.outcome = 0)

    -- the key is what makes an event happen once
    UNION ALL
    SELECT 'event_twice', NULL, e.name || ': ' || count(*)
    FROM postbell.events e
    WHERE e.at >= since
        AND (e.detail ? 'notification_id' OR e.name NOT LIKE 'device.%')
    GROUP BY e.name, e.device_id, coalesce(e.detail ->> 'notification_id', e.id::text)
    HAVING count(*) > 1

    UNION ALL
    SELECT 'event_key', NULL, 'event ' || e.id
    FROM postbell.events e
    WHERE e.at >= since AND NOT starts_with(e.key, e.name || ':')
$$;

-- The conservation law and every other invariant, over notifications created since. No row: all is well. STABLE, as
-- are its parts, so all its queries share one snapshot; SECURITY DEFINER, so it sees everything whoever asks, and tells
-- a login that is confined to a tenant of that one's notifications alone; the planner is set free, because a worker's
-- pinned session would make it quadratic. How much it looked at: postbell.audit_scope, in the same statement
-- the same snapshot.
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
    SELECT f.*
    FROM (
        SELECT * FROM postbell.audit_work(since, grace)
        UNION ALL SELECT * FROM postbell.audit_ledger(since)
        UNION ALL SELECT * FROM postbell.audit_registry(since)
    ) f
    WHERE (SELECT postbell.confined_tenant()) IS NULL
        OR EXISTS (
            SELECT 1 FROM postbell.outbox o
            WHERE o.id = f.notification_id AND o.tenant_id = (SELECT postbell.confined_tenant()))
    -- always asked: who named another's tenant is refused, also where there is no fault
    UNION ALL
    SELECT NULL::text, NULL::uuid, NULL::text WHERE postbell.confined_tenant() = ''
$$;

CREATE FUNCTION postbell.audit_scope(since timestamptz DEFAULT pg_catalog.now() - interval '1 day')
RETURNS TABLE (
    notifications bigint, queued bigint, leased bigint, deliveries bigint, settlements bigint, devices bigint
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT
        (SELECT count(*) FROM postbell.outbox o
            WHERE o.id >= postbell.uuid_floor(since) AND (n.id IS NULL OR o.tenant_id = n.id)),
        (SELECT count(*) FROM postbell.queue q WHERE n.no IS NULL OR q.tenant_no = n.no),
        (SELECT count(*) FROM postbell.lease_positions l WHERE l.is_open AND (n.no IS NULL OR l.tenant_no = n.no)),
        (SELECT count(*) FROM postbell.deliveries d
            WHERE d.id >= postbell.uuid_floor(since - interval '1 minute')
                AND (n.no IS NULL OR d.tenant_no = n.no)),
        (SELECT count(*) FROM postbell.settlements s WHERE n.no IS NULL OR s.tenant_no = n.no),
        (SELECT count(*) FROM postbell.devices d WHERE n.id IS NULL OR d.tenant_id = n.id)
    FROM (SELECT postbell.confined_tenant() AS id, CASE WHEN postbell.confined_tenant() IS NOT NULL
        THEN postbell.reader_tenant_no() END AS no OFFSET 0) n
$$;

RESET ROLE;
