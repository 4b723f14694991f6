-- Postbell 0018: forgetting a person, or a tenant.
--
-- Locks: SHARE on events while its index is made: nobody registers a device meanwhile.
-- Older workers: may run on; what was forgotten is over to them, as what was cancelled.
-- Runs in one transaction that the caller opens.

SET LOCAL ROLE postbell_owner;

-- What tells of a person.
CREATE INDEX events_principal ON postbell.events (tenant_id, principal_id) WHERE principal_id IS NOT NULL;

-- How long after its deadline no worker has to do with a notification any more: what was sent in time is answered, and
-- its answer is on the ledger.
CREATE FUNCTION postbell.quiet_period() RETURNS interval
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT interval '1 day'
$$;

-- Removes notifications that are long over, of a principal or (null) of the whole tenant, with all that hangs on them;
-- at most so many. Answers how many.
CREATE FUNCTION postbell.remove_notifications(tenant text, principal text, row_limit int) RETURNS int
LANGUAGE plpgsql VOLATILE SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    removed uuid[];
BEGIN
    removed := ARRAY(
        SELECT o.id
        FROM postbell.outbox o
        WHERE o.tenant_id = tenant
            AND (principal IS NULL OR o.principal_id = principal)
            AND o.expires_at < clock_timestamp() - postbell.quiet_period()
            -- queue and leases in one snapshot, and looked into row by row: an expression, not a join, which could read
            -- the whole queue
            AND (SELECT true FROM postbell.queue q WHERE q.notification_id = o.id LIMIT 1) IS NULL
            AND o.id NOT IN (SELECT l.notification_id FROM postbell.lease_positions l WHERE l.is_open)
        ORDER BY o.id
        LIMIT row_limit
        FOR UPDATE OF o);
    DELETE FROM postbell.deliveries d WHERE d.notification_id = ANY (removed);
    DELETE FROM postbell.settlements s WHERE s.notification_id = ANY (removed);
    DELETE FROM postbell.acknowledgements a WHERE a.tenant_id = tenant AND a.notification_id = ANY (removed);
    DELETE FROM postbell.outbox o WHERE o.id = ANY (removed);
    RETURN cardinality(removed);
END
$$;

-- Takes out of the other notifications whatever says whose they are and what they say, and ends them. The husk stays
-- for the worker that may have them in hand: it settles by the end that it finds. Its ledger rows stay too, because a
-- worker that settles again would wait for whoever deletes them; they name no device that is there. At most so many;
-- answers how many.
CREATE FUNCTION postbell.empty_notifications(tenant text, principal text, row_limit int) RETURNS int
LANGUAGE plpgsql VOLATILE SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    emptied uuid[];
BEGIN
    emptied := ARRAY(
        SELECT o.id
        FROM postbell.outbox o
        WHERE o.tenant_id = tenant
            AND o.principal_id <> ''
            AND (principal IS NULL OR o.principal_id = principal)
        ORDER BY o.id
        LIMIT row_limit
        FOR UPDATE OF o);
    INSERT INTO postbell.settlements (notification_id, tenant_no, status, reason)
    SELECT o.id, o.tenant_no, 'cancelled', 'erased'
    FROM postbell.outbox o
    WHERE o.id = ANY (emptied)
        AND NOT EXISTS (
            SELECT 1 FROM postbell.settlements w
            WHERE w.notification_id = o.id AND w.route_no IS NULL);
    DELETE FROM postbell.acknowledgements a WHERE a.tenant_id = tenant AND a.notification_id = ANY (emptied);
    UPDATE postbell.outbox o SET
        principal_id = '',
        dedupe_key = 'forgotten:' || o.id,
        subject = NULL,
        thread = NULL,
        collapse_key = NULL,
        device_id = NULL,
        device_no = NULL,
        except_device_id = NULL,
        except_device_no = NULL,
        badge = NULL,
        payload = '{}'
    WHERE o.id = ANY (emptied);
    RETURN cardinality(emptied);
END
$$;

-- Removes what there is of a principal, or (null) of a whole tenant, at most so many rows, and answers how many:
-- devices first, so that nothing is sent any more; then notifications, receipts, answers of registrations, and
-- events. In their own order, so that what is left does not depend on where others' rows lie.
CREATE FUNCTION postbell.forget_rows(
    tenant text, principal text, row_limit int, OUT devices int, OUT notifications int, OUT others int)
