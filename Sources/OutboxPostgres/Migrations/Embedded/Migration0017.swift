// swift-format-ignore-file
// Written by scripts/embed-migrations from sql/migrations; not edited by hand.

extension Migration {
    /// 0017_inbox.sql
    static let inbox0017 = Migration(
        version: 17, name: "inbox",
        checksum: "82594d5831be0a2cee1d12c9aabb4cd6a430362273bccc3a390bf70905f46b5b",
        sql: #"""
-- Postbell 0017: the inbox of a person, and what its apps have fetched.
--
-- Locks: none on existing tables.
-- Older workers: may run on; nothing they read changes.
-- Runs in one transaction that the caller opens.

SET LOCAL ROLE postbell_owner;

-- When an app first said that it has fetched a notification (t2 of the measurement). Whose it is says the outbox.
CREATE TABLE postbell.acknowledgements (
    at              timestamptz NOT NULL,
    notification_id uuid        NOT NULL,
    tenant_id       text        NOT NULL,
    PRIMARY KEY (tenant_id, notification_id)
);

-- The app has fetched this notification: the first call is what counts, and each answers its time. Null for what does
-- not exist, as for what is another tenant's, or of another principal than the one that is named.
CREATE FUNCTION postbell.acknowledge(id uuid, principal text DEFAULT NULL) RETURNS timestamptz
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tenant text := postbell.session_tenant();
    noted  timestamptz;
BEGIN
    -- before anything else: also where the notification is acknowledged already, and by whom
    PERFORM 1
    FROM postbell.outbox o
    WHERE o.id = acknowledge.id
        AND o.tenant_id = tenant
        AND o.principal_id <> ''  -- forgotten
        AND (principal IS NULL OR o.principal_id = principal)
        AND postbell.acts_for(o.principal_id);
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT a.at INTO noted
    FROM postbell.acknowledgements a
    WHERE a.tenant_id = tenant AND a.notification_id = acknowledge.id;
    IF FOUND THEN
        RETURN noted;
    END IF;
    INSERT INTO postbell.acknowledgements AS a (at, notification_id, tenant_id)
    VALUES (clock_timestamp(), acknowledge.id, tenant)
    ON CONFLICT DO NOTHING
    RETURNING a.at INTO noted;
    IF NOT FOUND THEN
        -- another call of this tenant's, which has committed meanwhile
        SELECT a.at INTO noted
        FROM postbell.acknowledgements a
        WHERE a.tenant_id = tenant AND a.notification_id = acknowledge.id;
    END IF;
    RETURN noted;
END
$$;

-- What has become of a notification at each device, as JSON: the row that decides, else the last one. At most a hundred
-- devices, in the order in which they were registered. Of one that is gone there is no id and no name.
CREATE FUNCTION postbell.device_outcomes(notification uuid) RETURNS json
LANGUAGE sql STABLE AS $$
    SELECT coalesce(json_agg(
        json_strip_nulls(json_build_object(
            'device_id', v.id,
            'name', v.name,
            'outcome', postbell.outcome_name(d.outcome),
            'final', d.final,
            'reason', d.reason,
            'retry_at', d.retry_at,
            'at', d.attempted_at + coalesce(d.answer_us, 0) * interval '1 microsecond'))
        ORDER BY d.device_no), '[]')
    FROM (
        SELECT DISTINCT ON (e.device_no) e.id
        FROM (
            SELECT t.device_no, t.id, true AS decides
            FROM postbell.target_ends t
            WHERE t.notification_id = notification
            UNION ALL
            SELECT r.device_no, r.id, false
            FROM postbell.deliveries r
            WHERE r.notification_id = notification AND NOT r.final
        ) e
        ORDER BY e.device_no, e.decides DESC, e.id DESC
        LIMIT 100
    ) x
    JOIN postbell.deliveries d ON d.id = x.id
    LEFT JOIN postbell.devices v ON v.device_no = d.device_no
$$;

-- Everything that was ever enqueued for a principal of the session's tenant, the newest first, in pages: `before` is
-- the id that the page before ended with. What comes, ends or is erased meanwhile moves no other one to another page.
-- No row for a principal that is unknown or another's.
CREATE FUNCTION postbell.inbox(principal text, before uuid DEFAULT NULL, max_rows int DEFAULT 50)
RETURNS TABLE (
    id              uuid,
    kind            text,
    subject         text,
    thread          text,
    payload         json,
    badge           int,
    silent          boolean,
    created_at      timestamptz,
    planned_at      timestamptz,
    expires_at      timestamptz,
    status          text,
    reason          text,
    settled_at      timestamptz,
    seen_at         timestamptz,
    acknowledged_at timestamptz,
    devices         json
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    tenant text := postbell.session_tenant();
BEGIN
    IF NOT coalesce(postbell.is_name(principal), false) OR NOT coalesce(max_rows BETWEEN 1 AND 200, false) THEN
        PERFORM postbell.refuse(
            'inbox.invalid', 'a principal is 1 to 200 printable ASCII characters, a page 1 to 200 notifications');
    END IF;
    RETURN QUERY
    WITH page AS MATERIALIZED (
        -- the page before what hangs on it, which is looked up for these rows alone
        SELECT o.id, o.payload, o.badge, o.silent
        FROM postbell.outbox o
        WHERE o.tenant_id = tenant
            AND o.principal_id = principal
            AND o.id < coalesce(before, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
            AND postbell.acts_for(principal)
        ORDER BY o.id DESC
        LIMIT max_rows
    )
    SELECT
        n.id, n.kind, n.subject, n.thread, p.payload::json, p.badge, p.silent, n.created_at, n.planned_at, n.expires_at,
        n.status, n.reason, n.settled_at,
        (
            -- the first that can be about it
            SELECT min(r.seen_at)
            FROM postbell.receipts r
            WHERE r.tenant_id = n.tenant_id
                AND r.principal_id = n.principal_id
                AND r.subject = n.subject
                AND r.seen_at > n.created_at
        ),
        (
            SELECT a.at
            FROM postbell.acknowledgements a
            WHERE a.tenant_id = n.tenant_id AND a.notification_id = n.id
        ),
        postbell.device_outcomes(n.id)
    FROM page p
    JOIN postbell.notifications n ON n.id = p.id
    ORDER BY p.id DESC;
END
$$;

ALTER TABLE postbell.acknowledgements ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON postbell.acknowledgements TO postbell_owner USING (true) WITH CHECK (true);
CREATE POLICY reader_tenant ON postbell.acknowledgements
    FOR SELECT TO postbell_reader
    USING (
        (SELECT postbell.reader_tenant()) IS NULL
        OR tenant_id = (SELECT postbell.reader_tenant()));

REVOKE ALL ON postbell.acknowledgements FROM PUBLIC;
REVOKE ALL ON FUNCTION
    postbell.acknowledge(uuid, text), postbell.device_outcomes(uuid), postbell.inbox(text, uuid, int)
FROM PUBLIC;
GRANT SELECT ON postbell.acknowledgements TO postbell_reader;
GRANT EXECUTE ON FUNCTION postbell.acknowledge(uuid, text), postbell.inbox(text, uuid, int) TO postbell_registrar;

RESET ROLE;
"""#)
}
