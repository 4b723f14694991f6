-- Postbell 0003: the producer's side of the outbox, routes, and the wake-up.
--
-- Locks: SHARE ROW EXCLUSIVE on outbox while the triggers are made.
-- Older workers: may run on; nothing they read changes.
-- Runs in one transaction that the caller opens.

SET LOCAL ROLE postbell_owner;

-- Which routes a tenant has ever had a device on: what its readers may know of the routes.
CREATE TABLE postbell.tenant_routes (
    tenant_id text     NOT NULL,
    route_no  smallint NOT NULL,
    PRIMARY KEY (tenant_id, route_no)
);

-- Number of a tenant's route, made where missing. Routes are shared by all tenants, and nobody waits for a transaction
-- of another that makes the same one and may stay open for long: they get a twin each, which is a route like any other.
CREATE FUNCTION postbell.route_number(tenant text, provider text, environment text, app text) RETURNS smallint
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_variable
DECLARE
    number smallint;
BEGIN
    LOOP
        SELECT r.route_no INTO number
        FROM postbell.routes r
        WHERE r.provider = provider AND r.environment IS NOT DISTINCT FROM environment AND r.app = app
        ORDER BY r.twin
        LIMIT 1;
        EXIT WHEN number IS NOT NULL;
        INSERT INTO postbell.routes AS r (provider, environment, app, twin)
        SELECT provider, environment, app,
            CASE WHEN pg_try_advisory_xact_lock(
                hashtextextended(concat_ws(' ', 'postbell.route', provider, environment, app), 0)) THEN 0
            ELSE pg_backend_pid() END
        ON CONFLICT DO NOTHING
        RETURNING r.route_no INTO number;
        EXIT WHEN number IS NOT NULL;
    END LOOP;
    INSERT INTO postbell.tenant_routes (tenant_id, route_no)
    SELECT tenant, number
    WHERE NOT EXISTS (
        SELECT 1 FROM postbell.tenant_routes t WHERE t.tenant_id = tenant AND t.route_no = number)
    ON CONFLICT DO NOTHING;
    RETURN number;
END
$$;

-- Key of the awake locks: first of the two integers, the route is the second.
CREATE FUNCTION postbell.awake_class() RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT 1886352482
$$;

