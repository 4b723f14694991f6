-- Postbell 0006: what people look at, and the audit.
--
-- Locks: none on existing tables.
-- Older workers: may run on; nothing they read changes.
-- Runs in one transaction that the caller opens.
--
-- The views run with the rights of whoever asks (security_invoker): column grants keep tokens and payloads out,
-- row security the tenants.

SET LOCAL ROLE postbell_owner;

-- Every open dispatch, one row per place.
CREATE VIEW postbell.places WITH (security_invoker = true) AS
SELECT
    q.notification_id,
    q.route_no,
    'queue' AS place,
    q.due_at AS at,
    NULL::uuid AS batch,
    NULL::uuid AS owner,
    q.attempt,
    q.crashes
FROM postbell.queue q
UNION ALL
SELECT u.id, l.route_no, 'lease', l.until, l.batch, l.owner, u.attempt, u.crashes
FROM postbell.leases l, unnest(l.ids, l.attempts, l.crashes) WITH ORDINALITY u(id, attempt, crashes, pos)
WHERE pg_catalog.get_bit(l.open, (u.pos - 1)::int) = 1;

-- How bad an end is: the worst end of its dispatches is the status of a notification.
CREATE FUNCTION postbell.status_rank(status text) RETURNS int
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT CASE status
        WHEN 'failed' THEN 5
        WHEN 'expired' THEN 4
        WHEN 'cancelled' THEN 3
        WHEN 'superseded' THEN 2
        ELSE 1
    END
$$;

