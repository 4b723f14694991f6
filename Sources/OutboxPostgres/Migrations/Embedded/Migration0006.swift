// swift-format-ignore-file
// Written by scripts/embed-migrations from sql/migrations; not edited by hand.

extension Migration {
    /// 0006_views.sql
    static let views0006 = Migration(
        version: 6, name: "views",
        checksum: "36647f79886cac822a14bed9740dd11c0966a0bcee18bb1e3bb59c35f5148a7a",
        sql: #"""
-- Postbell 0006: what people look at.
--
-- Locks: none on existing tables.
-- Older workers: may run on; nothing they read changes.
-- Runs in one transaction that the caller opens.
--
-- The views run with the rights of whoever asks (security_invoker): column grants keep tokens and payloads out,
-- row security the tenants.

SET LOCAL ROLE postbell_owner;

-- What leases hold, one row per position; of the tenant that the reader named, or of all when it named none. With the
-- owner's rights, unlike the others: a lease has rows of several tenants, so nobody who looks is granted the table.
CREATE VIEW postbell.lease_positions WITH (security_barrier = true) AS
SELECT
    u.id AS notification_id,
    u.tenant_no,
    u.attempt,
    u.crashes,
    l.batch,
    l.owner,
    l.route_no,
    l.claimed_at,
    l.until,
    pg_catalog.get_bit(l.open, (u.pos - 1)::int) = 1 AS is_open
FROM postbell.leases l, unnest(l.ids, l.tenants, l.attempts, l.crashes)
    WITH ORDINALITY u(id, tenant_no, attempt, crashes, pos)
-- the owner's own functions see all, whatever the session names
WHERE CURRENT_USER = 'postbell_owner'
    OR (SELECT postbell.reader_tenant_no()) IS NULL
    OR u.tenant_no = (SELECT postbell.reader_tenant_no());

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
SELECT l.notification_id, l.route_no, 'lease', l.until, l.batch, l.owner, l.attempt, l.crashes
FROM postbell.lease_positions l
WHERE l.is_open;

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
    o.created_at, o.planned_at, o.expires_at, o.predecessor,
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
    SELECT DISTINCT ON (l.notification_id) l.notification_id AS id, l.owner, l.until
    FROM postbell.lease_positions l
    WHERE l.is_open
    ORDER BY l.notification_id, l.until
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
    count(*) AS claimed,
    count(*) FILTER (WHERE l.is_open) AS open
FROM postbell.lease_positions l
LEFT JOIN postbell.routes r USING (route_no)
LEFT JOIN postbell.workers w ON w.owner = l.owner
GROUP BY l.batch, l.route_no, r.provider, r.environment, r.app, w.name, l.claimed_at, l.until;

RESET ROLE;
"""#)
}