-- Wakes the workers of these routes: NOTIFY holds a cluster-wide lock through the commit, so only where nobody is
-- awake. An awake worker holds the route's key EXCLUSIVE; a probe takes it SHARED, so probes never mistake each
-- other for a worker.
CREATE FUNCTION postbell.wake(woken smallint[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    route smallint;
BEGIN
    FOREACH route IN ARRAY coalesce(woken, '{}') LOOP
        IF pg_try_advisory_lock_shared(postbell.awake_class(), route) THEN
            PERFORM pg_advisory_unlock_shared(postbell.awake_class(), route);
            PERFORM pg_notify('postbell', '');
        END IF;
    END LOOP;
END
$$;

-- ---------------------------------------------------------------------------------------------------------------------
-- Insert into the outbox

-- Before each row: everything that comes from the catalog, and the routes the row will wait for. What is missing or
-- malformed is refused here by name, because the server's own NOT NULL and CHECK errors would echo the whole row.
CREATE FUNCTION postbell.outbox_defaults() RETURNS trigger
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    reading timestamptz := clock_timestamp();
    kind    record;  -- the kind, the switch, the tenant and the routes
BEGIN
    IF NOT coalesce(postbell.is_name(NEW.principal_id) AND postbell.is_name(NEW.dedupe_key), false)
            OR NOT coalesce(postbell.is_name(NEW.subject), true)
            OR NOT coalesce(postbell.is_name(NEW.thread), true)
            OR NOT coalesce(postbell.is_name(NEW.collapse_key), true) THEN
        PERFORM postbell.refuse(
            'notification.invalid',
            'principal_id and dedupe_key are required; every id is 1 to 200 printable ASCII characters');
    END IF;
    -- all look-ups in one statement: each costs more to begin than to run
    SELECT
        k.kind_no, k.name, k.enabled, k.producers, k.grace, k.max_age, k.urgency, k.collapse,
        k.visible, k.uses_instance, k.needs_badge,
        (SELECT s.value FROM postbell.settings s WHERE s.name = 'enqueue') AS enqueue,
        (SELECT t.tenant_no FROM postbell.tenants t WHERE t.tenant_id = NEW.tenant_id) AS tenant_no,
        EXISTS (SELECT 1 FROM postbell.role_tenants r WHERE r.role_name = SESSION_USER)
            AND NOT EXISTS (
                SELECT 1 FROM postbell.role_tenants r
                WHERE r.role_name = SESSION_USER AND r.tenant_id = NEW.tenant_id) AS is_foreign,
        -- in the order of the index, so nothing is sorted
        ARRAY(
            SELECT DISTINCT d.route_no
            FROM postbell.devices d
            WHERE d.tenant_id = NEW.tenant_id
                AND d.principal_id = NEW.principal_id
                AND d.token IS NOT NULL
                AND d.status = 'active'
                AND (NEW.device_id IS NULL OR d.id = NEW.device_id)
                AND (NEW.except_device_id IS NULL OR d.id <> NEW.except_device_id)
                AND (k.apps IS NULL OR d.app = ANY (k.apps))
            ORDER BY d.route_no) AS routes
    INTO kind
    FROM postbell.kinds k
    WHERE k.name = NEW.kind AND k.current;
    IF NOT FOUND THEN
        PERFORM postbell.refuse(
            'notification.unknown_kind',
            'kind "' || CASE WHEN NEW.kind ~ '^[a-z][a-z0-9_.-]{0,99}$' THEN NEW.kind ELSE '?' END
                || '" is not in the catalog');
    END IF;
    -- here, because row security comes after this trigger: what is refused below would tell of the other tenant's
    -- devices, and a tenant that is being made would be waited for
    IF kind.is_foreign THEN
        PERFORM postbell.refuse('notification.not_permitted', 'this login may not act for that tenant');
    END IF;
    IF NOT kind.enabled OR kind.enqueue <> 'on' THEN
        PERFORM nextval('postbell.discarded_notifications');
        RETURN NULL;
    END IF;
    -- an operator may enqueue anew what one of them enqueued before
    IF kind.producers IS NOT NULL
            AND NEW.predecessor IS NULL
            AND NOT EXISTS (
                SELECT 1 FROM pg_roles r
                WHERE r.rolname = ANY (kind.producers)
                    AND pg_has_role(SESSION_USER, r.oid, 'MEMBER')) THEN
        PERFORM postbell.refuse(
            'notification.not_permitted',
            'kind "' || kind.name || '" is limited to certain producer roles');
    END IF;
    IF NEW.payload IS NULL THEN
        NEW.payload := '{}';
    END IF;
    IF kind.visible IS NOT NULL THEN
        NEW.payload := postbell.safe_payload(kind.name, NEW.payload, kind.visible);
    END IF;
    IF kind.needs_badge AND NEW.badge IS NULL THEN
        PERFORM postbell.refuse('notification.invalid', 'kind "' || kind.name || '" is a badge, and there is none');
    END IF;

    NEW.id := postbell.uuid7(reading);
    NEW.created_at := reading;
    NEW.planned_at := greatest(coalesce(NEW.not_before, reading + kind.grace), reading);
    NEW.expires_at := coalesce(NEW.expires_at, NEW.planned_at + kind.max_age);
    NEW.kind_no := kind.kind_no;
    NEW.tenant_no := coalesce(kind.tenant_no, postbell.tenant_number(NEW.tenant_id));
    NEW.instance := NULL;
    IF kind.uses_instance THEN
        -- apart, because an expression with a query in it costs every row
        SELECT t.instance INTO NEW.instance FROM postbell.tenants t WHERE t.tenant_no = NEW.tenant_no;
    END IF;
    NEW.urgency := coalesce(NEW.urgency, kind.urgency);
    NEW.silent := coalesce(NEW.silent, false);
    NEW.collapse_key := coalesce(
        NEW.collapse_key,
        CASE kind.collapse
            WHEN 'dedupe_key' THEN NEW.dedupe_key
            WHEN 'thread' THEN NEW.thread
            WHEN 'subject' THEN NEW.subject
        END);
    IF NEW.urgency NOT IN ('urgent', 'bulk') THEN
        PERFORM postbell.refuse('notification.invalid', 'urgency must be urgent or bulk');
    END IF;

    -- Unknown and foreign devices are told apart from nothing: both are unknown.
    NEW.device_no := NULL;
    NEW.except_device_no := NULL;
    IF NEW.device_id IS NOT NULL THEN
        SELECT d.device_no INTO NEW.device_no
        FROM postbell.devices d
        WHERE d.id = NEW.device_id AND d.tenant_id = NEW.tenant_id AND d.principal_id = NEW.principal_id;
        IF NEW.device_no IS NULL THEN
            PERFORM postbell.refuse('device.unknown', 'the addressed device is not one of this principal');
        END IF;
    END IF;
    IF NEW.except_device_id IS NOT NULL THEN
        SELECT d.device_no INTO NEW.except_device_no
        FROM postbell.devices d
        WHERE d.id = NEW.except_device_id AND d.tenant_id = NEW.tenant_id AND d.principal_id = NEW.principal_id;
    END IF;

    NEW.routes := CASE
        WHEN NEW.expires_at <= reading THEN '{}'
        WHEN kind.routes = '{}' THEN '{0}'
        ELSE kind.routes
    END;
    RETURN NEW;
END
$$;

-- After the statement: what was really inserted is validated, queued and announced.
CREATE FUNCTION postbell.outbox_enqueue() RETURNS trigger
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    bad   record;
    woken smallint[];
BEGIN
    BEGIN
        SELECT k.name, f.code, f.key INTO bad
        FROM new_rows n
        JOIN postbell.kinds k ON k.kind_no = n.kind_no
        CROSS JOIN LATERAL postbell.payload_fault(n.payload, k.presentation, k.payload_keys, k.required_keys) f
        WHERE f.code IS NOT NULL
        LIMIT 1;
    EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
        -- one block for all rows, because each costs a subtransaction; which row it was is found out now
        SELECT k.name, 'notification.payload_syntax' AS code, NULL AS key INTO bad
        FROM new_rows n
        JOIN postbell.kinds k ON k.kind_no = n.kind_no
        WHERE NOT postbell.is_json_object(n.payload)
        LIMIT 1;
        IF NOT FOUND THEN
            RAISE;
        END IF;
    END;
    IF bad.code IS NOT NULL THEN
        PERFORM postbell.refuse(bad.code, 'kind "' || bad.name || '"' || coalesce(', key "' || bad.key || '"', ''));
    END IF;
    WITH queued AS (
        -- one row per route; what waits for a device is due when the waiting ends
        INSERT INTO postbell.queue (due_at, notification_id, tenant_no, route_no, urgency)
        SELECT
            CASE WHEN r.route_no = 0 THEN
                least(greatest(n.planned_at, n.created_at + k.wait_for_device), n.expires_at)
            ELSE n.planned_at END,
            n.id, n.tenant_no, r.route_no, (n.urgency = 'bulk')::int
        FROM new_rows n
        JOIN postbell.kinds k ON k.kind_no = n.kind_no
        CROSS JOIN LATERAL unnest(n.routes) r(route_no)
        ORDER BY n.id
        RETURNING route_no
    ),
    expired AS (
        -- the deadline had already passed: an end at once, and no work
        INSERT INTO postbell.settlements (notification_id, tenant_no, status, reason)
        SELECT n.id, n.tenant_no, 'expired', 'expired'
        FROM new_rows n
        WHERE n.routes = '{}'
    )
    SELECT array_agg(DISTINCT q.route_no) INTO woken
    FROM queued q;
    PERFORM postbell.wake(woken);
    RETURN NULL;
END
$$;

CREATE TRIGGER outbox_defaults
    BEFORE INSERT ON postbell.outbox
    FOR EACH ROW
    EXECUTE FUNCTION postbell.outbox_defaults();
CREATE TRIGGER outbox_enqueue
    AFTER INSERT ON postbell.outbox
    REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT
    EXECUTE FUNCTION postbell.outbox_enqueue();

-- The insert with named arguments. Returns the id, or null where the key exists, the deadline has passed
-- or the kind is off.
CREATE FUNCTION postbell.enqueue(
    kind             text,
    principal_id     text,
    dedupe_key       text,
    payload          text        DEFAULT '{}',
    subject          text        DEFAULT NULL,
    thread           text        DEFAULT NULL,
    tenant_id        text        DEFAULT NULL,
    device_id        uuid        DEFAULT NULL,
    except_device_id uuid        DEFAULT NULL,
    urgency          text        DEFAULT NULL,
    collapse_key     text        DEFAULT NULL,
    not_before       timestamptz DEFAULT NULL,
    expires_at       timestamptz DEFAULT NULL,
    silent           boolean     DEFAULT false,
    badge            int         DEFAULT NULL
) RETURNS uuid
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    made uuid;
BEGIN
    INSERT INTO postbell.outbox AS o (
        tenant_id, principal_id, kind, dedupe_key, subject, thread, payload, device_id, except_device_id,
        urgency, collapse_key, not_before, expires_at, silent, badge)
    VALUES (
        coalesce(tenant_id, postbell.session_tenant()), principal_id, kind, dedupe_key, subject, thread, payload,
        device_id, except_device_id, urgency, collapse_key, not_before, expires_at, silent, badge)
    ON CONFLICT DO NOTHING
    RETURNING o.id INTO made;
    IF expires_at <= clock_timestamp() THEN
        RETURN NULL;
    END IF;
    RETURN made;
END
$$;

-- One line about an enqueue that failed: no content, and nothing that was not checked. Under the session's tenant, or
-- where that is not this login's, under one that is.
CREATE FUNCTION postbell.note_enqueue_failure(principal text, kind text, state text, message text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    reading timestamptz := clock_timestamp();
    made    uuid := postbell.uuid7(reading);
    tenant  text;
BEGIN
    BEGIN
        tenant := postbell.session_tenant();
    EXCEPTION WHEN SQLSTATE 'PB005' THEN
        SELECT min(r.tenant_id) INTO tenant FROM postbell.role_tenants r WHERE r.role_name = SESSION_USER;
    END;
    INSERT INTO postbell.events (id, at, tenant_id, name, key, principal_id, detail)
    VALUES (
        made, reading, tenant, 'notification.enqueue_failed', 'notification.enqueue_failed:' || made,
        CASE WHEN postbell.is_name(principal) THEN principal END,
        jsonb_strip_nulls(jsonb_build_object(
            'sqlstate', substring(state FROM '^[0-9A-Z]{5}$'),
            -- only our own messages begin with a code
            'code', CASE WHEN state LIKE 'PB%' THEN substring(message FROM '^([a-z]+\.[a-z_]+):') END,
            'kind', (
                SELECT k.name FROM postbell.kinds k
                WHERE k.name = note_enqueue_failure.kind AND k.current))));
END
$$;

-- The same as enqueue for producers whose own transaction must never fail because of a notification: what is refused
-- becomes an event `notification.enqueue_failed` and null. It costs a savepoint, and cannot catch what fails at commit.
CREATE FUNCTION postbell.enqueue_or_note(
    kind             text,
    principal_id     text,
    dedupe_key       text,
    payload          text        DEFAULT '{}',
    subject          text        DEFAULT NULL,
    thread           text        DEFAULT NULL,
    tenant_id        text        DEFAULT NULL,
    device_id        uuid        DEFAULT NULL,
    except_device_id uuid        DEFAULT NULL,
    urgency          text        DEFAULT NULL,
    collapse_key     text        DEFAULT NULL,
    not_before       timestamptz DEFAULT NULL,
    expires_at       timestamptz DEFAULT NULL,
    silent           boolean     DEFAULT false,
    badge            int         DEFAULT NULL
) RETURNS uuid
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    state   text;
    message text;
BEGIN
    RETURN postbell.enqueue(
        kind, principal_id, dedupe_key, payload, subject, thread, tenant_id, device_id, except_device_id, urgency,
        collapse_key, not_before, expires_at, silent, badge);
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT;
    BEGIN
        PERFORM postbell.note_enqueue_failure(principal_id, kind, state, message);
    EXCEPTION WHEN OTHERS THEN
        RAISE WARNING 'postbell: a notification was not enqueued (SQLSTATE %), and that could not be noted', state;
    END;
    RETURN NULL;
END
$$;

INSERT INTO postbell.settings (name, value) VALUES ('enqueue', 'on');
INSERT INTO postbell.tenants (tenant_id) VALUES ('default');
INSERT INTO postbell.routes (route_no, provider, environment, app) VALUES (0, 'none', NULL, '');

RESET ROLE;
