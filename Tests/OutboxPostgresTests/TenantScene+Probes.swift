extension TenantScene {
    /// What tests ask the database with. Ids of either tenant can be named, whether it is there or not; a statement's
    /// answer comes back as text, a refusal with all that the server says of it.
    static let probes = #"""
        CREATE SCHEMA probe;
        CREATE FUNCTION probe.device(tenant text, principal text, client text) RETURNS uuid
        LANGUAGE sql STABLE SECURITY DEFINER AS $$
            SELECT coalesce(
                (SELECT d.id FROM postbell.devices d
                    WHERE d.tenant_id = tenant AND d.principal_id = principal AND d.client_device_id = client),
                '00000000-0000-4000-8000-000000000000')
        $$;
        CREATE FUNCTION probe.notification(tenant text, key text) RETURNS uuid
        LANGUAGE sql STABLE SECURITY DEFINER AS $$
            SELECT coalesce(
                (SELECT o.id FROM postbell.outbox o WHERE o.tenant_id = tenant AND o.dedupe_key = key),
                '00000000-0000-4000-8000-000000000000')
        $$;
        -- a reader's own function, which a careless plan would ask about rows that the reader must not see
        CREATE FUNCTION probe.leak(value text) RETURNS boolean
        LANGUAGE plpgsql COST 0.0000001 AS $$
        BEGIN
            IF value NOT LIKE 'mine%' THEN
                RAISE EXCEPTION 'leaked %', value;
            END IF;
            RETURN true;
        END
        $$;
        CREATE FUNCTION probe.plain(value text) RETURNS text
        LANGUAGE sql IMMUTABLE AS $$
            SELECT regexp_replace(regexp_replace(
                value, '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}', 'ID', 'g'),
                '\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(\+\d\d(:\d\d)?)?', 'TIME', 'g')
        $$;
        CREATE FUNCTION probe.run(statement text, tenant text, principal text) RETURNS text[]
        LANGUAGE plpgsql AS $$
        DECLARE
            line       record;
            lines      text[] := '{}';
            state      text;
            message    text;
            detail     text;
            hint       text;
            rule       text;
        BEGIN
            PERFORM set_config('postbell.tenant_id', tenant, true);
            PERFORM set_config('postbell.principal_id', principal, true);
            IF statement ~ '^(UPDATE|DELETE|SET)' THEN
                EXECUTE statement;
                RETURN '{done}';
            END IF;
            FOR line IN EXECUTE statement LOOP
                lines := lines || probe.plain(line::text);
            END LOOP;
            RETURN ARRAY(SELECT u FROM unnest(lines) u ORDER BY u COLLATE "C");
        EXCEPTION WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS
                state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
                hint = PG_EXCEPTION_HINT, rule = CONSTRAINT_NAME;
            RETURN ARRAY['refused', probe.plain(concat_ws(' | ', state, message, detail, hint, rule))];
        END
        $$;
        CREATE FUNCTION probe.possessions(tenant text) RETURNS SETOF text
        LANGUAGE sql STABLE AS $$
            SELECT probe.plain(x.line)
            FROM (
                SELECT concat_ws(' ', 'outbox', o.principal_id, o.kind, o.dedupe_key, o.subject, o.thread, o.payload,
                    o.device_id, o.except_device_id, n.status, n.reason, n.place, n.attempts)
                FROM postbell.outbox o JOIN postbell.notifications n USING (id) WHERE o.tenant_id = tenant
                UNION ALL
                SELECT concat_ws(' ', 'device', d.principal_id, d.client_device_id, d.app, d.token, d.token_seq,
                    d.status, d.disabled_reason, d.muted_kinds, d.name, d.device_ref, d.session_ref)
                FROM postbell.devices d WHERE d.tenant_id = tenant
                UNION ALL
                SELECT concat_ws(' ', 'event', e.name, e.principal_id, e.detail - 'by')
                FROM postbell.events e WHERE e.tenant_id = tenant
                UNION ALL
                SELECT concat_ws(' ', 'queue', r.app, q.urgency, q.prior)
                FROM postbell.queue q JOIN postbell.routes r USING (route_no)
                JOIN postbell.tenants t USING (tenant_no) WHERE t.tenant_id = tenant
                UNION ALL
                SELECT concat_ws(' ', 'ledger', d.outcome, d.final, d.reason)
                FROM postbell.deliveries d JOIN postbell.tenants t USING (tenant_no) WHERE t.tenant_id = tenant
                UNION ALL
                SELECT concat_ws(' ', 'settlement', s.status, s.reason)
                FROM postbell.settlements s JOIN postbell.tenants t USING (tenant_no) WHERE t.tenant_id = tenant
                UNION ALL
                SELECT concat_ws(' ', 'supersession', u.subject)
                FROM postbell.supersessions u WHERE u.tenant_id = tenant
                UNION ALL
                SELECT concat_ws(' ', 'erasure', e.thread) FROM postbell.erasures e WHERE e.tenant_id = tenant
                UNION ALL
                SELECT concat_ws(' ', 'receipt', r.principal_id, r.subject)
                FROM postbell.receipts r WHERE r.tenant_id = tenant
                UNION ALL
                SELECT concat_ws(' ', 'acknowledgement', o.dedupe_key)
                FROM postbell.acknowledgements a JOIN postbell.outbox o ON o.id = a.notification_id
                WHERE a.tenant_id = tenant
                UNION ALL
                SELECT concat_ws(' ', 'idempotency', k.principal_id, k.key, k.device_status)
                FROM postbell.idempotency_keys k WHERE k.tenant_id = tenant
            ) x(line)
        $$;
        REVOKE ALL ON FUNCTION probe.possessions(text) FROM PUBLIC;
        GRANT USAGE ON SCHEMA probe TO PUBLIC
        """#
}
