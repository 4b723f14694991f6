-- Postbell 0011: grants and row security. This file is the list of what each role may do.
--
-- Locks: ACCESS EXCLUSIVE for a moment on each table (row security).
-- Older workers: may run on as members of postbell_dispatcher.
-- Runs in one transaction that the caller opens.

SET LOCAL ROLE postbell_owner;

REVOKE ALL ON ALL TABLES IN SCHEMA postbell FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA postbell FROM PUBLIC;
ALTER DEFAULT PRIVILEGES IN SCHEMA postbell REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;

GRANT USAGE ON SCHEMA postbell
    TO postbell_producer, postbell_registrar, postbell_dispatcher, postbell_reader, postbell_operator;

-- Producers: the columns they may give, and reading back ids.
GRANT INSERT (
    tenant_id, principal_id, kind, dedupe_key, subject, thread, payload, device_id, except_device_id,
    urgency, collapse_key, not_before, expires_at, silent, badge
) ON postbell.outbox TO postbell_producer;
GRANT SELECT (id) ON postbell.outbox TO postbell_producer;
GRANT EXECUTE ON FUNCTION
    postbell.session_tenant(),
    postbell.reader_tenant(),
    postbell.supersede(text, text),
    postbell.erase(text, text),
    postbell.enqueue(
        text, text, text, text, text, text, text, uuid, uuid, text, text, timestamptz, timestamptz, boolean, int),
    postbell.enqueue_or_note(
        text, text, text, text, text, text, text, uuid, uuid, text, text, timestamptz, timestamptz, boolean, int),
    postbell.note_enqueue_failure(text, text, text, text)
TO postbell_producer;

-- Registrars: functions only.
GRANT EXECUTE ON FUNCTION
    postbell.device_register(
        text, text, text, text, text, text, text, text, text, text, text, boolean, text),
    postbell.device_activate(uuid),
    postbell.device_get(uuid, text),
    postbell.device_list(text, text, int),
    postbell.device_revoke(uuid, text, text, text, text),
    postbell.device_delete(uuid),
    postbell.device_mute(uuid, text[]),
    postbell.sync(text, uuid[], text[], uuid[])
TO postbell_registrar;

-- Dispatchers: move work, append what happened; no notification, device or end is theirs to change.
GRANT SELECT, INSERT, DELETE ON postbell.queue, postbell.leases TO postbell_dispatcher;
GRANT UPDATE (attempt) ON postbell.queue TO postbell_dispatcher;  -- FOR UPDATE needs UPDATE on some column
GRANT UPDATE (open, until) ON postbell.leases TO postbell_dispatcher;
GRANT SELECT ON
    postbell.outbox, postbell.settlements, postbell.supersessions, postbell.erasures, postbell.receipts,
    postbell.deliveries,
    postbell.kinds, postbell.routes, postbell.tenants, postbell.settings,
    postbell.schema_migrations,
    postbell.worker_health, postbell.lane_health, postbell.route_service, postbell.lease_positions
TO postbell_dispatcher;
GRANT SELECT (
    device_no, id, tenant_id, principal_id, route_no, app, token, token_seq, token_registered_at,
    success_due_at, rerouted_at, status, muted_kinds
) ON postbell.devices TO postbell_dispatcher;
GRANT INSERT ON postbell.deliveries TO postbell_dispatcher;
GRANT INSERT (notification_id, tenant_no, route_no, status, reason) ON postbell.settlements TO postbell_dispatcher;
GRANT SELECT, INSERT ON postbell.workers TO postbell_dispatcher;
GRANT UPDATE (name, version, routes, lanes, heartbeat_at, stopped_at) ON postbell.workers TO postbell_dispatcher;
GRANT EXECUTE ON FUNCTION
    postbell.uuid7(timestamptz),
    postbell.uuid_floor(timestamptz),
    postbell.awake_class(),
    postbell.wake(smallint[]),
    postbell.outcome_name(smallint),
    postbell.heartbeat_limit(),
    postbell.recover(timestamptz, timestamptz, int, int, int),
    postbell.retry_held(smallint[], int),
    postbell.create_partitions(int, text),
    postbell.device_effects(bigint[], int[], smallint[], timestamptz[], uuid[], int),
    postbell.prune_idempotency_keys(int),
    postbell.audit(timestamptz, interval),
    postbell.audit_scope(timestamptz),
    postbell.reader_tenant_no(),
    postbell.operator_tenant()
TO postbell_dispatcher;

-- Readers: the views and what lies under them, without tokens and payloads.
GRANT SELECT ON
    postbell.lease_positions, postbell.places, postbell.target_ends, postbell.notifications, postbell.ledger,
    postbell.queue_depth, postbell.in_flight,
    postbell.worker_health, postbell.lane_health, postbell.route_service,
    postbell.queue, postbell.deliveries, postbell.settlements, postbell.supersessions,
    postbell.erasures, postbell.receipts, postbell.events, postbell.kinds, postbell.routes, postbell.tenants,
    postbell.tenant_routes, postbell.workers, postbell.settings, postbell.schema_migrations
