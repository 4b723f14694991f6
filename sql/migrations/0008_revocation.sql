-- Postbell 0008: how registrations of devices end, and what devices do not want.
--
-- Locks: none on existing tables.
-- Older workers: may run on; nothing they read changes.
-- Runs in one transaction that the caller opens.

SET LOCAL ROLE postbell_owner;

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
    WHERE d.id = device_delete.device_id AND d.tenant_id = tenant
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
    WHERE d.id = device_mute.device_id AND d.tenant_id = tenant;
    IF NOT FOUND THEN
        PERFORM postbell.refuse('device.unknown', 'there is no such device');
    END IF;
END
$$;

RESET ROLE;
