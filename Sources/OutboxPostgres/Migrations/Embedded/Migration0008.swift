// swift-format-ignore-file
// Written by scripts/embed-migrations from sql/migrations; not edited by hand.

extension Migration {
    /// 0008_registration.sql
    static let registration0008 = Migration(
        version: 8, name: "registration",
        checksum: "fbdad1e21ad5aea91d5e34a4b004b1a15223d82fafdd7ed2ce7a5b6fb4d70484",
        sql: #"""
-- Postbell 0008: how registrations of devices begin and end, and what devices do not want.
--
-- Locks: none on existing tables.
-- Older workers: may run on; nothing they read changes.
-- Runs in one transaction that the caller opens.

SET LOCAL ROLE postbell_owner;

-- Writes a registration that was judged. A token that lives elsewhere moves here, whoever had it: by statements that
-- run all the same when nobody had it. An older registration of the same installation ends: a provider gives an app on
-- one device one token. Each row is looked up and locked by itself and by a whole key, so no plan that was made while
-- the registry was small can become a walk through it.
CREATE FUNCTION postbell.store_registration(wanted postbell.devices, reading timestamptz) RETURNS postbell.devices
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    former postbell.devices;
    holder bigint;
    older  bigint[];
    number bigint;
BEGIN
    SELECT d.* INTO former
    FROM postbell.devices d
    WHERE d.tenant_id = wanted.tenant_id
        AND d.principal_id = wanted.principal_id
        AND d.client_device_id = wanted.client_device_id;
    SELECT d.device_no INTO holder
    FROM postbell.devices d
    WHERE d.token = wanted.token
        AND d.provider = wanted.provider
        AND d.environment IS NOT DISTINCT FROM wanted.environment;
    older := ARRAY(
        SELECT d.device_no
        FROM postbell.devices d
        WHERE d.tenant_id = wanted.tenant_id
            AND d.device_ref = coalesce(wanted.device_ref, former.device_ref)
            AND d.principal_id = wanted.principal_id
            AND d.provider = wanted.provider
            AND d.app = wanted.app
            AND d.client_device_id <> wanted.client_device_id
            AND d.token IS NOT NULL);
    -- in one order: two phones that swap their tokens wait for one another in turn
    FOR number IN
        SELECT DISTINCT u FROM unnest(older || former.device_no || holder) u WHERE u IS NOT NULL ORDER BY u
    LOOP
        PERFORM FROM postbell.devices d WHERE d.device_no = number FOR NO KEY UPDATE;
    END LOOP;
    SELECT d.* INTO former
    FROM postbell.devices d
    WHERE d.tenant_id = wanted.tenant_id
        AND d.principal_id = wanted.principal_id
        AND d.client_device_id = wanted.client_device_id
    FOR NO KEY UPDATE;
    IF former.status = 'revoked' AND former.disabled_reason = 'erased' THEN
        PERFORM postbell.refuse('device.revoked', postbell.registration_detail('device.revoked'));
    END IF;
    -- once more: one of the locks may have been waited for
    SELECT d.device_no INTO holder
    FROM postbell.devices d
    WHERE d.token = wanted.token
        AND d.provider = wanted.provider
        AND d.environment IS NOT DISTINCT FROM wanted.environment
        AND d.device_no IS DISTINCT FROM former.device_no;

    PERFORM postbell.take_tokens(ARRAY[holder], reading);
    FOREACH number IN ARRAY older LOOP
        PERFORM postbell.replace_registration(number, reading);
    END LOOP;

    IF former.device_no IS NULL THEN
        INSERT INTO postbell.devices AS d (
            id, tenant_id, principal_id, client_device_id, provider, environment, app, route_no, token,
            token_registered_at, fingerprint, token_seq, push_token_updated_at, status,
            name, kind, platform, device_ref, session_ref, last_seen_at, created_at, updated_at)
        VALUES (
            postbell.uuid7(reading), wanted.tenant_id, wanted.principal_id, wanted.client_device_id, wanted.provider,
            wanted.environment, wanted.app, wanted.route_no, wanted.token,
            reading, wanted.fingerprint, 1, reading, wanted.status,
            wanted.name, wanted.kind, wanted.platform, wanted.device_ref, wanted.session_ref, reading, reading, reading)
        RETURNING d.* INTO wanted;
        PERFORM postbell.device_event(wanted, 'device.registered', wanted.token_seq::text);
        RETURN wanted;
    END IF;
    UPDATE postbell.devices d SET
        provider = wanted.provider,
        environment = wanted.environment,
        app = wanted.app,
        route_no = wanted.route_no,
        rerouted_at = CASE WHEN d.route_no = wanted.route_no THEN d.rerouted_at ELSE reading END,
        token = wanted.token,
        token_registered_at = reading,
        fingerprint = wanted.fingerprint,
        token_seq = d.token_seq + CASE WHEN d.token IS DISTINCT FROM wanted.token THEN 1 ELSE 0 END,
        push_token_updated_at =
            CASE WHEN d.token IS DISTINCT FROM wanted.token THEN reading ELSE d.push_token_updated_at END,
        push_token_invalidated_at = NULL,
        failure_count = CASE WHEN d.token IS DISTINCT FROM wanted.token THEN 0 ELSE d.failure_count END,
        success_due_at = '-infinity',
        -- what waits for an approval goes on waiting; what was approved once needs none
        status = CASE d.status WHEN 'pending' THEN d.status WHEN 'revoked' THEN wanted.status ELSE 'active' END,
        disabled_reason = NULL,
        name = coalesce(wanted.name, d.name),
        kind = coalesce(wanted.kind, d.kind),
        platform = coalesce(wanted.platform, d.platform),
        device_ref = coalesce(wanted.device_ref, d.device_ref),
        session_ref = coalesce(wanted.session_ref, d.session_ref),
        last_seen_at = reading,
        updated_at = reading
    WHERE d.device_no = former.device_no
    RETURNING d.* INTO wanted;
    IF wanted.token_seq <> former.token_seq THEN
        PERFORM postbell.device_event(wanted, 'device.push_token_updated', wanted.token_seq::text);
    END IF;
    RETURN wanted;
END
$$;

-- Registers a device for the session's tenant; idempotent per tenant, principal and client device id. `pending` is for
-- a device that somebody has to approve first (device_activate): it is no target. With an idempotency key the same
-- request has the same answer for 24 hours, whatever has become of the device. The answer has no token, and does not
-- tell who had it before. The planner is pinned, because a session's first registrations may see an empty registry.
CREATE FUNCTION postbell.device_register(
    principal_id     text,
    client_device_id text,
    provider         text,
    app              text,
    token            text,
    environment      text    DEFAULT NULL,
    name             text    DEFAULT NULL,
    kind             text    DEFAULT NULL,
    platform         text    DEFAULT NULL,
    device_ref       text    DEFAULT NULL,
    session_ref      text    DEFAULT NULL,
    pending          boolean DEFAULT false,
    idempotency_key  text    DEFAULT NULL,
    OUT device_id         uuid,
    OUT device_status     text,
    OUT token_fingerprint text
)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off
AS $$
#variable_conflict use_variable
DECLARE
    tenant  text := postbell.session_tenant();
    reading timestamptz;
    device  postbell.devices;
    hash    bytea;
    kept    postbell.idempotency_keys;
    fault   text;
BEGIN
    token := postbell.normal_token(provider, token);
    fault := postbell.registration_fault(
        principal_id, client_device_id, provider, app, token, environment, name, kind, platform, device_ref,
        session_ref);
    IF fault IS NULL AND NOT coalesce(postbell.is_name(idempotency_key), true) THEN
        PERFORM postbell.refuse('device.invalid', 'an idempotency key is 1 to 200 printable ASCII characters');
    END IF;
    IF fault IS NULL AND NOT postbell.acts_for(principal_id) THEN
        fault := 'notification.not_permitted';
    END IF;
    IF fault IS NOT NULL THEN
        PERFORM postbell.refuse(fault, postbell.registration_detail(fault));
    END IF;
    PERFORM postbell.tenant_number(tenant);
    PERFORM postbell.lock_registrations(tenant, principal_id);
    reading := clock_timestamp();
    IF idempotency_key IS NOT NULL THEN
        hash := postbell.request_hash(jsonb_build_array(
            client_device_id, provider, app, token, environment, name, kind, platform, device_ref, session_ref,
            pending)::text);
        SELECT k.* INTO kept
        FROM postbell.idempotency_keys k
        WHERE k.tenant_id = tenant
            AND k.principal_id = principal_id
            AND k.key = idempotency_key
            AND k.created_at > reading - postbell.idempotency_period();
        IF FOUND AND kept.request_hash <> hash THEN
            PERFORM postbell.refuse('device.conflict', 'this idempotency key belongs to another request');
        ELSIF FOUND THEN
            device_id := kept.device_id;
            device_status := kept.device_status;
            token_fingerprint := kept.token_fingerprint;
            RETURN;
        END IF;
    END IF;
    IF NOT postbell.is_served(provider) THEN
        PERFORM postbell.refuse('device.provider', postbell.registration_detail('device.provider'));
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('postbell.token ' || token, 0));