TO postbell_reader;
GRANT SELECT (
    id, created_at, planned_at, not_before, expires_at, kind_no, tenant_no, device_no, except_device_no,
    badge, silent, tenant_id, principal_id, kind, dedupe_key, subject, thread, collapse_key, urgency,
    device_id, except_device_id, predecessor, routes
) ON postbell.outbox TO postbell_reader;
GRANT SELECT (
    device_no, id, token_registered_at, success_due_at, rerouted_at, last_success_at, last_seen_at,
    push_token_updated_at, push_token_invalidated_at, created_at, updated_at, token_seq, fingerprint,
    failure_count, route_no, tenant_id, principal_id, client_device_id, provider, environment, app,
    status, disabled_reason, muted_kinds, name, kind, platform, device_ref, session_ref
) ON postbell.devices TO postbell_reader;
GRANT EXECUTE ON FUNCTION
    postbell.outcome_name(smallint),
    postbell.heartbeat_limit(),
    postbell.fingerprint_text(int),
    postbell.status_rank(text),
    postbell.target_status(smallint, text),
    postbell.audit(timestamptz, interval),
    postbell.audit_scope(timestamptz),
    postbell.reader_tenant(),
    postbell.reader_tenant_no(),
    postbell.operator_tenant(),
    postbell.uuid_floor(timestamptz)
TO postbell_reader;

-- Operators: what readers may (they are members), and what they do to a notification.
GRANT EXECUTE ON FUNCTION
    postbell.cancel(uuid),
    postbell.requeue(uuid, timestamptz)
TO postbell_operator;

-- ---------------------------------------------------------------------------------------------------------------------
-- Row security, forced. The owner and the dispatcher pass by policies of their own (never BYPASSRLS): triggers and
-- definer functions run as the owner and filter by tenant themselves. Producers see and write their session's tenant;
-- readers one tenant when the session names it, else all; technical tables hold ids only.

DO $$
DECLARE
    listed text;
BEGIN
    FOREACH listed IN ARRAY ARRAY[
        'outbox', 'queue', 'leases', 'deliveries', 'settlements', 'supersessions', 'erasures', 'receipts', 'devices',
        'events', 'idempotency_keys', 'tenants', 'tenant_routes'
    ] LOOP
        EXECUTE format('ALTER TABLE postbell.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', listed);
        EXECUTE format(
            'CREATE POLICY owner_all ON postbell.%I TO postbell_owner USING (true) WITH CHECK (true)', listed);
        IF listed NOT IN ('events', 'idempotency_keys', 'tenant_routes') THEN
            EXECUTE format(
                'CREATE POLICY dispatcher_all ON postbell.%I
                    TO postbell_dispatcher
                    USING (true) WITH CHECK (true)',
                listed);
        END IF;
    END LOOP;
    FOREACH listed IN ARRAY ARRAY[
        'outbox', 'supersessions', 'erasures', 'receipts', 'devices', 'events', 'tenants'
    ] LOOP
        EXECUTE format(
            'CREATE POLICY reader_tenant ON postbell.%I
                FOR SELECT TO postbell_reader
                USING (
                    (SELECT postbell.reader_tenant()) IS NULL
                    OR tenant_id = (SELECT postbell.reader_tenant()))',
            listed);
    END LOOP;
    FOREACH listed IN ARRAY ARRAY['queue', 'deliveries', 'settlements'] LOOP
        EXECUTE format(
            'CREATE POLICY reader_tenant ON postbell.%I
                FOR SELECT TO postbell_reader
                USING (
                    (SELECT postbell.reader_tenant_no()) IS NULL
                    OR tenant_no = (SELECT postbell.reader_tenant_no()))',
            listed);
    END LOOP;
END
$$;
-- The default partition is a table of its own; nobody is granted it, and the owner reads it in the audit.
-- Leases are read through lease_positions. Routes are the apps of all tenants.
ALTER TABLE postbell.routes ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON postbell.routes TO postbell_owner USING (true) WITH CHECK (true);
CREATE POLICY dispatcher_all ON postbell.routes FOR SELECT TO postbell_dispatcher USING (true);
CREATE POLICY reader_routes ON postbell.routes
    FOR SELECT TO postbell_reader
    USING (
        (SELECT postbell.reader_tenant()) IS NULL
        OR route_no = 0
        OR route_no IN (
            SELECT t.route_no FROM postbell.tenant_routes t WHERE t.tenant_id = (SELECT postbell.reader_tenant())));
CREATE POLICY reader_tenant ON postbell.tenant_routes
    FOR SELECT TO postbell_reader
    USING (
        (SELECT postbell.reader_tenant()) IS NULL
        OR tenant_id = (SELECT postbell.reader_tenant()));
CREATE POLICY producer_insert ON postbell.outbox
    FOR INSERT TO postbell_producer
    WITH CHECK (tenant_id = (SELECT postbell.session_tenant()));
CREATE POLICY producer_ids ON postbell.outbox
    FOR SELECT TO postbell_producer
    USING (tenant_id = (SELECT coalesce(postbell.reader_tenant(), postbell.session_tenant())));

RESET ROLE;
