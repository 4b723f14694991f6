// swift-format-ignore-file
// Written by scripts/embed-migrations from sql/migrations; not edited by hand.

extension Migration {
    /// 0003_outbox.sql
    static let outbox0003 = Migration(
        version: 3, name: "outbox",
        checksum: "75d12237b71e05ef35d2039b8eca807d37649bb0266c351cb8c3ae8a05cc3035",
        sql: #"""
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
--
-- What a query costs is mostly its beginning, with every expression in it, row by row; an expression of its own begins
-- once per transaction. So one short query looks everything up, and what few rows need stands behind a condition.
CREATE FUNCTION postbell.outbox_defaults() RETURNS trigger
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    reading       timestamptz := clock_timestamp();
    switch        text;
    is_confined   boolean;
    -- of the kind
    enabled       boolean;
    needs_badge   boolean;
    uses_instance boolean;
    grace         interval;
    max_age       interval;
    urgency       text;
    collapse      text;
    presentation  text;
    payload_keys  jsonb;
    payload_names text[];
    required_keys text[];
    visible       jsonb;
    apps          text[];
    producers     name[];
BEGIN
    IF NOT coalesce(postbell.is_name(NEW.principal_id) AND postbell.is_name(NEW.dedupe_key), false)
            OR NOT coalesce(postbell.is_name(NEW.subject), true)
            OR NOT coalesce(postbell.is_name(NEW.thread), true)
            OR NOT coalesce(postbell.is_name(NEW.collapse_key), true) THEN
        PERFORM postbell.refuse(
            'notification.invalid',
            'principal_id and dedupe_key are required; every id is 1 to 200 printable ASCII characters');
    END IF;
    SELECT
        k.kind_no,
        (SELECT t.tenant_no FROM postbell.tenants t WHERE t.tenant_id = NEW.tenant_id),
        -- in the order of the index, so nothing is sorted
        ARRAY(
            SELECT DISTINCT d.route_no
            FROM postbell.devices d
            WHERE d.tenant_id = NEW.tenant_id
                AND d.principal_id = NEW.principal_id
                AND d.token IS NOT NULL
                AND d.status = 'active'
            ORDER BY d.route_no),
        (SELECT s.value FROM postbell.settings s WHERE s.name = 'enqueue'),
        EXISTS (SELECT 1 FROM postbell.role_tenants r WHERE r.role_name = SESSION_USER),
        k.enabled, k.needs_badge, k.uses_instance, k.grace, k.max_age, k.urgency, k.collapse, k.presentation,
        k.payload_keys, k.payload_names, k.required_keys, k.visible, k.apps, k.producers
    INTO
        NEW.kind_no, NEW.tenant_no, NEW.routes, switch, is_confined,
        enabled, needs_badge, uses_instance, grace, max_age, urgency, collapse, presentation,
        payload_keys, payload_names, required_keys, visible, apps, producers
    FROM postbell.kinds k
    WHERE k.name = NEW.kind AND k.current;
    IF NOT FOUND THEN
        PERFORM postbell.refuse(
            'notification.unknown_kind',
            'kind "' || CASE WHEN NEW.kind ~ '^[a-z][a-z0-9_.-]{0,99}$' THEN NEW.kind ELSE '?' END
                || '" is not in the catalog');
    END IF;
    IF is_confined THEN
        -- here, because row security comes after this trigger: what is refused below would tell of the other tenant's
        -- devices, and a tenant that is being made would be waited for
        PERFORM FROM postbell.role_tenants r WHERE r.role_name = SESSION_USER AND r.tenant_id = NEW.tenant_id;
        IF NOT FOUND THEN
            PERFORM postbell.refuse('notification.not_permitted', 'this login may not act for that tenant');
        END IF;
    END IF;
    IF NOT enabled OR switch <> 'on' THEN
        PERFORM nextval('postbell.discarded_notifications');
        RETURN NULL;
    END IF;
    IF producers IS NOT NULL AND NEW.predecessor IS NULL THEN
        -- an operator may enqueue anew what one of them enqueued before
        PERFORM FROM pg_roles r WHERE r.rolname = ANY (producers) AND pg_has_role(SESSION_USER, r.oid, 'MEMBER');
        IF NOT FOUND THEN
            PERFORM postbell.refuse(
                'notification.not_permitted',
                'kind "' || NEW.kind || '" is limited to certain producer roles');
        END IF;
    END IF;
    IF NEW.payload IS NULL THEN
        NEW.payload := '{}';
    END IF;
    IF visible IS NOT NULL THEN
        NEW.payload := postbell.safe_payload(NEW.kind, NEW.payload, visible);
    END IF;
    IF needs_badge AND NEW.badge IS NULL THEN
        PERFORM postbell.refuse('notification.invalid', 'kind "' || NEW.kind || '" is a badge, and there is none');
    END IF;

    NEW.id := postbell.uuid7(reading);
    NEW.created_at := reading;
    NEW.planned_at := greatest(coalesce(NEW.not_before, reading + grace), reading);
    IF NEW.expires_at IS NULL THEN
        NEW.expires_at := NEW.planned_at + max_age;
    END IF;
    IF NEW.tenant_no IS NULL THEN
        NEW.tenant_no := postbell.tenant_number(NEW.tenant_id);
    END IF;
    NEW.instance := NULL;
    IF uses_instance THEN
        SELECT t.instance INTO NEW.instance FROM postbell.tenants t WHERE t.tenant_no = NEW.tenant_no;
    END IF;
    IF NEW.urgency IS NULL THEN
        NEW.urgency := urgency;
    ELSIF NEW.urgency NOT IN ('urgent', 'bulk') THEN
        PERFORM postbell.refuse('notification.invalid', 'urgency must be urgent or bulk');
    END IF;
    IF NEW.silent IS NULL THEN
        NEW.silent := false;
    END IF;
    IF NEW.collapse_key IS NULL THEN
        NEW.collapse_key := CASE collapse
            WHEN 'dedupe_key' THEN NEW.dedupe_key
            WHEN 'thread' THEN NEW.thread
            WHEN 'subject' THEN NEW.subject
        END;
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
    IF apps IS NOT NULL OR NEW.device_id IS NOT NULL OR NEW.except_device_id IS NOT NULL THEN
        NEW.routes := ARRAY(
            SELECT DISTINCT d.route_no
            FROM postbell.devices d
            WHERE d.tenant_id = NEW.tenant_id
                AND d.principal_id = NEW.principal_id
                AND d.token IS NOT NULL
                AND d.status = 'active'
                AND (NEW.device_id IS NULL OR d.id = NEW.device_id)
                AND (NEW.except_device_id IS NULL OR d.id <> NEW.except_device_id)
                AND (apps IS NULL OR d.app = ANY (apps))
            ORDER BY d.route_no);
    END IF;

    IF NEW.expires_at <= reading THEN
        NEW.routes := '{}';
    ELSIF NEW.routes = '{}' THEN
        NEW.routes := '{0}';
    END IF;
    -- whose key exists is nothing, whatever it carries: only what is really inserted is refused, after the statement
    IF presentation = 'raw' OR NOT postbell.payload_fits(NEW.payload, payload_keys, payload_names, required_keys) THEN
        IF postbell.is_faulty(NEW.payload, presentation, payload_keys, required_keys) THEN
            NEW.routes := '{-1}';
        END IF;
    END IF;
    RETURN NEW;
END
$$;

-- After the statement: what was really inserted is queued and announced, unless there is a payload at fault among it.
CREATE FUNCTION postbell.outbox_enqueue() RETURNS trigger
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    woken       smallint[];
    has_expired boolean;
BEGIN
    WITH queued AS (
        -- one row per route; what waits for a device is due when the waiting ends
        INSERT INTO postbell.queue (due_at, notification_id, tenant_no, route_no, urgency)
        SELECT
            CASE WHEN r.route_no = 0 THEN
                least(
                    greatest(r.planned_at, r.created_at + (
                        SELECT k.wait_for_device FROM postbell.kinds k WHERE k.kind_no = r.kind_no)),
                    r.expires_at)
            ELSE r.planned_at END,
            r.id, r.tenant_no, r.route_no, (r.urgency = 'bulk')::int
        FROM (
            SELECT n.id, n.tenant_no, n.kind_no, n.created_at, n.planned_at, n.expires_at, n.urgency,
                unnest(n.routes) AS route_no
            FROM new_rows n) r
        RETURNING route_no
    )
    SELECT array_agg(DISTINCT q.route_no), EXISTS (SELECT FROM new_rows n WHERE n.routes = '{}')
    INTO woken, has_expired
    FROM queued q;
    IF has_expired THEN
        -- the deadline had already passed: an end at once, and no work
        INSERT INTO postbell.settlements (notification_id, tenant_no, status, reason)
        SELECT n.id, n.tenant_no, 'expired', 'expired'
        FROM new_rows n
        WHERE n.routes = '{}';
    END IF;
    IF woken[1] = -1 THEN
        PERFORM postbell.refuse_payload(n.payload, n.kind_no) FROM new_rows n WHERE n.routes = '{-1}';
    END IF;
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
"""#)
}
