-- Postbell 0004: the registry of devices: their routes and events, what a registration may say, and reading them.
--
-- Locks: none on existing tables.
-- Older workers: may run on; nothing they read changes.
-- Runs in one transaction that the caller opens.

SET LOCAL ROLE postbell_owner;

INSERT INTO postbell.secrets (name, value)
SELECT n, sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
FROM unnest('{fingerprint,idempotency}'::text[]) n;

-- What runs once per registration is one expression, which the planner puts in the caller's place, or plpgsql, which
-- keeps its plans: a query in SQL would be planned at each call.

-- Keyed fingerprint of a token, 30 bits: tells tokens apart in logs and ledger without giving them away.
CREATE FUNCTION postbell.keyed_fingerprint(secret bytea, token text) RETURNS int
LANGUAGE sql IMMUTABLE AS $$
    SELECT ('x' || encode(substring(sha256(secret || convert_to(token, 'UTF8')), 1, 4), 'hex'))::bit(32)::int
        & 1073741823
$$;

CREATE FUNCTION postbell.token_fingerprint(token text) RETURNS int
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN postbell.keyed_fingerprint(s.value, token) FROM postbell.secrets s WHERE s.name = 'fingerprint';
END
$$;

-- The six characters people see (Crockford's base 32, lower case).
CREATE FUNCTION postbell.fingerprint_text(fingerprint int) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT pg_catalog.substr('0123456789abcdefghjkmnpqrstvwxyz', ((fingerprint >> 25) & 31) + 1, 1)
        || pg_catalog.substr('0123456789abcdefghjkmnpqrstvwxyz', ((fingerprint >> 20) & 31) + 1, 1)
        || pg_catalog.substr('0123456789abcdefghjkmnpqrstvwxyz', ((fingerprint >> 15) & 31) + 1, 1)
        || pg_catalog.substr('0123456789abcdefghjkmnpqrstvwxyz', ((fingerprint >> 10) & 31) + 1, 1)
        || pg_catalog.substr('0123456789abcdefghjkmnpqrstvwxyz', ((fingerprint >> 5) & 31) + 1, 1)
        || pg_catalog.substr('0123456789abcdefghjkmnpqrstvwxyz', (fingerprint & 31) + 1, 1)
$$;

-- One line in the life of a device. A key that is already there is a repeat and adds nothing.
CREATE FUNCTION postbell.device_event(
    device postbell.devices, name text, key text, detail jsonb DEFAULT '{}'
) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_variable
DECLARE
    reading timestamptz := clock_timestamp();
BEGIN
    INSERT INTO postbell.events (id, at, tenant_id, name, key, principal_id, device_id, detail)
    VALUES (
        postbell.uuid7(reading), reading, device.tenant_id, name, name || ':' || device.device_no || ':' || key,
        device.principal_id, device.id,
        jsonb_build_object('fingerprint', postbell.fingerprint_text(device.fingerprint)) || detail)
    ON CONFLICT DO NOTHING;
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
        -- addressed to this device, not over, and in the queue, which is looked into row by row
        SELECT
            q.tid, q.notification_id, q.route_no, q.tenant_no, q.urgency, q.due_at,
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
        CROSS JOIN LATERAL (
            SELECT p.ctid AS tid, p.notification_id, p.route_no, p.tenant_no, p.urgency, p.due_at
            FROM postbell.queue p
            WHERE p.notification_id = o.id
            FOR KEY SHARE SKIP LOCKED
        ) q
    ),
    moved AS (
        DELETE FROM postbell.queue
        WHERE ctid = ANY (ARRAY(SELECT w.tid FROM waiting w WHERE w.route_no = 0))
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
        -- an expression, not a join, which could read the whole queue
        WHERE (
                SELECT true FROM postbell.queue p
                WHERE p.notification_id = w.notification_id AND p.route_no = r.route_no) IS NULL
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

-- ---------------------------------------------------------------------------------------------------------------------
-- Registration

-- Answers of `device_register` by idempotency key, for 24 hours. Of the request there is a keyed hash alone, since it
-- has the token in it.
CREATE TABLE postbell.idempotency_keys (
    created_at        timestamptz NOT NULL,
    device_id         uuid        NOT NULL,
    tenant_id         text        NOT NULL,
    principal_id      text        NOT NULL,
    key               text        NOT NULL,
    device_status     text        NOT NULL,
    token_fingerprint text        NOT NULL,
    request_hash      bytea       NOT NULL,
    PRIMARY KEY (tenant_id, principal_id, key)
);
CREATE INDEX idempotency_keys_age ON postbell.idempotency_keys (created_at);

CREATE FUNCTION postbell.idempotency_period() RETURNS interval
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT interval '24 hours'
$$;

-- Keyed twice, as HMAC does it: who has the table has no way to try tokens.
CREATE FUNCTION postbell.request_hash(request text) RETURNS bytea
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN sha256(s.value || sha256(s.value || convert_to(request, 'UTF8')))
        FROM postbell.secrets s
        WHERE s.name = 'idempotency';
END
$$;

-- The providers that this instance serves, with commas between them. Registrations at another one are refused.
INSERT INTO postbell.settings (name, value) VALUES ('providers', 'apns,fcm');

CREATE FUNCTION postbell.is_served(provider text) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
DECLARE
    providers text;
BEGIN
    SELECT s.value INTO providers FROM postbell.settings s WHERE s.name = 'providers';
    RETURN coalesce(provider = ANY (string_to_array(translate(providers, ' ', ''), ',')), true);
END
$$;

-- A session that acts for one person (`postbell.principal_id`) has nobody else's devices.
CREATE FUNCTION postbell.acts_for(principal text) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT coalesce(nullif(current_setting('postbell.principal_id', true), '') = principal, true)
$$;

-- Providers compare tokens byte by byte, and APNs' are hexadecimal numbers of no fixed length.
CREATE FUNCTION postbell.normal_token(provider text, token text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE provider WHEN 'apns' THEN lower(token) ELSE token END
$$;

-- The code of the first thing that cannot be in a registration, or null. One expression, which the planner puts in the
-- caller's place.
CREATE FUNCTION postbell.registration_fault(
    principal_id text, client_device_id text, provider text, app text, token text, environment text,
    name text, kind text, platform text, device_ref text, session_ref text
) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN provider IS NULL OR provider NOT IN ('apns', 'fcm') THEN 'device.provider'
        WHEN (provider = 'apns') <> (environment IS NOT NULL) OR environment NOT IN ('production', 'sandbox')
            THEN 'device.environment'
        WHEN token IS NULL
            OR octet_length(token) > 1024
            OR token !~ (CASE provider WHEN 'apns' THEN '^([0-9a-f]{2}){8,}$' ELSE '^[!-~]{8,}$' END)
            THEN 'device.token'
        WHEN NOT coalesce(postbell.is_name(principal_id) AND postbell.is_name(client_device_id), false)
            OR app IS NULL
            OR octet_length(app) > 255
            OR app !~ '^[A-Za-z0-9._-]+$'
            OR octet_length(name) > 200
            OR octet_length(platform) > 100
            OR octet_length(device_ref) > 200
            OR octet_length(session_ref) > 200
            OR kind NOT IN ('mobile', 'laptop', 'desktop', 'web', 'cli', 'surface')
            THEN 'device.invalid'
    END
$$;

-- A point of time with its offset; null for what is none.
CREATE FUNCTION postbell.moment(value text) RETURNS timestamptz
LANGUAGE plpgsql STABLE STRICT AS $$
BEGIN
    RETURN CASE
        WHEN value ~ '^[0-9]{4}(-[0-9]{2}){2}[T ][0-9]{2}(:[0-9]{2}){1,2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}(:?[0-9]{2})?)$'
            THEN value::timestamptz
    END;
EXCEPTION WHEN datetime_field_overflow OR invalid_datetime_format THEN
    RETURN NULL;
END
$$;

-- What the code of a refused registration means.
CREATE FUNCTION postbell.registration_detail(code text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT CASE code
        WHEN 'device.provider' THEN 'this instance does not serve that provider (setting "providers")'
        WHEN 'device.environment' THEN 'environment is production or sandbox for apns, and absent elsewhere'
        WHEN 'device.token' THEN 'the push token is not one of this provider'
        WHEN 'device.invalid' THEN 'principal, client device id, app, name, kind, platform or reference out of range'
        WHEN 'device.duplicate' THEN 'a later line is about the same device, token or installation'
        WHEN 'device.revoked' THEN 'this device was revoked for good'
        WHEN 'notification.not_permitted' THEN 'this session acts for another principal'
    END
$$;

-- Registrations of one principal come one after the other: the join and the idempotency keys rely on it. Those of a
-- tenant come beside each other, but not beside an import, which cannot lock each principal.
CREATE FUNCTION postbell.lock_registrations(tenant text, principal text) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('postbell.registry ' || tenant, 0));
    PERFORM pg_advisory_xact_lock(hashtextextended('postbell.principal ' || tenant || ' ' || principal, 0));
END
$$;

-- Takes the tokens of these devices, because they have turned up on others. Runs all the same where there are none.
CREATE FUNCTION postbell.take_tokens(device_numbers bigint[], reading timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    WITH lost AS (
        UPDATE postbell.devices d SET
            token = NULL,
            push_token_invalidated_at = reading,
            updated_at = reading
        WHERE d.device_no = ANY (device_numbers)
        RETURNING d.device_no, d.id, d.tenant_id, d.principal_id, d.token_seq, d.fingerprint
    )
    INSERT INTO postbell.events (id, at, tenant_id, name, key, principal_id, device_id, detail)
    SELECT
        postbell.uuid7(reading), reading, l.tenant_id, 'device.push_token_invalidated',
        'device.push_token_invalidated:' || l.device_no || ':' || l.token_seq, l.principal_id, l.id,
        jsonb_build_object('fingerprint', postbell.fingerprint_text(l.fingerprint), 'reason', 'token_moved')
    FROM lost l
    ON CONFLICT DO NOTHING;
END
$$;

-- Ends a registration because a later one is of the same installation.
CREATE FUNCTION postbell.replace_registration(device_number bigint, reading timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    device postbell.devices;
BEGIN
    UPDATE postbell.devices d SET
        token = NULL,
        push_token_invalidated_at = reading,
        updated_at = reading,
        status = 'disabled',
        disabled_reason = coalesce(d.disabled_reason, 'token_invalid')
    WHERE d.device_no = device_number AND d.token IS NOT NULL
    RETURNING d.* INTO device;
    IF FOUND THEN
        PERFORM postbell.device_event(
            device, 'device.push_token_invalidated', device.token_seq::text, '{"reason": "replaced"}');
    END IF;
END
$$;

-- ---------------------------------------------------------------------------------------------------------------------
-- Reading

-- A device as people and apps may see it: a fingerprint where it has a token, never the token. Granted to nobody: the
-- functions below read it.
CREATE VIEW postbell.device_view AS
SELECT
    d.id AS device_id, d.tenant_id, d.principal_id, d.client_device_id, d.name, d.kind, d.platform, d.app, d.provider,
    d.environment,
    CASE WHEN d.token IS NOT NULL THEN postbell.fingerprint_text(d.fingerprint) END AS token_fingerprint,
    d.status, d.disabled_reason, d.muted_kinds, d.device_ref, d.session_ref, d.failure_count,
    -- an import may not know when the token came
    nullif(d.token_registered_at, '-infinity') AS token_registered_at,
    d.push_token_updated_at, d.push_token_invalidated_at, d.last_success_at, d.last_seen_at, d.created_at, d.updated_at
FROM postbell.devices d;

-- One device of the session's tenant, of this principal if one is named; no row for what is unknown, as for what is
-- another's.
CREATE FUNCTION postbell.device_get(device_id uuid, principal_id text DEFAULT NULL)
RETURNS SETOF postbell.device_view
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tenant text := postbell.session_tenant();
BEGIN
    RETURN QUERY
    SELECT d.*
    FROM postbell.device_view d
    WHERE d.device_id = device_get.device_id
        AND d.tenant_id = tenant
        AND postbell.acts_for(d.principal_id)
        AND (device_get.principal_id IS NULL OR d.principal_id = device_get.principal_id);
END
$$;

-- The devices of a principal, revoked ones too, in the order of their client ids; `after` is the client id that the
-- page before ended with. A device that comes or goes meanwhile moves no other one to another page.
CREATE FUNCTION postbell.device_list(principal_id text, after text DEFAULT NULL, max_rows int DEFAULT 100)
RETURNS SETOF postbell.device_view
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_sort = off SET jit = off
AS $$
DECLARE
    tenant text := postbell.session_tenant();
BEGIN
    IF NOT coalesce(max_rows BETWEEN 1 AND 1000, false) THEN
        PERFORM postbell.refuse('device.invalid', 'a page has 1 to 1,000 devices');
    END IF;
    RETURN QUERY
    SELECT d.*
    FROM postbell.device_view d
    WHERE d.tenant_id = tenant
        AND d.principal_id = device_list.principal_id
        AND d.client_device_id > coalesce(after, '')
        AND postbell.acts_for(device_list.principal_id)
    ORDER BY d.client_device_id
    LIMIT max_rows;
END
$$;

RESET ROLE;