LANGUAGE plpgsql VOLATILE SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    counted int;
BEGIN
    DELETE FROM postbell.devices d
    WHERE d.device_no = ANY (ARRAY(
        SELECT v.device_no FROM postbell.devices v
        WHERE v.tenant_id = tenant AND (principal IS NULL OR v.principal_id = principal)
        ORDER BY v.device_no
        LIMIT row_limit
        FOR UPDATE));
    GET DIAGNOSTICS devices = ROW_COUNT;
    notifications := postbell.remove_notifications(tenant, principal, row_limit - devices);
    notifications := notifications
        + postbell.empty_notifications(tenant, principal, row_limit - devices - notifications);
    others := 0;
    DELETE FROM postbell.receipts r
    WHERE r.ctid = ANY (ARRAY(
        SELECT x.ctid FROM postbell.receipts x
        WHERE x.tenant_id = tenant AND (principal IS NULL OR x.principal_id = principal)
        ORDER BY x.principal_id, x.subject, x.seen_at
        LIMIT row_limit - devices - notifications
        FOR UPDATE));
    GET DIAGNOSTICS counted = ROW_COUNT;
    others := others + counted;
    DELETE FROM postbell.idempotency_keys k
    WHERE k.ctid = ANY (ARRAY(
        SELECT x.ctid FROM postbell.idempotency_keys x
        WHERE x.tenant_id = tenant AND (principal IS NULL OR x.principal_id = principal)
        ORDER BY x.principal_id, x.key
        LIMIT row_limit - devices - notifications - others
        FOR UPDATE));
    GET DIAGNOSTICS counted = ROW_COUNT;
    others := others + counted;
    DELETE FROM postbell.events e
    WHERE e.id = ANY (ARRAY(
        SELECT x.id FROM postbell.events x
        WHERE x.tenant_id = tenant
            AND x.name <> 'tenant.forgotten'
            AND (principal IS NULL OR x.principal_id = principal)
        ORDER BY x.id
        LIMIT row_limit - devices - notifications - others
        FOR UPDATE));
    GET DIAGNOSTICS counted = ROW_COUNT;
    others := others + counted;
END
$$;

-- One line about it, without whom: who did it, and how much it was.
CREATE FUNCTION postbell.forgotten_event(tenant text, name text, devices int, notifications int) RETURNS void
LANGUAGE sql VOLATILE AS $$
    INSERT INTO postbell.events (id, at, tenant_id, name, key, detail)
    SELECT e.id, e.reading, tenant, name, name || ':' || e.id,
        jsonb_build_object('by', SESSION_USER, 'devices', devices, 'notifications', notifications)
    FROM (
        SELECT postbell.uuid7(r.reading) AS id, r.reading
        FROM (SELECT clock_timestamp() AS reading OFFSET 0) r
        OFFSET 0
    ) e
$$;

-- Forgets a principal of the session's tenant, in the caller's transaction: devices, notifications, receipts and
-- events. A call removes at most `max_rows`; true when nothing is left, which is the answer too for who is unknown or
-- another's.
CREATE FUNCTION postbell.forget(principal text, max_rows int DEFAULT 10000) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tenant text := postbell.session_tenant();
    gone   record;
BEGIN
    IF NOT coalesce(postbell.is_name(principal), false) OR NOT coalesce(max_rows BETWEEN 1 AND 100000, false) THEN
        PERFORM postbell.refuse(
            'forget.invalid', 'a principal is 1 to 200 printable ASCII characters, a call 1 to 100,000 rows');
    END IF;
    IF NOT postbell.acts_for(principal) THEN
        RETURN true;
    END IF;
    -- who registers meanwhile comes before this or after it
    PERFORM postbell.lock_registrations(tenant, principal);
    SELECT f.* INTO gone FROM postbell.forget_rows(tenant, principal, max_rows) f;
    IF gone.devices + gone.notifications > 0 THEN
        PERFORM postbell.forgotten_event(tenant, 'principal.forgotten', gone.devices, gone.notifications);
    END IF;
    RETURN gone.devices + gone.notifications + gone.others < max_rows;
END
$$;

-- Forgets a whole tenant, which the session must have named, in as many calls as it takes; its number stays, and so
-- does what its catalog and its logins are.
CREATE FUNCTION postbell.forget_tenant(tenant text, max_rows int DEFAULT 10000) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    gone record;
BEGIN
    IF forget_tenant.tenant IS DISTINCT FROM postbell.session_tenant()
            OR nullif(current_setting('postbell.principal_id', true), '') IS NOT NULL THEN
        PERFORM postbell.refuse('notification.not_permitted', 'a tenant is forgotten by a session that named it');
    END IF;
    IF NOT coalesce(max_rows BETWEEN 1 AND 100000, false) THEN
        PERFORM postbell.refuse('forget.invalid', 'a call removes 1 to 100,000 rows');
    END IF;
    -- an import's lock: no registration of this tenant beside it
    PERFORM pg_advisory_xact_lock(hashtextextended('postbell.registry ' || tenant, 0));
    SELECT f.* INTO gone FROM postbell.forget_rows(tenant, NULL, max_rows) f;
    IF gone.devices + gone.notifications > 0 THEN
        PERFORM postbell.forgotten_event(tenant, 'tenant.forgotten', gone.devices, gone.notifications);
    END IF;
    IF gone.devices + gone.notifications + gone.others = max_rows THEN
        RETURN false;
    END IF;
    -- nothing is left that these could be about
    DELETE FROM postbell.supersessions u WHERE u.tenant_id = forget_tenant.tenant;
    DELETE FROM postbell.erasures e WHERE e.tenant_id = forget_tenant.tenant;
    DELETE FROM postbell.tenant_routes t WHERE t.tenant_id = forget_tenant.tenant;
    RETURN true;
END
$$;

REVOKE ALL ON FUNCTION
    postbell.quiet_period(), postbell.remove_notifications(text, text, int),
    postbell.empty_notifications(text, text, int), postbell.forget_rows(text, text, int),
    postbell.forgotten_event(text, text, int, int), postbell.forget(text, int), postbell.forget_tenant(text, int)
FROM PUBLIC;
GRANT EXECUTE ON FUNCTION postbell.forget(text, int) TO postbell_registrar;
GRANT EXECUTE ON FUNCTION postbell.forget_tenant(text, int) TO postbell_operator;

RESET ROLE;