    device.tenant_id := tenant;
    device.principal_id := principal_id;
    device.client_device_id := client_device_id;
    device.provider := provider;
    device.environment := environment;
    device.app := app;
    device.route_no := postbell.route_number(tenant, provider, environment, app);
    device.token := token;
    device.fingerprint := postbell.token_fingerprint(token);
    device.status := CASE WHEN pending THEN 'pending' ELSE 'active' END;
    device.name := name;
    device.kind := kind;
    device.platform := platform;
    device.device_ref := device_ref;
    device.session_ref := session_ref;
    FOR attempt IN 1..3 LOOP
        BEGIN
            device := postbell.store_registration(device, reading);
            EXIT;
        EXCEPTION WHEN unique_violation THEN
            -- an import, which does not lock tokens, has committed this one meanwhile: now it is seen, and moves
            IF attempt = 3 THEN
                PERFORM postbell.refuse('device.busy', 'this token is being registered elsewhere; try again');
            END IF;
        END;
    END LOOP;
    IF device.status = 'active' THEN
        PERFORM postbell.device_joins(device);
    END IF;
    device_id := device.id;
    device_status := device.status;
    token_fingerprint := postbell.fingerprint_text(device.fingerprint);
    IF idempotency_key IS NOT NULL THEN
        -- in the place of one that is too old to count
        INSERT INTO postbell.idempotency_keys AS k (
            created_at, device_id, tenant_id, principal_id, key, device_status, token_fingerprint, request_hash)
        VALUES (
            reading, device_id, tenant, principal_id, idempotency_key, device_status, token_fingerprint, hash)
        ON CONFLICT ON CONSTRAINT idempotency_keys_pkey DO UPDATE SET
            created_at = excluded.created_at,
            device_id = excluded.device_id,
            device_status = excluded.device_status,
            token_fingerprint = excluded.token_fingerprint,
            request_hash = excluded.request_hash;
    END IF;
END
$$;

-- Approves a device of the session's tenant that was registered as pending: from now on it is a target, also of what
-- still waits. False when there is nothing to approve: it is unknown, another's, or not pending.
CREATE FUNCTION postbell.device_activate(device_id uuid) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off
AS $$
DECLARE
    tenant  text := postbell.session_tenant();
    reading timestamptz := clock_timestamp();
    device  postbell.devices;
    owner   text;
BEGIN
    SELECT d.principal_id INTO owner
    FROM postbell.devices d
    WHERE d.id = device_activate.device_id AND d.tenant_id = tenant AND postbell.acts_for(d.principal_id);
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM postbell.lock_registrations(tenant, owner);
    UPDATE postbell.devices d SET
        status = 'active',
        updated_at = reading
    WHERE d.id = device_activate.device_id AND d.status = 'pending'
    RETURNING d.* INTO device;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM postbell.device_event(device, 'device.activated', device.token_seq::text);
    IF device.token IS NOT NULL THEN
        PERFORM postbell.device_joins(device);
    END IF;
    RETURN true;
END
$$;

-- Ends registrations of the session's tenant: of one device, or of everything that a device reference, a session
-- reference or a principal owns; what is given holds together. The token goes in the caller's transaction, so what a
-- worker has in hand falls out at its re-check. `erased` is for good; a device that was revoked for another reason
-- comes back when it registers. The first reason stays, but for that one. Answers how many were ended; what is unknown
-- or another tenant's is none. Custom plans, because each selector has an index of its own.
CREATE FUNCTION postbell.device_revoke(
    device_id    uuid DEFAULT NULL,
    device_ref   text DEFAULT NULL,
    session_ref  text DEFAULT NULL,
    principal_id text DEFAULT NULL,
    reason       text DEFAULT 'device_revoked'
) RETURNS int
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_custom_plan
AS $$
#variable_conflict use_variable
DECLARE
    tenant  text := postbell.session_tenant();
    reading timestamptz := clock_timestamp();
    device  postbell.devices;
    ended   int := 0;
BEGIN
    IF num_nonnulls(device_id, device_ref, session_ref, principal_id) = 0
            OR NOT coalesce(reason IN ('device_revoked', 'logout', 'erased'), false) THEN
        PERFORM postbell.refuse(
            'device.invalid',
            'name a device, a reference or a principal; the reason is device_revoked, logout or erased');
    END IF;
    FOR device IN
        SELECT d.* FROM postbell.devices d
        WHERE d.tenant_id = tenant
            AND postbell.acts_for(d.principal_id)
            AND (device_id IS NULL OR d.id = device_id)
            AND (device_ref IS NULL OR d.device_ref = device_ref)
            AND (session_ref IS NULL OR d.session_ref = session_ref)
            AND (principal_id IS NULL OR d.principal_id = principal_id)
            AND (d.status <> 'revoked' OR (reason = 'erased' AND d.disabled_reason IS DISTINCT FROM 'erased'))
        ORDER BY d.device_no
        FOR NO KEY UPDATE
    LOOP
        UPDATE postbell.devices d SET
            token = NULL,
            push_token_invalidated_at = CASE WHEN d.token IS NULL THEN d.push_token_invalidated_at ELSE reading END,
            status = 'revoked',
            disabled_reason = CASE reason WHEN 'erased' THEN reason ELSE coalesce(d.disabled_reason, reason) END,
            updated_at = reading
        WHERE d.device_no = device.device_no;
        PERFORM postbell.device_event(
            device, 'device.revoked', device.token_seq || ':' || reason, jsonb_build_object('reason', reason));
        ended := ended + 1;
    END LOOP;
    RETURN ended;
END
$$;

-- Removes a device of the session's tenant from the registry; false when there is none. Its rows on the ledger stay,
-- under its number. One that registers again afterwards is another device, also to a notification that still waits.
CREATE FUNCTION postbell.device_delete(device_id uuid) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tenant text := postbell.session_tenant();
    device postbell.devices;
BEGIN
    DELETE FROM postbell.devices d
    WHERE d.id = device_delete.device_id AND d.tenant_id = tenant AND postbell.acts_for(d.principal_id)
    RETURNING d.* INTO device;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM postbell.device_event(device, 'device.deleted', device.token_seq::text);
    RETURN true;
END
$$;

-- The kinds that a device is not sent from now on: the whole list, which takes the place of the one before.
CREATE FUNCTION postbell.device_mute(device_id uuid, kinds text[]) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tenant text := postbell.session_tenant();
    muted  text[] := ARRAY(SELECT DISTINCT u.name FROM unnest(kinds) u(name) ORDER BY u.name);
BEGIN
    IF pg_column_size(muted) > 1000
            OR EXISTS (
                SELECT 1 FROM unnest(muted) u(name)
                WHERE NOT EXISTS (SELECT 1 FROM postbell.kinds k WHERE k.name = u.name)) THEN
        PERFORM postbell.refuse('device.invalid', 'a device mutes kinds of the catalog, in 1,000 bytes altogether');
    END IF;
    UPDATE postbell.devices d SET
        muted_kinds = muted,
        updated_at = clock_timestamp()
    WHERE d.id = device_mute.device_id AND d.tenant_id = tenant AND postbell.acts_for(d.principal_id);
    IF NOT FOUND THEN
        PERFORM postbell.refuse('device.unknown', 'there is no such device');
    END IF;
END
$$;

RESET ROLE;
"""#)
}
