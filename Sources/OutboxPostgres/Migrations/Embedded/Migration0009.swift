// swift-format-ignore-file
// Written by scripts/embed-migrations from sql/migrations; not edited by hand.

extension Migration {
    /// 0009_operators.sql
    static let operators0009 = Migration(
        version: 9, name: "operators",
        checksum: "f30920305a7890c033cd50e3456e3e67c2c61ad1666bb2bf4f34b9831c6e3a9b",
        sql: #"""
-- Postbell 0009: what operators do to a notification. Of the tenant they named, or of any when they named none.
--
-- Locks: none on existing tables.
-- Older workers: may run on; nothing they read changes.
-- Runs in one transaction that the caller opens.

SET LOCAL ROLE postbell_owner;

-- The tenant that was named, or null for all; raises where it is none of this login's, as session_tenant does.
CREATE FUNCTION postbell.operator_tenant() RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN CASE WHEN postbell.reader_tenant() IS NOT NULL THEN postbell.session_tenant() END;
END
$$;

-- The tenant of a login that is confined, or null for others; raises where it named none of its own.
CREATE FUNCTION postbell.confined_tenant() RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN CASE WHEN EXISTS (SELECT 1 FROM postbell.role_tenants r WHERE r.role_name = SESSION_USER)
        THEN postbell.session_tenant() END;
END
$$;

-- One line about what an operator did, once per notification: who, and to what.
CREATE FUNCTION postbell.operator_event(notification postbell.outbox, name text, detail jsonb DEFAULT '{}') RETURNS void
LANGUAGE sql VOLATILE AS $$
    INSERT INTO postbell.events (id, at, tenant_id, name, key, principal_id, detail)
    SELECT
        postbell.uuid7(reading),
        reading,
        notification.tenant_id,
        name,
        name || ':' || notification.id,
        notification.principal_id,
        jsonb_build_object('notification_id', notification.id, 'by', SESSION_USER) || detail
    FROM clock_timestamp() reading
    ON CONFLICT DO NOTHING
$$;

-- Ends the whole notification as cancelled; false when it has ended already, which nothing takes back. It locks
-- nothing: the lease holder finds the end before it sends, and a cancellation that overlaps the last settle wins.
CREATE FUNCTION postbell.cancel(id uuid) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    notification postbell.outbox;
    tenant       text := postbell.operator_tenant();
BEGIN
    SELECT o.* INTO notification
    FROM postbell.outbox o
    WHERE o.id = cancel.id AND (tenant IS NULL OR o.tenant_id = tenant);
    IF NOT FOUND THEN
        PERFORM postbell.refuse('notification.unknown', 'there is no such notification');
    END IF;
    -- queue and leases in one snapshot: a row on its way from one to the other is in exactly one of them
    INSERT INTO postbell.settlements (notification_id, tenant_no, status, reason)
    SELECT notification.id, notification.tenant_no, 'cancelled', 'cancelled'
    WHERE EXISTS (SELECT 1 FROM postbell.places p WHERE p.notification_id = notification.id)
        AND NOT EXISTS (
            SELECT 1 FROM postbell.settlements w
            WHERE w.notification_id = notification.id AND w.route_no IS NULL);
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM postbell.operator_event(notification, 'notification.cancelled');
    RETURN true;
END
$$;

-- Enqueues anew what has ended: a notification of its own that names its predecessor, due at once, with a new deadline
-- (null: as its kind has it). A second call answers the same one. Refused while the old one is open, and where sending
-- it would go against a fact. Null when the kind or the instance is switched off.
CREATE FUNCTION postbell.requeue(id uuid, expires_at timestamptz DEFAULT NULL) RETURNS uuid
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    former    postbell.outbox;
    successor uuid;
    obstacle  text;
    tenant    text := postbell.operator_tenant();
BEGIN
    -- one call after the other, and after an erasure: what the row says now counts. No worker locks it
    SELECT o.* INTO former
    FROM postbell.outbox o
    WHERE o.id = id AND (tenant IS NULL OR o.tenant_id = tenant)
    FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        PERFORM postbell.refuse('notification.unknown', 'there is no such notification');
    END IF;
    IF expires_at <= clock_timestamp() THEN
        PERFORM postbell.refuse('notification.not_requeued', 'the new deadline has passed');
    END IF;
    SELECT o.id INTO successor
    FROM postbell.outbox o
    WHERE o.tenant_id = former.tenant_id AND o.dedupe_key = 'requeue:' || id AND o.predecessor = id;
    IF FOUND THEN
        RETURN successor;
    END IF;
    -- a statement of its own: it sees what was settled while the first one waited
    SELECT CASE
        WHEN former.principal_id = '' THEN 'its person was forgotten'
        WHEN EXISTS (SELECT 1 FROM postbell.places p WHERE p.notification_id = id) THEN 'it is not over yet'
        WHEN EXISTS (
            SELECT 1 FROM postbell.supersessions u
            WHERE u.tenant_id = former.tenant_id AND u.subject = former.subject AND u.at > former.created_at)
            THEN 'its subject moved on'
        WHEN EXISTS (
            SELECT 1 FROM postbell.kinds k
            JOIN postbell.receipts r ON r.tenant_id = former.tenant_id
                AND r.principal_id = former.principal_id
                AND r.subject = former.subject
                AND r.seen_at > former.created_at
            WHERE k.kind_no = former.kind_no AND k.ends_when_seen)
            THEN 'it was seen'
        WHEN EXISTS (
            SELECT 1 FROM postbell.erasures e
            WHERE e.tenant_id = former.tenant_id AND e.thread = former.thread AND e.at > former.created_at)
            THEN 'its thread was erased'
    END INTO obstacle;
    IF obstacle IS NOT NULL THEN
        PERFORM postbell.refuse('notification.not_requeued', obstacle);
    END IF;
    INSERT INTO postbell.outbox AS o (
        tenant_id, principal_id, kind, dedupe_key, subject, thread, payload, device_id, except_device_id, urgency,
        collapse_key, not_before, expires_at, silent, badge, predecessor)
    VALUES (
        former.tenant_id, former.principal_id, former.kind, 'requeue:' || id, former.subject, former.thread,
        former.payload, former.device_id, former.except_device_id, former.urgency, former.collapse_key,
        clock_timestamp(), expires_at, former.silent, former.badge, id)
    ON CONFLICT DO NOTHING
    RETURNING o.id INTO successor;
    IF successor IS NOT NULL THEN
        PERFORM postbell.operator_event(
            former, 'notification.requeued', jsonb_build_object('successor', successor));
    END IF;
    RETURN successor;
END
$$;

RESET ROLE;
"""#)
}