-- What a target's deciding ledger row makes of its dispatch.
CREATE FUNCTION postbell.target_status(outcome smallint, reason text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE
        WHEN outcome IN (2, 3, 4, 5, 6) THEN 'failed'
        WHEN outcome = 7 AND reason = 'expired' THEN 'expired'
        WHEN outcome = 7 AND reason IN ('cancelled', 'erased') THEN 'cancelled'
        WHEN outcome = 7 AND reason IN ('superseded', 'seen', 'no_access') THEN 'superseded'
        ELSE 'dispatched'
    END
$$;

-- The deciding row of each target: the first final one by id, also when it is late; a late row of the same batch
-- and device is the truth about an `unknown` one.
CREATE VIEW postbell.target_ends WITH (security_invoker = true) AS
SELECT DISTINCT ON (d.notification_id, d.device_no)
    d.notification_id,
    d.device_no,
    d.route_no,
    d.id,
    d.outcome,
    d.reason,
    postbell.target_status(d.outcome, d.reason) AS status
FROM postbell.deliveries d
WHERE d.final
    AND NOT (
        d.outcome = 6
        AND EXISTS (
            SELECT 1 FROM postbell.deliveries t
            WHERE t.notification_id = d.notification_id
                AND t.device_no = d.device_no
                AND t.batch = d.batch
                AND t.late
                AND t.final))
ORDER BY d.notification_id, d.device_no, d.id;

-- One row per notification with its derived status, where it is, and what was reached.
CREATE VIEW postbell.notifications WITH (security_invoker = true) AS
SELECT
    o.id, o.tenant_id, o.principal_id, o.kind, o.dedupe_key, o.subject, o.thread, o.urgency,
    o.created_at, o.planned_at, o.expires_at,
    coalesce(
        whole.status, CASE WHEN place.name IS NOT NULL THEN 'pending' END, worst.status, 'dispatched') AS status,
    coalesce(whole.reason, CASE WHEN place.name IS NULL THEN worst.reason END) AS reason,
    place.name AS place,
    waiting.due_at AS next_attempt_at,
    leased.owner AS claimed_by,
    leased.until AS claimed_until,
    CASE WHEN whole.status IS NOT NULL OR place.name IS NULL THEN
        greatest(whole.at, worst.at, counts.last_at)
    END AS settled_at,
    counts.attempts, counts.delivered, counts.unregistered, counts.rejected,
    counts.retried, counts.unknown, counts.skipped
FROM postbell.outbox o
-- an end of the whole notification: the first one stays
LEFT JOIN LATERAL (
    SELECT s.status, s.reason, s.at
    FROM postbell.settlements s
    WHERE s.notification_id = o.id AND s.route_no IS NULL
    ORDER BY s.seq
    LIMIT 1
) whole ON true
-- open work: leases are few and taken apart once; the queue is probed by key, never the whole of it
LEFT JOIN (
    SELECT DISTINCT ON (u.id) u.id, l.owner, l.until
    FROM postbell.leases l, unnest(l.ids) WITH ORDINALITY u(id, pos)
    WHERE pg_catalog.get_bit(l.open, (u.pos - 1)::int) = 1
    ORDER BY u.id, l.until
) leased ON leased.id = o.id
LEFT JOIN LATERAL (
    SELECT min(q.due_at) AS due_at
    FROM postbell.queue q
    WHERE q.notification_id = o.id
) waiting ON true
CROSS JOIN LATERAL (
    SELECT CASE WHEN leased.id IS NOT NULL THEN 'lease' WHEN waiting.due_at IS NOT NULL THEN 'queue' END AS name
) place
-- the worst of its dispatches
LEFT JOIN LATERAL (
    SELECT e.status, e.reason, e.at
    FROM (
        SELECT s.status, s.reason, s.at
        FROM postbell.settlements s
        WHERE s.notification_id = o.id AND s.route_no IS NOT NULL
        UNION ALL
        SELECT
            t.status,
            CASE WHEN t.outcome <> 0 THEN coalesce(t.reason, postbell.outcome_name(t.outcome)) END,
            NULL
        FROM postbell.target_ends t
        WHERE t.notification_id = o.id
    ) e
    ORDER BY postbell.status_rank(e.status) DESC, e.reason NULLS FIRST
    LIMIT 1
) worst ON true
CROSS JOIN LATERAL (
    SELECT
        count(*) FILTER (WHERE d.outcome <> 7) AS attempts,
        count(*) FILTER (WHERE d.outcome = 0) AS delivered,
        count(*) FILTER (WHERE d.outcome = 1) AS unregistered,
        count(*) FILTER (WHERE d.outcome = 2) AS rejected,
        count(*) FILTER (WHERE d.outcome IN (3, 4, 5)) AS retried,
        count(*) FILTER (WHERE d.outcome = 6) AS unknown,
        count(*) FILTER (WHERE d.outcome = 7) AS skipped,
        max(d.attempted_at + coalesce(d.answer_us, 0) * interval '1 microsecond') AS last_at
    FROM postbell.deliveries d
    WHERE d.notification_id = o.id
) counts;

-- The ledger in words: no token, only its fingerprint.
CREATE VIEW postbell.ledger WITH (security_invoker = true) AS
SELECT
    d.id,
    t.tenant_id,
    d.notification_id,
    d.device_no,
    v.id AS device_id,
    v.name AS device_name,
    v.kind AS device_kind,
    r.provider,
    r.environment,
    coalesce(d.topic, r.app) AS topic,
    d.route_no,
    d.batch,
    d.attempt,
    postbell.outcome_name(d.outcome) AS outcome,
    d.final,
    d.late,
    d.retry_at,
    d.provider_status,
    CASE WHEN d.outcome <> 7 THEN d.reason END AS provider_reason,
    CASE WHEN d.outcome = 7 THEN d.reason END AS skip_reason,
    CASE WHEN d.provider_status IS NOT NULL THEN
        coalesce(d.provider_id, CASE WHEN r.provider = 'apns' THEN d.notification_id::text END)
    END AS provider_id,
    -- of the token that was sent: the device's own while that is still its token,
    -- else as its registration was recorded
    CASE WHEN v.token_seq = d.token_seq THEN postbell.fingerprint_text(v.fingerprint)
    ELSE (
        SELECT e.detail ->> 'fingerprint'
        FROM postbell.events e
        WHERE e.key IN (
            'device.registered:' || d.device_no || ':' || d.token_seq,
            'device.push_token_updated:' || d.device_no || ':' || d.token_seq)
        LIMIT 1)
    END AS token_fingerprint,
    w.name AS worker,
    d.attempted_at,
    d.attempted_at + d.answer_us * interval '1 microsecond' AS answered_at
FROM postbell.deliveries d
LEFT JOIN postbell.tenants t ON t.tenant_no = d.tenant_no
LEFT JOIN postbell.routes r ON r.route_no = d.route_no
LEFT JOIN postbell.devices v ON v.device_no = d.device_no
LEFT JOIN postbell.workers w ON w.worker_no = d.worker_no;

CREATE VIEW postbell.queue_depth WITH (security_invoker = true) AS
SELECT
    q.route_no,
    r.provider,
    r.environment,
    r.app,
    CASE q.urgency WHEN 0 THEN 'urgent' ELSE 'bulk' END AS urgency,
    count(*) AS waiting,
    count(*) FILTER (WHERE q.due_at <= pg_catalog.now()) AS due,
    min(q.due_at) AS oldest_due_at,
    count(*) FILTER (WHERE q.crashes > 0) AS crashed
FROM postbell.queue q
LEFT JOIN postbell.routes r USING (route_no)
GROUP BY q.route_no, r.provider, r.environment, r.app, q.urgency;

CREATE VIEW postbell.in_flight WITH (security_invoker = true) AS
SELECT
    l.batch,
    l.route_no,
    r.provider,
    r.environment,
    r.app,
    w.name AS worker,
    l.claimed_at,
    l.until AS claimed_until,
    pg_catalog.cardinality(l.ids) AS claimed,
    pg_catalog.bit_count(l.open) AS open
FROM postbell.leases l
LEFT JOIN postbell.routes r USING (route_no)
LEFT JOIN postbell.workers w ON w.owner = l.owner;

-- ---------------------------------------------------------------------------------------------------------------------
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
