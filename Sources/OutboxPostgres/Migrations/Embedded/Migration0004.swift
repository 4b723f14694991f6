// swift-format-ignore-file
// Written by scripts/embed-migrations from sql/migrations; not edited by hand.

extension Migration {
    /// 0004_devices.sql
    static let devices0004 = Migration(
        version: 4, name: "devices",
        checksum: "991a7e5b905962962583cb112545768a2ca100073369b0c8835639676dec80fd",
        sql: #"""
-- Postbell 0004: the registry of devices, and what sending does to it.
--
-- Locks: none on existing tables.
-- Older workers: may run on; nothing they read changes.
-- Runs in one transaction that the caller opens.

SET LOCAL ROLE postbell_owner;

-- Keyed fingerprint of a token, 30 bits: tells tokens apart in logs and ledger without giving them away.
CREATE FUNCTION postbell.token_fingerprint(token text) RETURNS int
LANGUAGE sql STABLE AS $$
    SELECT ('x' || encode(substring(sha256(s.value || convert_to(token, 'UTF8')), 1, 4), 'hex'))::bit(32)::int
        & 1073741823
    FROM postbell.secrets s
    WHERE s.name = 'fingerprint'
$$;

-- The six characters people see (Crockford's base 32, lower case).
CREATE FUNCTION postbell.fingerprint_text(fingerprint int) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT pg_catalog.string_agg(
        pg_catalog.substr('0123456789abcdefghjkmnpqrstvwxyz', ((fingerprint >> shift) & 31) + 1, 1),
        '' ORDER BY shift DESC)
    FROM pg_catalog.generate_series(0, 25, 5) shift
$$;

-- One line in the life of a device. A key that is already there is a repeat and adds nothing.
CREATE FUNCTION postbell.device_event(
    device postbell.devices, name text, key text, detail jsonb DEFAULT '{}'
) RETURNS void
LANGUAGE sql VOLATILE AS $$
    INSERT INTO postbell.events (id, at, tenant_id, name, key, principal_id, device_id, detail)
    SELECT
        postbell.uuid7(reading),
        reading,
        device.tenant_id,
        name,
        name || ':' || device.device_no || ':' || key,
        device.principal_id,
        device.id,
        jsonb_build_object('fingerprint', postbell.fingerprint_text(device.fingerprint)) || detail
    FROM clock_timestamp() reading
    ON CONFLICT DO NOTHING
$$;

-- Number of a route, made where missing.
CREATE FUNCTION postbell.route_number(provider text, environment text, app text) RETURNS smallint
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_variable
DECLARE
    number smallint;
BEGIN
    LOOP
        SELECT r.route_no INTO number
        FROM postbell.routes r
        WHERE r.provider = provider AND r.environment IS NOT DISTINCT FROM environment AND r.app = app;
        IF number IS NOT NULL THEN
            RETURN number;
        END IF;
        INSERT INTO postbell.routes AS r (provider, environment, app)
        VALUES (provider, environment, app)
        ON CONFLICT DO NOTHING
        RETURNING r.route_no INTO number;
        IF number IS NOT NULL THEN
            RETURN number;
        END IF;
    END LOOP;
END
$$;

-- A device joins what still waits in the queue, so nothing ever goes back from a final status. Rows are locked
-- without waiting; a locked row cannot end before this transaction does. `prior` is set because another route of
-- the notification may have been claimed before. A row of route `none` is moved: the wait is over, also for a device
-- whose registration overlapped the enqueue and so missed it. What a device that comes from another route has had there
-- is no matter of these rows, some of which may be locked or not be seen yet: the claim knows it by `rerouted_at`.
CREATE FUNCTION postbell.device_joins(device postbell.devices) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    joined smallint[];
BEGIN
    WITH waiting AS MATERIALIZED (
        -- addressed to this device, not over, and in the queue
        SELECT
            q.notification_id, q.route_no, q.tenant_no, q.urgency, q.due_at,
            o.planned_at, o.device_no, o.except_device_no, o.apps
        FROM (
            SELECT o.id, o.planned_at, o.device_no, o.except_device_no, k.apps
            FROM postbell.outbox o
            JOIN postbell.kinds k ON k.kind_no = o.kind_no
            WHERE o.tenant_id = device.tenant_id
                AND o.principal_id = device.principal_id
                AND o.id >= postbell.uuid_floor(clock_timestamp() - interval '31 days')
                AND o.expires_at > clock_timestamp()
                AND (o.device_no IS NULL OR o.device_no = device.device_no)
                AND (o.except_device_no IS NULL OR o.except_device_no <> device.device_no)
                AND (k.apps IS NULL OR device.app = ANY (k.apps))
            ORDER BY o.id DESC
            LIMIT 1000
        ) o
        JOIN postbell.queue q ON q.notification_id = o.id
        FOR KEY SHARE OF q SKIP LOCKED
    ),
    moved AS (
        DELETE FROM postbell.queue q
        USING waiting w
        WHERE w.route_no = 0 AND q.notification_id = w.notification_id AND q.route_no = 0
    ),
    added AS (
        INSERT INTO postbell.queue (due_at, notification_id, tenant_no, route_no, urgency, prior)
        SELECT DISTINCT ON (w.notification_id, r.route_no)
            CASE WHEN w.route_no = 0 THEN w.planned_at ELSE w.due_at END,
            w.notification_id, w.tenant_no, r.route_no, w.urgency, true
        FROM waiting w
        CROSS JOIN LATERAL (
            SELECT device.route_no
            UNION
            SELECT v.route_no
            FROM postbell.devices v
            WHERE w.route_no = 0
                AND v.tenant_id = device.tenant_id
                AND v.principal_id = device.principal_id
                AND v.token IS NOT NULL
                AND v.status = 'active'
                AND (w.device_no IS NULL OR v.device_no = w.device_no)
                AND (w.except_device_no IS NULL OR v.device_no <> w.except_device_no)
                AND (w.apps IS NULL OR v.app = ANY (w.apps))
        ) r
        WHERE NOT EXISTS (
                SELECT 1 FROM postbell.queue p
                WHERE p.notification_id = w.notification_id AND p.route_no = r.route_no)
            AND NOT EXISTS (
                SELECT 1 FROM postbell.leases l, unnest(l.ids) WITH ORDINALITY u(id, pos)
                WHERE l.route_no = r.route_no
                    AND u.id = w.notification_id
                    AND get_bit(l.open, (u.pos - 1)::int) = 1)
        ORDER BY w.notification_id, r.route_no, w.due_at
        ON CONFLICT DO NOTHING
        RETURNING route_no
    )
    SELECT array_agg(DISTINCT a.route_no) INTO joined
    FROM added a;
    PERFORM postbell.wake(joined);
END
$$;

-- Registers a device for the session's tenant; idempotent per tenant, principal and client device id. A token that
-- lives on another device moves here, whoever had it, and the answer does not tell.
CREATE FUNCTION postbell.device_register(
    principal_id     text,
    client_device_id text,
    provider         text,
    app              text,
    token            text,
    environment      text DEFAULT NULL,
    name             text DEFAULT NULL,
    kind             text DEFAULT NULL,
    platform         text DEFAULT NULL,
    device_ref       text DEFAULT NULL,
    session_ref      text DEFAULT NULL,
    OUT device_id         uuid,
    OUT device_status     text,
    OUT token_fingerprint text
)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    tenant  text := postbell.session_tenant();
    reading timestamptz := clock_timestamp();
    device  postbell.devices;
    former  postbell.devices;
    fresh   boolean := false;
    changed boolean;
BEGIN
    IF provider IS NULL OR provider NOT IN ('apns', 'fcm') THEN
        PERFORM postbell.refuse('device.provider', 'this instance serves apns and fcm');
    END IF;
    IF (provider = 'apns') <> (environment IS NOT NULL)
            OR environment NOT IN ('production', 'sandbox') THEN
        PERFORM postbell.refuse(
            'device.environment', 'environment is production or sandbox for apns, and absent elsewhere');
    END IF;
    IF provider = 'apns' THEN
        token := lower(token);
    END IF;
    IF token IS NULL
            OR octet_length(token) > 1024
            OR token !~ (CASE provider WHEN 'apns' THEN '^([0-9a-f]{2}){8,}$' ELSE '^[!-~]{8,}$' END) THEN
        PERFORM postbell.refuse('device.token', 'the push token is not one of this provider');
    END IF;
    IF NOT coalesce(postbell.is_name(principal_id) AND postbell.is_name(client_device_id), false)
            OR app IS NULL
            OR octet_length(app) > 255
            OR app !~ '^[A-Za-z0-9._-]+$'
            OR octet_length(name) > 200
            OR octet_length(platform) > 100
            OR octet_length(device_ref) > 200
            OR octet_length(session_ref) > 200
            OR kind NOT IN ('mobile', 'laptop', 'desktop', 'web', 'cli', 'surface') THEN
        PERFORM postbell.refuse(
            'device.invalid', 'principal, client device id, app, name, kind, platform or reference out of range');
    END IF;
    PERFORM postbell.tenant_number(tenant);
    -- registrations of one principal, and of one token, one after the other: the join below relies on it
    PERFORM pg_advisory_xact_lock(hashtextextended('postbell.principal ' || tenant || ' ' || principal_id, 0));
    PERFORM pg_advisory_xact_lock(hashtextextended('postbell.token ' || token, 0));

    -- the device and whoever has its token, locked in one order: two phones that swap their tokens wait for one another
    -- in turn
    PERFORM 1 FROM postbell.devices d
    WHERE d.device_no IN (
        SELECT t.device_no FROM postbell.devices t
        WHERE t.token = token AND t.provider = provider AND t.environment IS NOT DISTINCT FROM environment
        UNION ALL
        SELECT o.device_no FROM postbell.devices o
        WHERE o.tenant_id = tenant AND o.principal_id = principal_id AND o.client_device_id = client_device_id)
    ORDER BY d.device_no
    FOR NO KEY UPDATE;
    FOR former IN
        SELECT d.* FROM postbell.devices d
        WHERE d.token = token
            AND d.provider = provider
            AND d.environment IS NOT DISTINCT FROM environment
            AND (d.tenant_id, d.principal_id, d.client_device_id) <> (tenant, principal_id, client_device_id)
        FOR NO KEY UPDATE
    LOOP
        UPDATE postbell.devices d SET
            token = NULL,
            push_token_invalidated_at = reading,
            updated_at = reading
        WHERE d.device_no = former.device_no;
        PERFORM postbell.device_event(
            former, 'device.push_token_invalidated', former.token_seq::text, '{"reason": "token_moved"}');
    END LOOP;

    SELECT d.* INTO device
    FROM postbell.devices d
    WHERE d.tenant_id = tenant AND d.principal_id = principal_id AND d.client_device_id = client_device_id
    FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        fresh := true;
        INSERT INTO postbell.devices AS d (
            id, tenant_id, principal_id, client_device_id, provider, environment, app, route_no)
        VALUES (
            postbell.uuid7(reading), tenant, principal_id, client_device_id, provider, environment, app,
            postbell.route_number(provider, environment, app))
        RETURNING d.* INTO device;
    ELSIF device.status = 'revoked' AND device.disabled_reason = 'erased' THEN
        PERFORM postbell.refuse('device.revoked', 'this device was revoked for good');
    END IF;
    changed := fresh OR device.token IS DISTINCT FROM token OR device.status <> 'active';
    UPDATE postbell.devices d SET
        provider = provider,
        environment = environment,
        app = app,
        route_no = postbell.route_number(provider, environment, app),
        rerouted_at =
            CASE WHEN (d.provider, d.app) = (provider, app) AND d.environment IS NOT DISTINCT FROM environment
                THEN d.rerouted_at ELSE reading END,
        token = token,
        token_registered_at = reading,
        fingerprint = postbell.token_fingerprint(token),
        token_seq = d.token_seq + CASE WHEN d.token IS DISTINCT FROM token THEN 1 ELSE 0 END,
        push_token_updated_at =
            CASE WHEN d.token IS DISTINCT FROM token THEN reading ELSE d.push_token_updated_at END,
        push_token_invalidated_at = NULL,
        failure_count = CASE WHEN d.token IS DISTINCT FROM token THEN 0 ELSE d.failure_count END,
        success_due_at = '-infinity',
        status = 'active',
        disabled_reason = NULL,
        name = coalesce(name, d.name),
        kind = coalesce(kind, d.kind),
        platform = coalesce(platform, d.platform),
        device_ref = coalesce(device_ref, d.device_ref),
        session_ref = coalesce(session_ref, d.session_ref),
        last_seen_at = reading,
        updated_at = reading
    WHERE d.device_no = device.device_no
    RETURNING d.* INTO device;
    IF fresh THEN
        PERFORM postbell.device_event(device, 'device.registered', device.token_seq::text);
    ELSIF changed THEN
        PERFORM postbell.device_event(device, 'device.push_token_updated', device.token_seq::text);
    END IF;
    PERFORM postbell.device_joins(device);
    device_id := device.id;
    device_status := device.status;
    token_fingerprint := postbell.fingerprint_text(device.fingerprint);
END
$$;

-- What sending does to devices, apart from the settle and never waiting: 0 succeeded, 1 failed, 2 token invalid.
-- The failure that makes `max_failures` in a row clears the token as well; 0 never does.
-- Each applies only while the token that was sent is still the one of its registration: `sequences` must match and
-- the token must not have been registered after `fences` (the provider's own timestamp, else when it was sent).
-- Answers per position: 1 applied, 0 no longer true, 2 locked by somebody (try again).
CREATE FUNCTION postbell.device_effects(
    device_numbers bigint[],
    sequences      int[],
    effects        smallint[],
    fences         timestamptz[],
    notifications  uuid[],
    max_failures   int,
    OUT ordinal    smallint,
    OUT state      smallint
) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    effect  record;
    device  postbell.devices;
    cause   text;
    reading timestamptz := clock_timestamp();
BEGIN
    FOR effect IN
        SELECT e.*
        FROM unnest(device_numbers, sequences, effects, fences, notifications)
            WITH ORDINALITY e(device_no, token_seq, code, fence, notification_id, place)
        ORDER BY e.device_no, e.place
    LOOP
        ordinal := effect.place;
        SELECT d.* INTO device
        FROM postbell.devices d
        WHERE d.device_no = effect.device_no
        FOR NO KEY UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            state := CASE
                WHEN EXISTS (SELECT 1 FROM postbell.devices d WHERE d.device_no = effect.device_no) THEN 2
                ELSE 0
            END;
        ELSIF device.token IS NULL OR device.token_seq <> effect.token_seq THEN
            state := 0;
        ELSIF effect.code = 0 THEN
            UPDATE postbell.devices d SET
                failure_count = 0,
                last_success_at = reading,
                success_due_at = reading + interval '1 day'
            WHERE d.device_no = device.device_no
                AND (d.failure_count <> 0 OR d.success_due_at <= reading);
            state := FOUND::int;
        ELSIF device.token_registered_at > effect.fence THEN
            -- registered again since: the answer speaks of the old registration
            state := 0;
        ELSIF effect.code = 1 AND (max_failures = 0 OR device.failure_count + 1 < max_failures) THEN
            UPDATE postbell.devices d SET
                failure_count = d.failure_count + 1,
                success_due_at = '-infinity'
            WHERE d.device_no = device.device_no;
            state := 1;
        ELSIF effect.code IN (1, 2) THEN
            cause := CASE effect.code WHEN 1 THEN 'repeated_failures' ELSE 'token_invalid' END;
            UPDATE postbell.devices d SET
                token = NULL,
                push_token_invalidated_at = reading,
                updated_at = reading,
                failure_count = d.failure_count + CASE effect.code WHEN 1 THEN 1 ELSE 0 END,
                status = 'disabled',
                disabled_reason = coalesce(d.disabled_reason, cause)
            WHERE d.device_no = device.device_no;
            PERFORM postbell.device_event(
                device, 'device.push_token_invalidated', device.token_seq::text,
                jsonb_build_object('reason', cause, 'notification_id', effect.notification_id));
            state := 1;
        ELSE
            state := 0;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;

RESET ROLE;
"""#)
}
