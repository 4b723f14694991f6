
CREATE SCHEMA postbell;

ALTER SCHEMA postbell OWNER TO postbell_owner;

COMMENT ON SCHEMA postbell IS 'Push notifications: facts are appended and never rewritten, work moves from queue to leases to deliveries';

CREATE TYPE postbell.import_row AS (
	place bigint,
	line bigint,
	principal_id text,
	client_device_id text,
	provider text,
	app text,
	token text,
	environment text,
	name text,
	kind text,
	platform text,
	device_ref text,
	session_ref text,
	known_at timestamp with time zone,
	fault text,
	device_no bigint,
	holder bigint,
	older bigint[],
	route_no smallint,
	fingerprint integer,
	verdict text
);

ALTER TYPE postbell.import_row OWNER TO postbell_owner;

CREATE FUNCTION postbell.acknowledge(id uuid, principal text DEFAULT NULL::text) RETURNS timestamp with time zone
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    tenant text := postbell.session_tenant();
    noted  timestamptz;
BEGIN
    -- before anything else: also where the notification is acknowledged already, and by whom
    PERFORM 1
    FROM postbell.outbox o
    WHERE o.id = acknowledge.id
        AND o.tenant_id = tenant
        AND o.principal_id <> ''  -- forgotten
        AND (principal IS NULL OR o.principal_id = principal)
        AND postbell.acts_for(o.principal_id);
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT a.at INTO noted
    FROM postbell.acknowledgements a
    WHERE a.tenant_id = tenant AND a.notification_id = acknowledge.id;
    IF FOUND THEN
        RETURN noted;
    END IF;
    INSERT INTO postbell.acknowledgements AS a (at, notification_id, tenant_id)
    VALUES (clock_timestamp(), acknowledge.id, tenant)
    ON CONFLICT DO NOTHING
    RETURNING a.at INTO noted;
    IF NOT FOUND THEN
        -- another call of this tenant's, which has committed meanwhile
        SELECT a.at INTO noted
        FROM postbell.acknowledgements a
        WHERE a.tenant_id = tenant AND a.notification_id = acknowledge.id;
    END IF;
    RETURN noted;
END
$$;

ALTER FUNCTION postbell.acknowledge(id uuid, principal text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.acts_for(principal text) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
    SELECT coalesce(nullif(current_setting('postbell.principal_id', true), '') = principal, true)
$$;

ALTER FUNCTION postbell.acts_for(principal text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.ask_hook(kind text, purpose text, ids uuid[]) RETURNS SETOF uuid
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'on'
    SET enable_hashjoin TO 'on'
    SET enable_mergejoin TO 'on'
    SET enable_bitmapscan TO 'on'
    SET plan_cache_mode TO 'auto'
    AS $_$
#variable_conflict use_column
DECLARE
    hook  postbell.hooks;
    fault text;
BEGIN
    SELECT h.* INTO hook FROM postbell.hooks h WHERE h.kind = ask_hook.kind AND h.purpose = ask_hook.purpose;
    IF hook.kind IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'PB204', MESSAGE = 'kind.no_hook: the hook was removed';
    END IF;
    fault := postbell.hook_fault(postbell.hook_function(hook.function_schema, hook.function_name));
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'PB203', MESSAGE = 'kind.hook: ' || fault;
    END IF;
    RETURN QUERY EXECUTE format(
        'SELECT DISTINCT f.id
        FROM (
            SELECT
                array_agg(n.id) AS ids, array_agg(n.tenant_id) AS tenants, array_agg(n.principal_id) AS principals,
                array_agg(n.subject) AS subjects, array_agg(n.payload::jsonb) AS payloads
            FROM postbell.outbox n
            WHERE n.id = ANY ($1)
            HAVING count(*) > 0
        ) a
        CROSS JOIN LATERAL %I.%I(a.ids, a.tenants, a.principals, a.subjects, a.payloads) f(id)
        LIMIT $2',
        hook.function_schema, hook.function_name)
    USING ask_hook.ids, cardinality(ask_hook.ids) + 1;
END
$_$;

ALTER FUNCTION postbell.ask_hook(kind text, purpose text, ids uuid[]) OWNER TO postbell_owner;

CREATE FUNCTION postbell.assign_namespace(role name, namespace text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
#variable_conflict use_column
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_roles r WHERE r.rolname = assign_namespace.role) THEN
        PERFORM postbell.refuse('code.invalid', 'there is no such role');
    END IF;
    IF assign_namespace.namespace !~ '^[a-z0-9._-]{1,64}/[a-z0-9._-]{1,64}$' THEN
        PERFORM postbell.refuse('code.invalid', 'a namespace is publisher/app, each 1 to 64 of a-z, 0-9, _ . -');
    END IF;
    IF EXISTS (
            SELECT 1 FROM postbell.namespaces n
            WHERE n.namespace = assign_namespace.namespace AND n.role_name <> assign_namespace.role) THEN
        PERFORM postbell.refuse('code.invalid', 'the namespace is another role''s');
    END IF;
    DELETE FROM postbell.codes c
    USING postbell.namespaces n
    WHERE n.role_name = assign_namespace.role
        AND c.namespace = n.namespace
        AND n.namespace IS DISTINCT FROM assign_namespace.namespace;
    DELETE FROM postbell.namespaces n
    WHERE n.role_name = assign_namespace.role AND n.namespace IS DISTINCT FROM assign_namespace.namespace;
    IF assign_namespace.namespace IS NOT NULL THEN
        INSERT INTO postbell.namespaces (role_name, namespace)
        VALUES (assign_namespace.role, assign_namespace.namespace)
        ON CONFLICT (role_name) DO NOTHING;
    END IF;
END
$_$;

ALTER FUNCTION postbell.assign_namespace(role name, namespace text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.audit(since timestamp with time zone DEFAULT (now() - '1 day'::interval), grace interval DEFAULT '00:01:00'::interval) RETURNS TABLE(fault text, notification_id uuid, detail text)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_hashjoin TO 'on'
    SET enable_mergejoin TO 'on'
    SET enable_seqscan TO 'on'
    SET enable_bitmapscan TO 'on'
    SET enable_nestloop TO 'on'
    AS $$
    SELECT f.*
    FROM (
        SELECT * FROM postbell.audit_work(greatest(since, postbell.retained_since()), grace)
        UNION ALL SELECT * FROM postbell.audit_ledger(greatest(since, postbell.retained_since()))
        UNION ALL SELECT * FROM postbell.audit_registry(greatest(since, postbell.retained_since()))
    ) f
    WHERE (SELECT postbell.confined_tenant()) IS NULL
        OR EXISTS (
            SELECT 1 FROM postbell.outbox o
            WHERE o.id = f.notification_id AND o.tenant_id = (SELECT postbell.confined_tenant()))
    -- always asked: who named another's tenant is refused, also where there is no fault
    UNION ALL
    SELECT NULL::text, NULL::uuid, NULL::text WHERE postbell.confined_tenant() = ''
$$;

ALTER FUNCTION postbell.audit(since timestamp with time zone, grace interval) OWNER TO postbell_owner;

CREATE FUNCTION postbell.audit_ledger(since timestamp with time zone) RETURNS TABLE(fault text, notification_id uuid, detail text)
    LANGUAGE sql STABLE
    AS $$
    WITH sent AS MATERIALIZED (
        SELECT
            d.id, d.notification_id, d.batch, d.device_no, d.attempted_at, d.answer_us, d.retry_at, d.tenant_no,
            d.route_no, d.attempt, d.outcome, d.provider_status, d.final, d.late, d.reason,
            o.id AS known, o.created_at, o.expires_at, o.tenant_id, o.tenant_no AS own_tenant_no, o.principal_id,
            o.kind_no, o.subject, o.thread
        FROM postbell.deliveries d
        LEFT JOIN postbell.outbox o ON o.id = d.notification_id
        WHERE d.id >= postbell.uuid_floor(since - interval '1 minute')
    )
    SELECT 'default_partition', d.notification_id, 'ledger row ' || d.id
    FROM postbell.deliveries_default d

    UNION ALL
    SELECT 'ledger_orphan', d.notification_id, 'ledger row ' || d.id || ' without its notification'
    FROM sent d
    WHERE d.known IS NULL

    UNION ALL
    SELECT 'foreign_tenant', d.notification_id, 'ledger row ' || d.id || ', tenant ' || d.tenant_no
    FROM sent d
    WHERE d.tenant_no <> d.own_tenant_no

    -- sent to somebody else's device
    UNION ALL
    SELECT 'foreign_device', d.notification_id, 'device ' || d.device_no || ', ledger row ' || d.id
    FROM sent d
    JOIN postbell.devices v ON v.device_no = d.device_no
    WHERE (v.tenant_id, v.principal_id) <> (d.tenant_id, d.principal_id)

    -- an outcome that is none, or that the rest of its row denies
    UNION ALL
    SELECT 'ledger_shape', d.notification_id, 'ledger row ' || d.id || ', outcome ' || d.outcome
    FROM sent d
    WHERE d.outcome NOT BETWEEN 0 AND 7
        OR (d.outcome IN (0, 1, 2, 7) AND NOT d.final)
        OR (d.outcome IN (4, 5) AND d.final)
        OR (d.outcome = 0 AND d.provider_status NOT BETWEEN 200 AND 299)
        OR (d.outcome = 7 AND (d.provider_status IS NOT NULL OR NOT postbell.is_reason(d.reason)))
        OR (d.final AND d.retry_at IS NOT NULL)
        OR d.answer_us < 0

    -- ids are cut into days, which go as a whole
    UNION ALL
    SELECT 'ledger_time', d.notification_id, 'ledger row ' || d.id || ', sent at ' || d.attempted_at
    FROM sent d
    WHERE d.id < postbell.uuid_floor(d.attempted_at - interval '1 day')
        OR d.id > postbell.uuid_floor(d.attempted_at + interval '1 day')

    -- final twice, each time by who held the lease
    UNION ALL
    SELECT 'two_ends', d.notification_id, 'device ' || d.device_no
    FROM sent d
    WHERE d.final AND NOT d.late
    GROUP BY d.notification_id, d.device_no
    HAVING count(*) > 1

    -- sent by a later lease although it had its end. A second, because two workers' clocks may differ a little
    UNION ALL
    SELECT 'sent_after_end', d.notification_id, 'device ' || d.device_no || ', ledger row ' || d.id
    FROM sent e
    JOIN sent d USING (notification_id, device_no)
    WHERE e.final
        AND NOT e.late
        AND d.outcome <> 7
        AND NOT d.late
        AND d.batch <> e.batch
        AND d.attempted_at > e.attempted_at + coalesce(e.answer_us, 0) * interval '1 microsecond' + interval '1 s'

    -- delivered twice with nothing that explains it
    UNION ALL
    SELECT 'twice_delivered', d.notification_id, 'device ' || d.device_no
    FROM sent d
    WHERE d.outcome = 0
    GROUP BY d.notification_id, d.device_no
    HAVING count(*) > 1
        AND NOT bool_or(d.late)
        AND NOT EXISTS (
            SELECT 1 FROM sent u
            WHERE u.notification_id = d.notification_id AND u.device_no = d.device_no AND u.outcome = 6)

    -- recovery writes `unknown` for those alone whose answer its lease never brought
    UNION ALL
    SELECT 'unknown_beside_known', d.notification_id, 'device ' || d.device_no || ', batch ' || d.batch
    FROM sent u
    JOIN sent d USING (notification_id, device_no, batch)
    WHERE u.outcome = 6
        AND u.reason = 'lease_lost'
        AND d.id <> u.id
        AND NOT d.late

    UNION ALL
    SELECT 'sent_late', d.notification_id, 'ledger row ' || d.id || ', deadline ' || d.expires_at
    FROM sent d
    WHERE d.outcome <> 7 AND d.attempted_at > d.expires_at + interval '1 s'

    -- sent long after a fact against it. The fact's time is when it was written, not when it committed: who has an
    -- open transaction for more than five minutes is found here too
    UNION ALL
    SELECT 'sent_though_over', d.notification_id, 'ledger row ' || d.id || ', ' || d.what || ' at ' || d.at
    FROM (
        SELECT s.id, s.notification_id, s.outcome, s.attempted_at, 'superseded' AS what, u.at
        FROM sent s
        JOIN postbell.supersessions u ON u.tenant_id = s.tenant_id AND u.subject = s.subject AND u.at > s.created_at
        UNION ALL
        SELECT s.id, s.notification_id, s.outcome, s.attempted_at, 'erased', e.at
        FROM sent s
        JOIN postbell.erasures e ON e.tenant_id = s.tenant_id AND e.thread = s.thread AND e.at > s.created_at
        UNION ALL
        SELECT s.id, s.notification_id, s.outcome, s.attempted_at, 'seen', r.seen_at
        FROM sent s
        JOIN postbell.kinds k ON k.kind_no = s.kind_no AND k.ends_when_seen
        JOIN postbell.receipts r ON r.tenant_id = s.tenant_id
            AND r.principal_id = s.principal_id
            AND r.subject = s.subject
            AND r.seen_at > s.created_at
        UNION ALL
        SELECT s.id, s.notification_id, s.outcome, s.attempted_at, w.status, w.at
        FROM sent s
        JOIN postbell.settlements w ON w.notification_id = s.notification_id AND w.route_no IS NULL
    ) d
    WHERE d.outcome <> 7 AND d.attempted_at > d.at + interval '5 min'

    -- more attempts than the kind's own list of waits allows, and no end
    UNION ALL
    SELECT 'over_ceiling', d.notification_id, 'device ' || d.device_no || ': ' || count(DISTINCT d.batch) || ' attempts'
    FROM sent d
    JOIN postbell.kinds k ON k.kind_no = d.kind_no
    WHERE k.retry NOT LIKE '%..%'
    GROUP BY d.notification_id, d.device_no, k.retry
    HAVING NOT bool_or(d.final)
        AND count(DISTINCT d.batch) FILTER (WHERE d.outcome IN (3, 6) AND d.attempted_at IS NOT NULL)
            > cardinality(string_to_array(k.retry, ',')) + 1
$$;

ALTER FUNCTION postbell.audit_ledger(since timestamp with time zone) OWNER TO postbell_owner;

CREATE FUNCTION postbell.audit_registry(since timestamp with time zone) RETURNS TABLE(fault text, notification_id uuid, detail text)
    LANGUAGE sql STABLE
    AS $$
    -- an end that no view can read, or of the whole notification by what ends one route
    SELECT 'settlement_shape', s.notification_id, 'settlement ' || s.seq
    FROM postbell.settlements s
    WHERE s.at >= since
        AND (s.status NOT IN ('dispatched', 'superseded', 'cancelled', 'expired', 'failed')
            OR NOT postbell.is_reason(s.reason)
            OR (s.route_no IS NULL AND s.status IN ('dispatched', 'failed')))

    UNION ALL
    SELECT 'foreign_tenant', s.notification_id, 'settlement ' || s.seq || ', tenant ' || s.tenant_no
    FROM postbell.settlements s
    JOIN postbell.outbox o ON o.id = s.notification_id
    WHERE s.at >= since AND s.tenant_no <> o.tenant_no

    -- a live token of a device that says it has none to give, or an environment where the provider has none
    UNION ALL
    SELECT 'device_shape', NULL, 'device ' || d.device_no
    FROM postbell.devices d
    WHERE (d.token IS NOT NULL AND (d.token_registered_at IS NULL OR d.token_seq = 0))
        OR (d.status IN ('disabled', 'revoked') AND d.token IS NOT NULL)
        OR (d.provider = 'apns') <> (d.environment IS NOT NULL)

    UNION ALL
    SELECT 'token_twice', NULL, 'devices ' || string_agg(d.device_no::text, ', ' ORDER BY d.device_no)
    FROM postbell.devices d
    WHERE d.token IS NOT NULL
    GROUP BY d.token, d.provider, d.environment
    HAVING count(*) > 1

    -- a token that was cleared because of an answer that the ledger does not have
    UNION ALL
    SELECT 'effect_without_cause', n.id, e.name || ' ' || (e.detail ->> 'reason') || ', device ' || v.device_no
    FROM postbell.events e
    CROSS JOIN LATERAL (SELECT (e.detail ->> 'notification_id')::uuid AS id) n
    JOIN postbell.devices v ON v.id = e.device_id
    WHERE e.at >= since
        AND e.name = 'device.push_token_invalidated'
        AND n.id IS NOT NULL
        AND NOT EXISTS (
            SELECT 1 FROM postbell.deliveries d
            WHERE d.notification_id = n.id
                AND d.device_no = v.device_no
                AND d.outcome = CASE e.detail ->> 'reason' WHEN 'token_invalid' THEN 1 ELSE 3 END)

    -- a success that nobody delivered; the five minutes are for an effect that had to wait for its device
    UNION ALL
    SELECT 'effect_without_cause', NULL, 'success of device ' || v.device_no || ' at ' || v.last_success_at
    FROM postbell.devices v
    WHERE v.last_success_at > since + interval '5 min'
        AND v.device_no NOT IN (
            SELECT d.device_no
            FROM postbell.deliveries d
            WHERE d.id >= postbell.uuid_floor(since - interval '1 minute') AND d.outcome = 0)

    -- the key is what makes an event happen once
    UNION ALL
    SELECT 'event_twice', NULL, e.name || ': ' || count(*)
    FROM postbell.events e
    WHERE e.at >= since
        AND (e.detail ? 'notification_id' OR e.name NOT LIKE 'device.%')
    GROUP BY e.name, e.device_id, coalesce(e.detail ->> 'notification_id', e.id::text)
    HAVING count(*) > 1

    UNION ALL
    SELECT 'event_key', NULL, 'event ' || e.id
    FROM postbell.events e
    WHERE e.at >= since AND NOT starts_with(e.key, e.name || ':')
$$;

ALTER FUNCTION postbell.audit_registry(since timestamp with time zone) OWNER TO postbell_owner;

CREATE FUNCTION postbell.audit_scope(since timestamp with time zone DEFAULT (now() - '1 day'::interval)) RETURNS TABLE(notifications bigint, queued bigint, leased bigint, deliveries bigint, settlements bigint, devices bigint)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT
        (SELECT count(*) FROM postbell.outbox o
            WHERE o.id >= postbell.uuid_floor(since) AND (n.id IS NULL OR o.tenant_id = n.id)),
        (SELECT count(*) FROM postbell.queue q WHERE n.no IS NULL OR q.tenant_no = n.no),
        (SELECT count(*) FROM postbell.lease_positions l WHERE l.is_open AND (n.no IS NULL OR l.tenant_no = n.no)),
        (SELECT count(*) FROM postbell.deliveries d
            WHERE d.id >= postbell.uuid_floor(since - interval '1 minute')
                AND (n.no IS NULL OR d.tenant_no = n.no)),
        (SELECT count(*) FROM postbell.settlements s WHERE n.no IS NULL OR s.tenant_no = n.no),
        (SELECT count(*) FROM postbell.devices d WHERE n.id IS NULL OR d.tenant_id = n.id)
    FROM (SELECT postbell.confined_tenant() AS id, CASE WHEN postbell.confined_tenant() IS NOT NULL
        THEN postbell.reader_tenant_no() END AS no OFFSET 0) n
$$;

ALTER FUNCTION postbell.audit_scope(since timestamp with time zone) OWNER TO postbell_owner;

CREATE FUNCTION postbell.audit_work(since timestamp with time zone, grace interval) RETURNS TABLE(fault text, notification_id uuid, detail text)
    LANGUAGE sql STABLE
    AS $$
    WITH place AS MATERIALIZED (
        SELECT * FROM postbell.places
    ),
    recent AS MATERIALIZED (
        SELECT o.id, o.routes FROM postbell.outbox o WHERE o.id >= postbell.uuid_floor(since)
    ),
    -- a minute of slack: the worker's ids follow the database's clock, not exactly
    sent AS MATERIALIZED (
        SELECT d.notification_id, d.route_no, bool_or(d.final) AS final
        FROM postbell.deliveries d
        WHERE d.id >= postbell.uuid_floor(since - interval '1 minute')
        GROUP BY d.notification_id, d.route_no
    )
    SELECT
        'two_places', p.notification_id,
        'route ' || p.route_no || ': ' || string_agg(p.place || coalesce(' ' || p.batch, ''), ', ')
    FROM place p
    GROUP BY p.notification_id, p.route_no
    HAVING count(*) > 1

    UNION ALL
    SELECT 'orphan', p.notification_id, p.place || ' without its notification'
    FROM place p
    WHERE NOT EXISTS (SELECT 1 FROM postbell.outbox o WHERE o.id = p.notification_id)

    -- nothing at all is left of it
    UNION ALL
    SELECT 'lost', r.id, 'no place, no final ledger row, no settlement'
    FROM recent r
    WHERE NOT EXISTS (SELECT 1 FROM place p WHERE p.notification_id = r.id)
        AND NOT EXISTS (SELECT 1 FROM postbell.settlements s WHERE s.notification_id = r.id)
        AND NOT EXISTS (SELECT 1 FROM sent d WHERE d.notification_id = r.id AND d.final)

    -- one of the routes it was queued for is gone without an end
    UNION ALL
    SELECT 'lost_route', x.id, 'route ' || x.route_no || ': no place, no final ledger row, no settlement'
    FROM (
        SELECT r.id, u.route_no
        FROM recent r
        CROSS JOIN LATERAL unnest(r.routes) u(route_no)
        WHERE u.route_no <> 0
    ) x
    WHERE NOT EXISTS (SELECT 1 FROM place p WHERE p.notification_id = x.id AND p.route_no = x.route_no)
        AND NOT EXISTS (
            SELECT 1 FROM postbell.settlements s
            WHERE s.notification_id = x.id AND coalesce(s.route_no, x.route_no) = x.route_no)
        AND NOT EXISTS (
            SELECT 1 FROM sent d
            WHERE d.notification_id = x.id AND d.route_no = x.route_no AND d.final)

    -- it was tried, and then nobody went on
    UNION ALL
    SELECT
        'unfinished', x.notification_id,
        'route ' || x.route_no || ': ledger rows, none final, no place, no settlement'
    FROM sent x
    WHERE NOT x.final
        AND NOT EXISTS (
            SELECT 1 FROM place p
            WHERE p.notification_id = x.notification_id AND p.route_no = x.route_no)
        AND NOT EXISTS (
            SELECT 1 FROM postbell.settlements s
            WHERE s.notification_id = x.notification_id AND coalesce(s.route_no, x.route_no) = x.route_no)

    -- a fresh row with a history would be sent again to devices that are done
    UNION ALL
    SELECT
        'history_forgotten', q.notification_id,
        'route ' || q.route_no || ': not prior, but the ledger has rows'
    FROM postbell.queue q
    WHERE NOT q.prior
        AND EXISTS (SELECT 1 FROM sent d WHERE d.notification_id = q.notification_id AND d.route_no = q.route_no)

    UNION ALL
    SELECT 'lease_shape', NULL, 'batch ' || l.batch
    FROM postbell.leases l
    WHERE length(l.open) <> cardinality(l.ids)
        OR cardinality(l.tenants) <> cardinality(l.ids)
        OR cardinality(l.urgencies) <> cardinality(l.ids)
        OR cardinality(l.attempts) <> cardinality(l.ids)
        OR cardinality(l.crashes) <> cardinality(l.ids)
        OR cardinality(l.cursors) <> cardinality(l.ids)
        OR cardinality(l.t_pos) <> cardinality(l.t_dev)
        OR bit_count(l.open) = 0
        OR EXISTS (SELECT 1 FROM unnest(l.t_pos) t(pos) WHERE t.pos NOT BETWEEN 1 AND cardinality(l.ids))

    UNION ALL
    SELECT 'not_recovered', NULL, 'batch ' || l.batch || ' lapsed at ' || l.until
    FROM postbell.leases l
    WHERE l.until < now() - grace

    -- work that counts for a tenant whose notification it is not
    UNION ALL
    SELECT 'foreign_tenant', o.id, x.place || ', tenant ' || x.tenant_no
    FROM (
        SELECT q.notification_id, q.tenant_no, 'queue' AS place
        FROM postbell.queue q
        UNION ALL
        SELECT u.id, u.tenant_no, 'lease'
        FROM postbell.leases l, unnest(l.ids, l.tenants) u(id, tenant_no)
    ) x
    JOIN postbell.outbox o ON o.id = x.notification_id
    WHERE o.tenant_no IS DISTINCT FROM x.tenant_no
$$;

ALTER FUNCTION postbell.audit_work(since timestamp with time zone, grace interval) OWNER TO postbell_owner;

CREATE FUNCTION postbell.awake_class() RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT 1886352482
$$;

ALTER FUNCTION postbell.awake_class() OWNER TO postbell_owner;

CREATE FUNCTION postbell.bounded_payload(payload text, presentation text) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT CASE
        WHEN octet_length(payload) <= CASE presentation WHEN 'raw' THEN 16384 ELSE 8192 END THEN payload
        ELSE '{}'
    END
$$;

ALTER FUNCTION postbell.bounded_payload(payload text, presentation text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.cancel(id uuid) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION postbell.cancel(id uuid) OWNER TO postbell_owner;

CREATE TABLE postbell.codes (
    namespace text NOT NULL,
    key text NOT NULL,
    title text NOT NULL,
    body text,
    target text,
    route text,
    thread text,
    installed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    installed_by text DEFAULT SESSION_USER NOT NULL
);

ALTER TABLE postbell.codes OWNER TO postbell_owner;

CREATE FUNCTION postbell.code_entry(entry postbell.codes) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT '{' || pg_catalog.concat_ws(',',
        '"title":' || pg_catalog.to_json(entry.title)::text,
        '"body":' || pg_catalog.to_json(entry.body)::text,
        '"target":' || pg_catalog.to_json(entry.target)::text,
        '"route":' || pg_catalog.to_json(entry.route)::text,
        '"thread":' || pg_catalog.to_json(entry.thread)::text) || '}'
$$;

ALTER FUNCTION postbell.code_entry(entry postbell.codes) OWNER TO postbell_owner;

CREATE FUNCTION postbell.code_fault(content jsonb, keys jsonb, lacks_extension boolean) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
DECLARE
    code text;
BEGIN
    SELECT min(k.key) INTO code FROM jsonb_each(keys) k
    WHERE k.value ->> 'type' = 'code' AND (k.value ->> 'required')::boolean;
    IF code IS NULL OR EXISTS (
            SELECT 1 FROM jsonb_each(keys) k
            WHERE k.key <> code AND k.value ->> 'type' NOT IN ('int', 'uuid', 'bool')) THEN
        RETURN 'a kind of codes has one required key of type code, and beside it int, uuid and bool only';
    END IF;
    IF content ? 'form' THEN
        RETURN 'form does not go with codes';
    END IF;
    IF NOT content ? 'data'
            OR NOT postbell.uses_own_value(content - 'fcm', 'mapping')
            OR NOT EXISTS (
                SELECT 1 FROM jsonb_each(content -> 'data') d WHERE d.value #>> '{}' = '{' || code || '}') THEN
        RETURN 'data of a kind of codes must hold the code and {$mapping}';
    END IF;
    IF lacks_extension THEN
        RETURN 'an alert of a kind of codes needs mutable_content, so that the app can put the code into words';
    END IF;
    RETURN NULL;
END
$_$;

ALTER FUNCTION postbell.code_fault(content jsonb, keys jsonb, lacks_extension boolean) OWNER TO postbell_owner;

CREATE FUNCTION postbell.codes_fault(codes jsonb) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
DECLARE
    entry record;
BEGIN
    IF jsonb_typeof(codes) IS DISTINCT FROM 'object' THEN
        RETURN 'codes are an object of key to entry';
    END IF;
    IF (SELECT count(*) FROM jsonb_object_keys(codes)) > 10000 THEN
        RETURN 'a namespace has at most 10000 codes';
    END IF;
    FOR entry IN SELECT c.key, c.value FROM jsonb_each(codes) c LOOP
        -- no colon and no slash: a key cannot name a namespace
        IF entry.key !~ '^[A-Za-z0-9._-]{1,64}$' THEN
            RETURN 'a code''s key is 1 to 64 of a-z, A-Z, 0-9, _ . -';
        END IF;
        IF jsonb_typeof(entry.value) <> 'object' OR NOT entry.value ? 'title'
                OR EXISTS (
                    SELECT 1 FROM jsonb_each(entry.value) m
                    WHERE m.key NOT IN ('title', 'body', 'target', 'route', 'thread')
                        OR jsonb_typeof(m.value) <> 'string'
                        OR char_length(m.value #>> '{}') NOT BETWEEN 1 AND 500) THEN
            RETURN 'code "' || entry.key || '" has a title, and may have body, target, route and thread, each a text of'
                || ' 1 to 500 characters, and nothing else';
        END IF;
    END LOOP;
    RETURN NULL;
END
$_$;

ALTER FUNCTION postbell.codes_fault(codes jsonb) OWNER TO postbell_owner;

CREATE FUNCTION postbell.confined_tenant() RETURNS text
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
    RETURN CASE WHEN EXISTS (SELECT 1 FROM postbell.role_tenants r WHERE r.role_name = SESSION_USER)
        THEN postbell.session_tenant() END;
END
$$;

ALTER FUNCTION postbell.confined_tenant() OWNER TO postbell_owner;

CREATE FUNCTION postbell.content_bytes(presentation text, content jsonb) RETURNS integer
    LANGUAGE sql IMMUTABLE
    AS $_$
    SELECT postbell.text_bytes(presentation, content -> 'title')
        + postbell.text_bytes(presentation, content -> 'subtitle')
        + postbell.text_bytes(presentation, content -> 'body')
        + coalesce(octet_length(content ->> 'container'), 0)
        + coalesce((
            SELECT sum(octet_length(d.key) + octet_length(d.value::text))::int
            FROM jsonb_each(content -> 'data') d
            WHERE d.value #>> '{}' !~ '^\{.*\}$'), 0)
$_$;

ALTER FUNCTION postbell.content_bytes(presentation text, content jsonb) OWNER TO postbell_owner;

CREATE FUNCTION postbell.content_fault(presentation text, content jsonb, keys jsonb, lacks_extension boolean) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
DECLARE
    named   text;
    allowed text[] := '{title,subtitle,body,container,data,fcm}' || CASE presentation
        WHEN 'template' THEN '{form,labels,visible}'::text[]
        WHEN 'localized' THEN '{form}'
        WHEN 'code' THEN '{form}'
    END;
BEGIN
    IF presentation = 'raw' THEN
        RETURN NULL;
    END IF;
    IF jsonb_typeof(content) IS DISTINCT FROM 'object' THEN
        RETURN 'content is an object';
    END IF;
    SELECT min(k) INTO named FROM jsonb_object_keys(content) k WHERE k <> ALL (allowed);
    IF named IS NOT NULL THEN
        RETURN 'content of this presentation has no member "' || left(named, 64) || '"';
    END IF;
    IF content ? 'form' THEN
        IF content -> 'form' <> '"badge"' THEN
            RETURN 'form is "badge" or not there';
        END IF;
        IF (content - 'form' - 'fcm' <> '{}') THEN
            RETURN 'form "badge" goes with fcm and with nothing else';
        END IF;
    END IF;
    IF content ? 'container' AND NOT (
            jsonb_typeof(content -> 'container') = 'string'
            AND content ->> 'container' ~ '^[A-Za-z][A-Za-z0-9_.-]{0,63}$'
            AND content ->> 'container' <> 'aps') THEN
        RETURN 'container is a name of 1 to 64 of a-z, A-Z, 0-9, _ . - that begins with a letter, and not aps';
    END IF;
    RETURN coalesce(
        CASE WHEN content ? 'labels' THEN postbell.labels_fault(content -> 'labels', keys) END,
        postbell.visible_fault(presentation, coalesce(content -> 'visible', '{}'), keys),
        CASE WHEN content ? 'title' THEN postbell.text_fault(presentation, 'title', content -> 'title', keys) END,
        CASE WHEN content ? 'subtitle' THEN
            postbell.text_fault(presentation, 'subtitle', content -> 'subtitle', keys) END,
        CASE WHEN content ? 'body' THEN postbell.text_fault(presentation, 'body', content -> 'body', keys) END,
        CASE WHEN content ? 'data' THEN postbell.members_fault('data', content -> 'data', keys) END,
        CASE WHEN content ? 'fcm' THEN postbell.members_fault('fcm', content -> 'fcm', keys) END,
        CASE WHEN presentation = 'code' THEN postbell.code_fault(content, keys, lacks_extension) END);
END
$_$;

ALTER FUNCTION postbell.content_fault(presentation text, content jsonb, keys jsonb, lacks_extension boolean) OWNER TO postbell_owner;

CREATE FUNCTION postbell.create_partitions(days_ahead integer DEFAULT 3, lock_limit text DEFAULT '200ms'::text) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    today  date := (clock_timestamp() AT TIME ZONE 'UTC')::date;
    day    date;
    leaf   text;
    made   int := 0;
    before text := current_setting('lock_timeout');
BEGIN
    IF NOT pg_try_advisory_xact_lock(postbell.awake_class(), -1) THEN
        RETURN 0;  -- another worker is at it
    END IF;
    PERFORM set_config('lock_timeout', lock_limit, true);
    FOR day IN SELECT today + i FROM generate_series(-1, least(days_ahead, 31)) i LOOP
        leaf := 'deliveries_' || to_char(day, 'YYYYMMDD');
        IF to_regclass('postbell.' || leaf) IS NULL THEN
            EXECUTE format('CREATE TABLE postbell.%I (LIKE postbell.deliveries INCLUDING ALL)', leaf);
            EXECUTE format(
                'ALTER TABLE postbell.deliveries ATTACH PARTITION postbell.%I FOR VALUES FROM (%L) TO (%L)',
                leaf,
                postbell.uuid_floor(day::timestamp AT TIME ZONE 'UTC'),
                postbell.uuid_floor((day + 1)::timestamp AT TIME ZONE 'UTC'));
            made := made + 1;
        END IF;
    END LOOP;
    PERFORM set_config('lock_timeout', before, true);
    RETURN made;
END
$$;

ALTER FUNCTION postbell.create_partitions(days_ahead integer, lock_limit text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.define_kind(name text, presentation text, payload jsonb DEFAULT '{}'::jsonb, content jsonb DEFAULT '{}'::jsonb, apps text[] DEFAULT NULL::text[], producers name[] DEFAULT NULL::name[], urgency text DEFAULT 'urgent'::text, priority smallint DEFAULT 10, push_type text DEFAULT 'alert'::text, grace interval DEFAULT '00:00:00'::interval, wait_for_device interval DEFAULT '00:01:00'::interval, max_age interval DEFAULT '24:00:00'::interval, provider_ttl interval DEFAULT NULL::interval, retry text DEFAULT NULL::text, collapse text DEFAULT 'dedupe_key'::text, interruption_level text DEFAULT NULL::text, category text DEFAULT NULL::text, sound text DEFAULT NULL::text, group_by_thread boolean DEFAULT true, mutable_content boolean DEFAULT false, ends_when_seen boolean DEFAULT false, enabled boolean DEFAULT true) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
#variable_conflict use_column
DECLARE
    compiled jsonb := '{}';
    entry    record;
    fault    text;
    previous postbell.kinds;
    wanted   postbell.kinds;
    number   int;
BEGIN
    IF define_kind.name IS NULL OR define_kind.name !~ '^[a-z][a-z0-9_.-]{0,99}$' THEN
        PERFORM postbell.refuse(
            'kind.invalid', 'a kind''s name is 1 to 100 of a-z, 0-9, _ . - and begins with a letter');
    END IF;
    IF coalesce(define_kind.presentation NOT IN ('template', 'localized', 'code', 'raw'), true) THEN
        PERFORM postbell.refuse('kind.invalid', 'presentation must be template, localized, code or raw');
    END IF;
    IF jsonb_typeof(define_kind.payload) IS DISTINCT FROM 'object' THEN
        PERFORM postbell.refuse('kind.invalid', 'payload is an object of keys and types');
    END IF;
    IF define_kind.presentation = 'raw'
            AND (coalesce(cardinality(define_kind.producers), 0) = 0 OR define_kind.payload <> '{}'
                OR define_kind.content <> '{}') THEN
        PERFORM postbell.refuse(
            'kind.invalid', 'a raw kind names its producer roles and declares neither payload nor content');
    END IF;
    FOR entry IN
        SELECT p.key, p.value #>> '{}' AS type, postbell.payload_type(p.value #>> '{}') AS parts
        FROM jsonb_each(define_kind.payload) p
    LOOP
        IF entry.key !~ '^[A-Za-z][A-Za-z0-9_.-]{0,63}$' OR entry.parts IS NULL THEN
            PERFORM postbell.refuse('kind.invalid', 'payload key "' || left(entry.key, 64) || '" has no known type');
        END IF;
        -- FCM refuses a whole message for one of these among the keys of its data
        IF entry.key ~ '^(from$|message_type$|google|gcm)' THEN
            PERFORM postbell.refuse('kind.invalid', 'payload key "' || left(entry.key, 64) || '" is reserved by FCM');
        END IF;
        compiled := compiled || jsonb_build_object(entry.key, entry.parts);
    END LOOP;
    fault := postbell.content_fault(
        define_kind.presentation, define_kind.content, compiled,
        define_kind.push_type = 'alert' AND NOT define_kind.mutable_content);
    IF fault IS NOT NULL THEN
        PERFORM postbell.refuse('kind.content', fault);
    END IF;
    fault := postbell.push_type_fault(
        define_kind.push_type, define_kind.priority, define_kind.presentation, define_kind.content,
        define_kind.category, define_kind.sound, define_kind.interruption_level, define_kind.mutable_content);
    IF fault IS NOT NULL THEN
        PERFORM postbell.refuse('kind.push_type', fault);
    END IF;
    IF define_kind.urgency NOT IN ('urgent', 'bulk')
            OR define_kind.collapse NOT IN ('dedupe_key', 'thread', 'subject', 'none')
            OR define_kind.interruption_level NOT IN ('passive', 'active', 'time-sensitive', 'critical') THEN
        PERFORM postbell.refuse('kind.invalid', 'unknown urgency, collapse rule or interruption level');
    END IF;
    IF define_kind.grace NOT BETWEEN '0' AND '1 h'
            OR define_kind.wait_for_device NOT BETWEEN '0' AND '24 h'
            OR define_kind.max_age NOT BETWEEN '1 s' AND '30 d'
            OR define_kind.provider_ttl NOT BETWEEN '0' AND '28 d' THEN
        PERFORM postbell.refuse(
            'kind.invalid', 'grace 0-1h, wait_for_device 0-24h, max_age 1s-30d, provider_ttl 0-28d');
    END IF;
    IF define_kind.retry !~ '^[0-9]+(ms|s|m|h|d)((,[0-9]+(ms|s|m|h|d)){0,31}|\.\.[0-9]+(ms|s|m|h|d))$' THEN
        PERFORM postbell.refuse('kind.invalid', 'retry is a list such as 30s,2m or base..cap such as 2s..5m');
    END IF;

    PERFORM pg_advisory_xact_lock(hashtextextended('postbell.kind ' || define_kind.name, 0));
    SELECT * INTO previous FROM postbell.kinds k WHERE k.name = define_kind.name AND k.current;
    wanted := (
        previous.kind_no, define_kind.name, previous.revision, true, define_kind.enabled,
        define_kind.presentation, define_kind.payload, compiled,
        ARRAY(SELECT c.key FROM jsonb_each(compiled) c WHERE (c.value ->> 'required')::boolean ORDER BY c.key),
        ARRAY(SELECT c.key FROM jsonb_object_keys(compiled) c(key) ORDER BY c.key),
        define_kind.content, postbell.visible_keys(define_kind.content, compiled),
        postbell.uses_own_value(define_kind.content, 'instance'), define_kind.content ? 'form',
        define_kind.apps, define_kind.producers, define_kind.urgency, define_kind.priority, define_kind.push_type,
        define_kind.grace, define_kind.wait_for_device, define_kind.max_age, define_kind.provider_ttl,
        define_kind.retry, define_kind.collapse, define_kind.interruption_level,
        define_kind.category, define_kind.sound, define_kind.group_by_thread, define_kind.mutable_content,
        define_kind.ends_when_seen, previous.created_at);
    IF previous.kind_no IS NOT NULL THEN
        UPDATE postbell.kinds k SET enabled = define_kind.enabled
        WHERE k.kind_no = previous.kind_no AND k.enabled <> define_kind.enabled;
        previous.enabled := define_kind.enabled;
        IF previous IS NOT DISTINCT FROM wanted THEN
            RETURN previous.kind_no;
        END IF;
        UPDATE postbell.kinds k SET current = false WHERE k.kind_no = previous.kind_no;
    END IF;
    wanted.revision := (SELECT coalesce(max(k.revision), 0) + 1 FROM postbell.kinds k WHERE k.name = define_kind.name);
    wanted.created_at := clock_timestamp();
    INSERT INTO postbell.kinds OVERRIDING USER VALUE SELECT (wanted).* RETURNING kind_no INTO number;
    RETURN number;
END
$_$;

ALTER FUNCTION postbell.define_kind(name text, presentation text, payload jsonb, content jsonb, apps text[], producers name[], urgency text, priority smallint, push_type text, grace interval, wait_for_device interval, max_age interval, provider_ttl interval, retry text, collapse text, interruption_level text, category text, sound text, group_by_thread boolean, mutable_content boolean, ends_when_seen boolean, enabled boolean) OWNER TO postbell_owner;

CREATE FUNCTION postbell.device_activate(device_id uuid) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
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

ALTER FUNCTION postbell.device_activate(device_id uuid) OWNER TO postbell_owner;

CREATE FUNCTION postbell.device_delete(device_id uuid) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION postbell.device_delete(device_id uuid) OWNER TO postbell_owner;

CREATE FUNCTION postbell.device_effects(device_numbers bigint[], sequences integer[], effects smallint[], fences timestamp with time zone[], notifications uuid[], max_failures integer, OUT ordinal smallint, OUT state smallint) RETURNS SETOF record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION postbell.device_effects(device_numbers bigint[], sequences integer[], effects smallint[], fences timestamp with time zone[], notifications uuid[], max_failures integer, OUT ordinal smallint, OUT state smallint) OWNER TO postbell_owner;

CREATE TABLE postbell.devices (
    device_no bigint NOT NULL,
    id uuid NOT NULL,
    token_registered_at timestamp with time zone,
    success_due_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    rerouted_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    last_success_at timestamp with time zone,
    last_seen_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    push_token_updated_at timestamp with time zone,
    push_token_invalidated_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    token_seq integer DEFAULT 0 NOT NULL,
    fingerprint integer DEFAULT 0 NOT NULL,
    failure_count integer DEFAULT 0 NOT NULL,
    route_no smallint NOT NULL,
    tenant_id text DEFAULT COALESCE(NULLIF(current_setting('postbell.tenant_id'::text, true), ''::text), 'default'::text) NOT NULL,
    principal_id text NOT NULL,
    client_device_id text NOT NULL,
    provider text NOT NULL,
    environment text,
    app text NOT NULL,
    token text,
    status text DEFAULT 'active'::text NOT NULL,
    disabled_reason text,
    muted_kinds text[] DEFAULT '{}'::text[] NOT NULL,
    name text,
    kind text,
    platform text,
    device_ref text,
    session_ref text,
    CONSTRAINT devices_muted_kinds_check CHECK ((pg_column_size(muted_kinds) <= 1000)),
    CONSTRAINT devices_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'active'::text, 'disabled'::text, 'revoked'::text])))
);

ALTER TABLE ONLY postbell.devices FORCE ROW LEVEL SECURITY;

ALTER TABLE postbell.devices OWNER TO postbell_owner;

CREATE FUNCTION postbell.device_event(device postbell.devices, name text, key text, detail jsonb DEFAULT '{}'::jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

ALTER FUNCTION postbell.device_event(device postbell.devices, name text, key text, detail jsonb) OWNER TO postbell_owner;

CREATE FUNCTION postbell.fingerprint_text(fingerprint integer) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
    SELECT pg_catalog.substr('0123456789abcdefghjkmnpqrstvwxyz', ((fingerprint >> 25) & 31) + 1, 1)
        || pg_catalog.substr('0123456789abcdefghjkmnpqrstvwxyz', ((fingerprint >> 20) & 31) + 1, 1)
        || pg_catalog.substr('0123456789abcdefghjkmnpqrstvwxyz', ((fingerprint >> 15) & 31) + 1, 1)
        || pg_catalog.substr('0123456789abcdefghjkmnpqrstvwxyz', ((fingerprint >> 10) & 31) + 1, 1)
        || pg_catalog.substr('0123456789abcdefghjkmnpqrstvwxyz', ((fingerprint >> 5) & 31) + 1, 1)
        || pg_catalog.substr('0123456789abcdefghjkmnpqrstvwxyz', (fingerprint & 31) + 1, 1)
$$;

ALTER FUNCTION postbell.fingerprint_text(fingerprint integer) OWNER TO postbell_owner;

CREATE VIEW postbell.device_view AS
 SELECT d.id AS device_id,
    d.tenant_id,
    d.principal_id,
    d.client_device_id,
    d.name,
    d.kind,
    d.platform,
    d.app,
    d.provider,
    d.environment,
        CASE
            WHEN (d.token IS NOT NULL) THEN postbell.fingerprint_text(d.fingerprint)
            ELSE NULL::text
        END AS token_fingerprint,
    d.status,
    d.disabled_reason,
    d.muted_kinds,
    d.device_ref,
    d.session_ref,
    d.failure_count,
    NULLIF(d.token_registered_at, '-infinity'::timestamp with time zone) AS token_registered_at,
    d.push_token_updated_at,
    d.push_token_invalidated_at,
    d.last_success_at,
    d.last_seen_at,
    d.created_at,
    d.updated_at
   FROM postbell.devices d;

ALTER TABLE postbell.device_view OWNER TO postbell_owner;

CREATE FUNCTION postbell.device_get(device_id uuid, principal_id text DEFAULT NULL::text) RETURNS SETOF postbell.device_view
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION postbell.device_get(device_id uuid, principal_id text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.device_joins(device postbell.devices) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

ALTER FUNCTION postbell.device_joins(device postbell.devices) OWNER TO postbell_owner;

CREATE FUNCTION postbell.device_list(principal_id text, after text DEFAULT NULL::text, max_rows integer DEFAULT 100) RETURNS SETOF postbell.device_view
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_sort TO 'off'
    SET jit TO 'off'
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

ALTER FUNCTION postbell.device_list(principal_id text, after text, max_rows integer) OWNER TO postbell_owner;

CREATE FUNCTION postbell.device_mute(device_id uuid, kinds text[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION postbell.device_mute(device_id uuid, kinds text[]) OWNER TO postbell_owner;

CREATE FUNCTION postbell.device_outcomes(notification uuid) RETURNS json
    LANGUAGE sql STABLE
    AS $$
    SELECT coalesce(json_agg(
        json_strip_nulls(json_build_object(
            'device_id', v.id,
            'name', v.name,
            'outcome', postbell.outcome_name(d.outcome),
            'final', d.final,
            'reason', d.reason,
            'retry_at', d.retry_at,
            'at', d.attempted_at + coalesce(d.answer_us, 0) * interval '1 microsecond'))
        ORDER BY d.device_no), '[]')
    FROM (
        SELECT DISTINCT ON (e.device_no) e.id
        FROM (
            SELECT t.device_no, t.id, true AS decides
            FROM postbell.target_ends t
            WHERE t.notification_id = notification
            UNION ALL
            SELECT r.device_no, r.id, false
            FROM postbell.deliveries r
            WHERE r.notification_id = notification AND NOT r.final
        ) e
        ORDER BY e.device_no, e.decides DESC, e.id DESC
        LIMIT 100
    ) x
    JOIN postbell.deliveries d ON d.id = x.id
    LEFT JOIN postbell.devices v ON v.device_no = d.device_no
$$;

ALTER FUNCTION postbell.device_outcomes(notification uuid) OWNER TO postbell_owner;

CREATE FUNCTION postbell.device_register(principal_id text, client_device_id text, provider text, app text, token text, environment text DEFAULT NULL::text, name text DEFAULT NULL::text, kind text DEFAULT NULL::text, platform text DEFAULT NULL::text, device_ref text DEFAULT NULL::text, session_ref text DEFAULT NULL::text, pending boolean DEFAULT false, idempotency_key text DEFAULT NULL::text, OUT device_id uuid, OUT device_status text, OUT token_fingerprint text) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
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

ALTER FUNCTION postbell.device_register(principal_id text, client_device_id text, provider text, app text, token text, environment text, name text, kind text, platform text, device_ref text, session_ref text, pending boolean, idempotency_key text, OUT device_id uuid, OUT device_status text, OUT token_fingerprint text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.device_revoke(device_id uuid DEFAULT NULL::uuid, device_ref text DEFAULT NULL::text, session_ref text DEFAULT NULL::text, principal_id text DEFAULT NULL::text, reason text DEFAULT 'device_revoked'::text) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_custom_plan'
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

ALTER FUNCTION postbell.device_revoke(device_id uuid, device_ref text, session_ref text, principal_id text, reason text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.device_test(device_id uuid, idempotency_key text DEFAULT NULL::text) RETURNS uuid
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    tenant text := postbell.session_tenant();
    device postbell.devices;
    named  text := coalesce(device_test.idempotency_key, gen_random_uuid()::text);
    made   uuid;
BEGIN
    IF NOT postbell.is_name(named) OR octet_length(named) > 100 THEN
        PERFORM postbell.refuse('device.invalid', 'the idempotency key of a test is 1 to 100 ASCII characters');
    END IF;
    SELECT d.* INTO device
    FROM postbell.devices d
    WHERE d.id = device_test.device_id AND d.tenant_id = tenant AND postbell.acts_for(d.principal_id);
    named := 'device.test:' || device.id || ':' || named;
    SELECT o.id INTO made FROM postbell.outbox o WHERE o.tenant_id = tenant AND o.dedupe_key = named;
    IF FOUND THEN
        RETURN made;
    END IF;
    IF device.id IS NULL THEN
        PERFORM postbell.refuse('device.unknown', 'there is no such device');
    ELSIF device.status = 'revoked' THEN
        PERFORM postbell.refuse('device.revoked', 'this device was revoked: it has to register again');
    ELSIF device.status = 'pending' THEN
        PERFORM postbell.refuse('device.pending', 'this device waits for its approval (device_activate)');
    ELSIF device.token IS NULL THEN
        PERFORM postbell.refuse('device.no_token', 'this device has no token now: it has to register again');
    END IF;
    INSERT INTO postbell.outbox AS o (tenant_id, principal_id, kind, dedupe_key, device_id)
    VALUES (tenant, device.principal_id, 'test', named, device.id)
    ON CONFLICT DO NOTHING
    RETURNING o.id INTO made;
    IF made IS NULL THEN
        -- somebody else's call with this key, which has committed meanwhile
        SELECT o.id INTO made FROM postbell.outbox o WHERE o.tenant_id = tenant AND o.dedupe_key = named;
    END IF;
    RETURN made;
END
$$;

ALTER FUNCTION postbell.device_test(device_id uuid, idempotency_key text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.devices_import(rows jsonb, all_or_nothing boolean DEFAULT false, OUT registered integer, OUT updated integer, OUT unchanged integer, OUT kept integer, OUT refused integer, OUT faults jsonb) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_custom_plan'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_variable
DECLARE
    tenant  text := postbell.session_tenant();
    reading timestamptz;
    given   postbell.import_row[];
    judged  postbell.import_row[];
    stored  postbell.import_row[];
    device  postbell.devices;
BEGIN
    IF jsonb_typeof(rows) IS DISTINCT FROM 'array'
            OR jsonb_array_length(rows) > 100000
            OR EXISTS (SELECT FROM jsonb_array_elements(rows) e(value) WHERE jsonb_typeof(e.value) <> 'object') THEN
        PERFORM postbell.refuse('device.invalid', 'an import is a JSON array of at most 100,000 objects');
    END IF;
    PERFORM postbell.tenant_number(tenant);
    PERFORM pg_advisory_xact_lock(hashtextextended('postbell.registry ' || tenant, 0));
    reading := clock_timestamp();
    given := ARRAY(SELECT r FROM postbell.read_import(rows, reading) r ORDER BY r.place);
    PERFORM postbell.route_number(tenant, r.provider, r.environment, r.app)
    FROM (SELECT DISTINCT u.provider, u.environment, u.app FROM unnest(given) u WHERE u.fault IS NULL) r;
    FOR attempt IN 1..3 LOOP
        BEGIN
            -- in one order with all others who lock devices
            PERFORM
            FROM (
                SELECT DISTINCT n.device_no
                FROM unnest(given) r
                CROSS JOIN LATERAL postbell.import_devices(tenant, r) f
                CROSS JOIN LATERAL unnest(ARRAY[f.device_no, f.holder] || f.older) n(device_no)
            ) n
            JOIN postbell.devices d ON d.device_no = n.device_no
            ORDER BY d.device_no
            FOR NO KEY UPDATE OF d;
            judged := ARRAY(SELECT r FROM postbell.judge_import(tenant, given) r);
            SELECT
                count(*) FILTER (WHERE r.verdict = 'new'),
                count(*) FILTER (WHERE r.verdict = 'changed'),
                count(*) FILTER (WHERE r.verdict = 'unchanged'),
                count(*) FILTER (WHERE r.verdict = 'kept'),
                count(*) FILTER (WHERE r.fault IS NOT NULL),
                coalesce(
                    jsonb_agg(jsonb_build_object('line', r.line, 'code', r.fault) ORDER BY r.place)
                        FILTER (WHERE r.fault IS NOT NULL),
                    '[]')
            INTO registered, updated, unchanged, kept, refused, faults
            FROM unnest(judged) r;
            IF all_or_nothing AND refused > 0 THEN
                registered := 0;
                updated := 0;
                RETURN;
            END IF;
            stored := ARRAY(SELECT r FROM unnest(judged) r WHERE r.verdict IN ('new', 'changed'));
            -- whoever it belongs to has nothing else that tells: an event for each of these devices
            PERFORM postbell.take_tokens(ARRAY(SELECT r.holder FROM unnest(stored) r), reading);
            PERFORM postbell.replace_registration(u.device_no, reading)
            FROM unnest(stored) r
            CROSS JOIN LATERAL unnest(r.older) u(device_no);
            PERFORM postbell.store_import(tenant, stored, reading);
            EXIT;
        EXCEPTION WHEN unique_violation THEN
            -- a registration of another tenant has committed one of these tokens meanwhile: now it is seen, and moves
            IF attempt = 3 THEN
                PERFORM postbell.refuse('device.busy', 'a token of it is being registered elsewhere; try again');
            END IF;
        END;
    END LOOP;
    IF registered + updated = 0 THEN
        RETURN;
    END IF;
    INSERT INTO postbell.events (id, at, tenant_id, name, key, detail)
    SELECT e.id, reading, tenant, 'device.imported', 'device.imported:' || e.id,
        jsonb_build_object('registered', registered, 'updated', updated)
    FROM (SELECT postbell.uuid7(reading) AS id OFFSET 0) e;
    -- who has something open: the others need not join anything
    FOR device IN
        SELECT d.*
        FROM unnest(stored) r
        CROSS JOIN LATERAL (
            SELECT true
            FROM postbell.outbox o
            WHERE o.tenant_id = tenant
                AND o.principal_id = r.principal_id
                AND o.id >= postbell.uuid_floor(reading - interval '31 days')
                AND o.expires_at > reading
            LIMIT 1
        ) o
        CROSS JOIN LATERAL (
            SELECT d.*
            FROM postbell.devices d
            WHERE d.tenant_id = tenant
                AND d.principal_id = r.principal_id
                AND d.client_device_id = r.client_device_id
            LIMIT 1
        ) d
        WHERE d.status = 'active'
    LOOP
        PERFORM postbell.device_joins(device);
    END LOOP;
END
$$;

ALTER FUNCTION postbell.devices_import(rows jsonb, all_or_nothing boolean, OUT registered integer, OUT updated integer, OUT unchanged integer, OUT kept integer, OUT refused integer, OUT faults jsonb) OWNER TO postbell_owner;

CREATE FUNCTION postbell.drop_kind(name text) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    revisions int[];
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('postbell.kind ' || drop_kind.name, 0));
    revisions := ARRAY(SELECT k.kind_no FROM postbell.kinds k WHERE k.name = drop_kind.name);
    IF EXISTS (SELECT 1 FROM postbell.open_of_kinds(revisions)) THEN
        PERFORM postbell.refuse('kind.in_use', 'notifications of it are open');
    END IF;
    UPDATE postbell.kinds k SET current = false WHERE k.name = drop_kind.name AND k.current;
    RETURN FOUND;
END
$$;

ALTER FUNCTION postbell.drop_kind(name text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.drop_ledger_day() RETURNS date
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
DECLARE
    cutoff    timestamptz;
    leaf      record;
    is_needed boolean;
BEGIN
    PERFORM postbell.refuse_confined();
    SELECT clock_timestamp() - p.keep INTO cutoff FROM postbell.retention p WHERE p.table_name = 'deliveries';
    IF cutoff IS NULL OR NOT pg_try_advisory_xact_lock(postbell.awake_class(), -1) THEN
        RETURN NULL;  -- kept for ever, or another session makes or drops days
    END IF;
    FOR leaf IN
        SELECT d.name, d.day, (d.day + 1)::timestamp AT TIME ZONE 'UTC' AS ends_at
        FROM pg_inherits i
        JOIN pg_class c ON c.oid = i.inhrelid
        CROSS JOIN LATERAL (
            SELECT c.relname AS name, to_date(substring(c.relname FROM '^deliveries_([0-9]{8})$'), 'YYYYMMDD') AS day
        ) d
        WHERE i.inhparent = 'postbell.deliveries'::regclass
            AND (d.day + 1)::timestamp AT TIME ZONE 'UTC' <= cutoff
        ORDER BY d.day
    LOOP
        -- the hour is for ids of another clock than that of the notification
        EXECUTE format(
            'SELECT EXISTS (
                SELECT 1 FROM postbell.outbox o
                WHERE o.id < $1 AND EXISTS (SELECT 1 FROM postbell.%I d WHERE d.notification_id = o.id))',
            leaf.name)
        INTO is_needed
        USING postbell.uuid_floor(leaf.ends_at + interval '1 hour');
        CONTINUE WHEN is_needed;
        BEGIN
            LOCK TABLE ONLY postbell.deliveries IN ACCESS EXCLUSIVE MODE NOWAIT;
            LOCK TABLE ONLY postbell.deliveries_default IN ACCESS EXCLUSIVE MODE NOWAIT;
            EXECUTE format('LOCK TABLE ONLY postbell.%I IN ACCESS EXCLUSIVE MODE NOWAIT', leaf.name);
        EXCEPTION WHEN lock_not_available THEN
            RETURN NULL;
        END;
        EXECUTE format('ALTER TABLE postbell.deliveries DETACH PARTITION postbell.%I', leaf.name);
        EXECUTE format('DROP TABLE postbell.%I', leaf.name);
        UPDATE postbell.retention p SET removed_before = greatest(p.removed_before, leaf.ends_at)
        WHERE p.table_name = 'deliveries';
        RETURN leaf.day;
    END LOOP;
    RETURN NULL;
END
$_$;

ALTER FUNCTION postbell.drop_ledger_day() OWNER TO postbell_owner;

CREATE FUNCTION postbell.empty_notifications(tenant text, principal text, row_limit integer) RETURNS integer
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
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

ALTER FUNCTION postbell.empty_notifications(tenant text, principal text, row_limit integer) OWNER TO postbell_owner;

CREATE FUNCTION postbell.enqueue(kind text, principal_id text, dedupe_key text, payload text DEFAULT '{}'::text, subject text DEFAULT NULL::text, thread text DEFAULT NULL::text, tenant_id text DEFAULT NULL::text, device_id uuid DEFAULT NULL::uuid, except_device_id uuid DEFAULT NULL::uuid, urgency text DEFAULT NULL::text, collapse_key text DEFAULT NULL::text, not_before timestamp with time zone DEFAULT NULL::timestamp with time zone, expires_at timestamp with time zone DEFAULT NULL::timestamp with time zone, silent boolean DEFAULT false, badge integer DEFAULT NULL::integer) RETURNS uuid
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION postbell.enqueue(kind text, principal_id text, dedupe_key text, payload text, subject text, thread text, tenant_id text, device_id uuid, except_device_id uuid, urgency text, collapse_key text, not_before timestamp with time zone, expires_at timestamp with time zone, silent boolean, badge integer) OWNER TO postbell_owner;

CREATE FUNCTION postbell.enqueue_or_note(kind text, principal_id text, dedupe_key text, payload text DEFAULT '{}'::text, subject text DEFAULT NULL::text, thread text DEFAULT NULL::text, tenant_id text DEFAULT NULL::text, device_id uuid DEFAULT NULL::uuid, except_device_id uuid DEFAULT NULL::uuid, urgency text DEFAULT NULL::text, collapse_key text DEFAULT NULL::text, not_before timestamp with time zone DEFAULT NULL::timestamp with time zone, expires_at timestamp with time zone DEFAULT NULL::timestamp with time zone, silent boolean DEFAULT false, badge integer DEFAULT NULL::integer) RETURNS uuid
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION postbell.enqueue_or_note(kind text, principal_id text, dedupe_key text, payload text, subject text, thread text, tenant_id text, device_id uuid, except_device_id uuid, urgency text, collapse_key text, not_before timestamp with time zone, expires_at timestamp with time zone, silent boolean, badge integer) OWNER TO postbell_owner;

CREATE FUNCTION postbell.erase(tenant text, thread text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    reading timestamptz := clock_timestamp();
BEGIN
    PERFORM postbell.refuse_foreign_fact(tenant, 'thread', thread);
    INSERT INTO postbell.erasures (id, at, tenant_id, thread)
    VALUES (postbell.uuid7(reading), reading, tenant, erase.thread);
    WITH held AS MATERIALIZED (
        -- queue and leases in one snapshot: a row on its way from one to the other is in exactly one of them. Locked
        -- in the order of their ids, against another erasure
        SELECT o.id
        FROM postbell.outbox o
        WHERE o.tenant_id = tenant
            AND o.thread = erase.thread
            AND o.payload <> '{}'
            AND (
                EXISTS (SELECT 1 FROM postbell.queue q WHERE q.notification_id = o.id)
                OR o.id IN (
                    SELECT u.id
                    FROM postbell.leases l, unnest(l.ids) WITH ORDINALITY u(id, pos)
                    WHERE get_bit(l.open, (u.pos - 1)::int) = 1))
        ORDER BY o.id
        FOR NO KEY UPDATE OF o
    )
    UPDATE postbell.outbox o SET payload = '{}' WHERE o.id IN (SELECT h.id FROM held h);
END
$$;

ALTER FUNCTION postbell.erase(tenant text, thread text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.forget(principal text, max_rows integer DEFAULT 10000) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION postbell.forget(principal text, max_rows integer) OWNER TO postbell_owner;

CREATE FUNCTION postbell.forget_rows(tenant text, principal text, row_limit integer, OUT devices integer, OUT notifications integer, OUT others integer) RETURNS record
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
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

ALTER FUNCTION postbell.forget_rows(tenant text, principal text, row_limit integer, OUT devices integer, OUT notifications integer, OUT others integer) OWNER TO postbell_owner;

CREATE FUNCTION postbell.forget_tenant(tenant text, max_rows integer DEFAULT 10000) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION postbell.forget_tenant(tenant text, max_rows integer) OWNER TO postbell_owner;

CREATE FUNCTION postbell.forgotten_event(tenant text, name text, devices integer, notifications integer) RETURNS void
    LANGUAGE sql
    AS $$
    INSERT INTO postbell.events (id, at, tenant_id, name, key, detail)
    SELECT e.id, e.reading, tenant, name, name || ':' || e.id,
        jsonb_build_object('by', SESSION_USER, 'devices', devices, 'notifications', notifications)
    FROM (
        SELECT postbell.uuid7(r.reading) AS id, r.reading
        FROM (SELECT clock_timestamp() AS reading OFFSET 0) r
        OFFSET 0
    ) e
$$;

ALTER FUNCTION postbell.forgotten_event(tenant text, name text, devices integer, notifications integer) OWNER TO postbell_owner;

CREATE FUNCTION postbell.heartbeat_limit() RETURNS interval
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT interval '30 s'
$$;

ALTER FUNCTION postbell.heartbeat_limit() OWNER TO postbell_owner;

CREATE FUNCTION postbell.holds_credential(value text) RETURNS boolean
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
    SELECT
        value COLLATE "C" ~ '-----BEGIN |GOCSPX-|hooks\.slack\.com/services/'
        -- what begins with a mark of its own
        OR value COLLATE "C" ~ (
            'eyJ|A[KS]IA|AIza|ya29\.|gh[opsru]_|github_pat_|glpat-|npm_|pypi-|hf_|xox|xapp-|[spr]k[-_]|whsec_')
        AND value COLLATE "C" ~ (
            -- JSON web tokens
            'eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}'
            -- Amazon, Google
            || '|(AKIA|ASIA)[0-9A-Z]{16}|AIza[A-Za-z0-9_-]{30}|ya29\.[A-Za-z0-9_-]{10}'
            -- GitHub, GitLab, npm, PyPI, Hugging Face
            || '|gh[opsru]_[A-Za-z0-9]{20}|github_pat_[A-Za-z0-9_]{20}|glpat-[A-Za-z0-9_-]{16}|npm_[A-Za-z0-9]{30}'
            || '|pypi-[A-Za-z0-9_-]{16}|hf_[A-Za-z0-9]{20}'
            -- Slack
            || '|xox[abeoprs]-[A-Za-z0-9-]{10}|xapp-[A-Za-z0-9-]{10}'
            -- OpenAI, Anthropic, Stripe and who copied their form
            || '|\m(sk|pk|rk)[-_][A-Za-z0-9_-]{16}|whsec_[A-Za-z0-9]{16}')
        -- long and without a space: digests and keys, Telegram's tokens, and what is of all kinds of letters
        OR value COLLATE "C" ~ '[A-Za-z0-9+/_=-]{32}'
        AND value COLLATE "C" ~ (
            '[0-9a-fA-F]{32}|[0-9]{8,10}:[A-Za-z0-9_-]{35}'
            || '|(?=[A-Za-z0-9+/_=-]*[0-9])(?=[A-Za-z0-9+/_=-]*[a-z])(?=[A-Za-z0-9+/_=-]*[A-Z])[A-Za-z0-9+/_=-]{40}')
        -- a name and a password in an address
        OR value COLLATE "C" ~ '@' AND value COLLATE "C" ~ '[a-z][a-z0-9+.-]*://[^/ :@]*:[^/ @]+@'
        -- a word that says what follows it
        OR value COLLATE "C" ~* 'bearer|basic' AND value COLLATE "C" ~* '\m(bearer|basic) +[a-z0-9._~+/=-]{12}'
        OR value COLLATE "C" ~ '[:=]'
        AND value COLLATE "C" ~* (
            '(password|passwd|passphrase|passcode|secret|token|api[ _-]?key|access[ _-]?key|private[ _-]?key'
            || '|credentials?|authorization)["'']? *[:=] *["'']?[^ "'']{4}')
$$;

ALTER FUNCTION postbell.holds_credential(value text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.hook_fault(function oid) RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
    SELECT CASE
        WHEN f.oid IS NULL THEN 'the function does not exist'
        WHEN f.proargtypes <> '2951 1009 1009 1009 3807'::oidvector
            OR f.prorettype <> 'uuid'::regtype
            OR NOT f.proretset
            OR f.prokind <> 'f'
            THEN 'it must be a function (uuid[], text[], text[], text[], jsonb[]) that returns SETOF uuid'
        WHEN NOT f.prosecdef THEN 'it must be SECURITY DEFINER'
        WHEN r.rolsuper OR r.rolbypassrls OR r.rolcreaterole
            THEN 'its owner must be a role of the app without SUPERUSER, BYPASSRLS and CREATEROLE'
        WHEN EXISTS (
            SELECT 1 FROM pg_roles p
            WHERE p.rolname IN ('postbell_owner', 'postbell_operator', 'postbell_dispatcher', 'postbell_registrar')
                AND pg_has_role(f.proowner, p.oid, 'MEMBER'))
            THEN 'its owner must be a role of the app, not a member of Postbell''s roles'
        -- where pg_temp is not named, temporary tables hide all others
        WHEN path.setting IS NULL OR path.setting !~ '(^|,) *pg_temp$' OR path.setting ~ '\$user'
            THEN 'it must pin its search_path, with pg_temp last and without $user'
        WHEN EXISTS (
            SELECT 1 FROM aclexplode(coalesce(f.proacl, acldefault('f', f.proowner))) a
            WHERE a.grantee NOT IN (f.proowner, (SELECT d.oid FROM pg_roles d WHERE d.rolname = 'postbell_dispatcher')))
            THEN 'only postbell_dispatcher may execute it: REVOKE it from PUBLIC and others'
        WHEN NOT has_schema_privilege('postbell_dispatcher', f.pronamespace, 'USAGE')
            THEN 'postbell_dispatcher lacks USAGE on its schema'
        WHEN NOT has_function_privilege('postbell_dispatcher', f.oid, 'EXECUTE')
            THEN 'postbell_dispatcher lacks EXECUTE on it'
    END
    FROM (SELECT $1 AS asked) x
    LEFT JOIN pg_proc f ON f.oid = x.asked
    LEFT JOIN pg_roles r ON r.oid = f.proowner
    LEFT JOIN LATERAL (
        SELECT substr(c, length('search_path=') + 1) AS setting
        FROM unnest(f.proconfig) c
        WHERE c LIKE 'search\_path=%'
    ) path ON true
$_$;

ALTER FUNCTION postbell.hook_fault(function oid) OWNER TO postbell_owner;

CREATE FUNCTION postbell.hook_faults() RETURNS TABLE(kind text, purpose text, function text, fault text)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT h.kind, h.purpose, format('%I.%I', h.function_schema, h.function_name), f.fault
    FROM postbell.hooks h
    CROSS JOIN LATERAL (
        SELECT postbell.hook_fault(postbell.hook_function(h.function_schema, h.function_name)) AS fault
    ) f
    WHERE f.fault IS NOT NULL
    ORDER BY h.kind, h.purpose
$$;

ALTER FUNCTION postbell.hook_faults() OWNER TO postbell_owner;

CREATE FUNCTION postbell.hook_function(function_schema name, function_name name) RETURNS oid
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
    SELECT p.oid
    FROM pg_proc p
    JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = $1
        AND p.proname = $2
        -- uuid[], text[], text[], text[], jsonb[]
        AND p.proargtypes = '2951 1009 1009 1009 3807'::oidvector
$_$;

ALTER FUNCTION postbell.hook_function(function_schema name, function_name name) OWNER TO postbell_owner;

CREATE FUNCTION postbell.idempotency_period() RETURNS interval
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT interval '24 hours'
$$;

ALTER FUNCTION postbell.idempotency_period() OWNER TO postbell_owner;

CREATE FUNCTION postbell.import_devices(tenant text, given postbell.import_row) RETURNS TABLE(device_no bigint, holder bigint, older bigint[])
    LANGUAGE sql STABLE
    AS $$
    SELECT o.device_no, CASE WHEN h.device_no IS DISTINCT FROM o.device_no THEN h.device_no END, i.numbers
    FROM (SELECT array_agg(d.device_no) AS numbers
        FROM postbell.devices d
        WHERE d.tenant_id = tenant
            AND d.device_ref = given.device_ref
            AND d.principal_id = given.principal_id
            AND d.provider = given.provider
            AND d.app = given.app
            AND d.client_device_id <> given.client_device_id
            AND d.token IS NOT NULL
    ) i
    LEFT JOIN LATERAL (
        SELECT d.device_no
        FROM postbell.devices d
        WHERE d.tenant_id = tenant
            AND d.principal_id = given.principal_id
            AND d.client_device_id = given.client_device_id
        LIMIT 1
    ) o ON true
    LEFT JOIN LATERAL (
        SELECT d.device_no
        FROM postbell.devices d
        WHERE d.token = given.token
            AND d.provider = given.provider
            AND d.environment IS NOT DISTINCT FROM given.environment
        LIMIT 1
    ) h ON true
    WHERE given.fault IS NULL
$$;

ALTER FUNCTION postbell.import_devices(tenant text, given postbell.import_row) OWNER TO postbell_owner;

CREATE FUNCTION postbell.inbox(principal text, before uuid DEFAULT NULL::uuid, max_rows integer DEFAULT 50) RETURNS TABLE(id uuid, kind text, subject text, thread text, payload json, badge integer, silent boolean, created_at timestamp with time zone, planned_at timestamp with time zone, expires_at timestamp with time zone, status text, reason text, settled_at timestamp with time zone, seen_at timestamp with time zone, acknowledged_at timestamp with time zone, devices json)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    tenant text := postbell.session_tenant();
BEGIN
    IF NOT coalesce(postbell.is_name(principal), false) OR NOT coalesce(max_rows BETWEEN 1 AND 200, false) THEN
        PERFORM postbell.refuse(
            'inbox.invalid', 'a principal is 1 to 200 printable ASCII characters, a page 1 to 200 notifications');
    END IF;
    RETURN QUERY
    WITH page AS MATERIALIZED (
        -- the page before what hangs on it, which is looked up for these rows alone
        SELECT o.id, o.payload, o.badge, o.silent
        FROM postbell.outbox o
        WHERE o.tenant_id = tenant
            AND o.principal_id = principal
            AND o.id < coalesce(before, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
            AND postbell.acts_for(principal)
        ORDER BY o.id DESC
        LIMIT max_rows
    )
    SELECT
        n.id, n.kind, n.subject, n.thread, p.payload::json, p.badge, p.silent, n.created_at, n.planned_at, n.expires_at,
        n.status, n.reason, n.settled_at,
        (
            -- the first that can be about it
            SELECT min(r.seen_at)
            FROM postbell.receipts r
            WHERE r.tenant_id = n.tenant_id
                AND r.principal_id = n.principal_id
                AND r.subject = n.subject
                AND r.seen_at > n.created_at
        ),
        (
            SELECT a.at
            FROM postbell.acknowledgements a
            WHERE a.tenant_id = n.tenant_id AND a.notification_id = n.id
        ),
        postbell.device_outcomes(n.id)
    FROM page p
    JOIN postbell.notifications n ON n.id = p.id
    ORDER BY p.id DESC;
END
$$;

ALTER FUNCTION postbell.inbox(principal text, before uuid, max_rows integer) OWNER TO postbell_owner;

CREATE FUNCTION postbell.install_codes(codes jsonb) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    own   text := postbell.own_namespace();
    fault text := postbell.codes_fault(install_codes.codes);
BEGIN
    IF fault IS NOT NULL THEN
        PERFORM postbell.refuse('code.invalid', fault);
    END IF;
    -- two installers of one namespace, one after the other
    PERFORM pg_advisory_xact_lock(hashtextextended('postbell.codes ' || own, 0));
    DELETE FROM postbell.codes c WHERE c.namespace = own AND NOT install_codes.codes ? c.key;
    INSERT INTO postbell.codes AS c (namespace, key, title, body, target, route, thread)
    SELECT own, e.key, e.value ->> 'title', e.value ->> 'body', e.value ->> 'target', e.value ->> 'route',
        e.value ->> 'thread'
    FROM jsonb_each(install_codes.codes) e
    ON CONFLICT (namespace, key) DO UPDATE SET
        title = excluded.title,
        body = excluded.body,
        target = excluded.target,
        route = excluded.route,
        thread = excluded.thread,
        installed_at = excluded.installed_at,
        installed_by = excluded.installed_by
    WHERE (c.title, c.body, c.target, c.route, c.thread)
        IS DISTINCT FROM (excluded.title, excluded.body, excluded.target, excluded.route, excluded.thread);
    RETURN (SELECT count(*) FROM postbell.codes c WHERE c.namespace = own);
END
$$;

ALTER FUNCTION postbell.install_codes(codes jsonb) OWNER TO postbell_owner;

CREATE FUNCTION postbell.is_faulty(payload text, presentation text, keys jsonb, required text[]) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE
    AS $$
BEGIN
    RETURN (SELECT f.code IS NOT NULL FROM postbell.payload_fault(payload, presentation, keys, required) f);
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    RETURN true;
END
$$;

ALTER FUNCTION postbell.is_faulty(payload text, presentation text, keys jsonb, required text[]) OWNER TO postbell_owner;

CREATE FUNCTION postbell.is_json_object(value text) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE
    AS $$
BEGIN
    RETURN jsonb_typeof(value::jsonb) = 'object';
EXCEPTION WHEN OTHERS THEN
    RETURN false;  -- the server's own words would echo the value
END
$$;

ALTER FUNCTION postbell.is_json_object(value text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.is_name(value text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT pg_catalog.octet_length(value) BETWEEN 1 AND 200 AND value OPERATOR(pg_catalog.!~) '[^!-~]'
$$;

ALTER FUNCTION postbell.is_name(value text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.is_reason(reason text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT coalesce(reason IN (
        'superseded', 'seen', 'erased', 'cancelled', 'expired', 'ceiling', 'rejected', 'crashes', 'muted', 'revoked',
        'coalesced', 'read', 'no_access', 'no_device', 'no_token', 'no_credential', 'token_changed'), false)
$$;

ALTER FUNCTION postbell.is_reason(reason text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.is_served(provider text) RETURNS boolean
    LANGUAGE plpgsql STABLE
    AS $$
DECLARE
    providers text;
BEGIN
    SELECT s.value INTO providers FROM postbell.settings s WHERE s.name = 'providers';
    RETURN coalesce(provider = ANY (string_to_array(translate(providers, ' ', ''), ',')), true);
END
$$;

ALTER FUNCTION postbell.is_served(provider text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.is_slug(value text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    AS $_$
    SELECT length(value) <= 100 AND value ~ '^[a-z0-9._-]+$'
$_$;

ALTER FUNCTION postbell.is_slug(value text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.is_uuid(value text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT value LIKE '________-____-____-____-____________'
        AND value !~ '[^0-9A-Fa-f-]' AND length(replace(value, '-', '')) = 32
$$;

ALTER FUNCTION postbell.is_uuid(value text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.judge_import(tenant text, given postbell.import_row[]) RETURNS SETOF postbell.import_row
    LANGUAGE sql STABLE
    AS $$
    SELECT
        r.place, r.line, r.principal_id, r.client_device_id, r.provider, r.app, r.token, r.environment, r.name, r.kind,
        r.platform, r.device_ref, r.session_ref, r.known_at, f.fault, n.device_no, n.holder, n.older,
        v.route_no, postbell.keyed_fingerprint(k.value, r.token),
        CASE
            WHEN f.fault IS NOT NULL THEN NULL
            WHEN o.token = r.token
                AND o.token_registered_at >= t.known_at
                AND o.route_no = v.route_no
                AND (o.name, o.kind, o.platform, o.device_ref, o.session_ref) IS NOT DISTINCT FROM (
                    coalesce(r.name, o.name), coalesce(r.kind, o.kind), coalesce(r.platform, o.platform),
                    coalesce(r.device_ref, o.device_ref), coalesce(r.session_ref, o.session_ref))
                THEN 'unchanged'
            WHEN t.known_at < greatest(o.token_registered_at, o.push_token_invalidated_at)
                OR (h.tenant_id = tenant AND t.known_at < h.token_registered_at)
                OR t.known_at < (
                    SELECT max(i.token_registered_at) FROM postbell.devices i WHERE i.device_no = ANY (n.older))
                THEN 'kept'
            WHEN o.device_no IS NULL THEN 'new'
            ELSE 'changed'
        END
    FROM unnest(given) r
    CROSS JOIN LATERAL (SELECT coalesce(r.known_at, '-infinity') AS known_at) t
    JOIN postbell.secrets k ON k.name = 'fingerprint'
    LEFT JOIN LATERAL (
        SELECT v.route_no FROM postbell.routes v
        WHERE v.provider = r.provider AND v.environment IS NOT DISTINCT FROM r.environment AND v.app = r.app
        ORDER BY v.twin LIMIT 1
    ) v ON true
    LEFT JOIN LATERAL postbell.import_devices(tenant, r) n ON true
    LEFT JOIN postbell.devices o ON o.device_no = n.device_no
    LEFT JOIN postbell.devices h ON h.device_no = n.holder
    CROSS JOIN LATERAL (
        SELECT coalesce(r.fault, CASE WHEN o.disabled_reason = 'erased' THEN 'device.revoked' END) AS fault
    ) f
$$;

ALTER FUNCTION postbell.judge_import(tenant text, given postbell.import_row[]) OWNER TO postbell_owner;

CREATE FUNCTION postbell.keyed_fingerprint(secret bytea, token text) RETURNS integer
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT ('x' || encode(substring(sha256(secret || convert_to(token, 'UTF8')), 1, 4), 'hex'))::bit(32)::int
        & 1073741823
$$;

ALTER FUNCTION postbell.keyed_fingerprint(secret bytea, token text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.kinds_keep_open() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM postbell.open_of_kinds(ARRAY(SELECT o.kind_no FROM old_rows o))) THEN
        PERFORM postbell.refuse('kind.in_use', 'notifications of it are open');
    END IF;
    RETURN NULL;
END
$$;

ALTER FUNCTION postbell.kinds_keep_open() OWNER TO postbell_owner;

CREATE FUNCTION postbell.kinds_warn_of_size() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    warning text;
BEGIN
    BEGIN
        warning := postbell.size_warning(NEW);
    EXCEPTION WHEN data_exception THEN
        RETURN NULL;  -- not by define_kind, and of another form: what it is, workers say
    END;
    IF warning IS NOT NULL THEN
        RAISE WARNING USING MESSAGE = 'kind.size: kind "' || NEW.name || '" can come to ' || warning;
    END IF;
    RETURN NULL;
END
$$;

ALTER FUNCTION postbell.kinds_warn_of_size() OWNER TO postbell_owner;

CREATE FUNCTION postbell.labels_fault(labels jsonb, keys jsonb) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
DECLARE
    entry record;
    named text;
BEGIN
    IF jsonb_typeof(labels) <> 'object' THEN
        RETURN 'labels has the wrong type';
    END IF;
    FOR entry IN SELECT l.key, l.value, keys -> l.key AS declared FROM jsonb_each(labels) l LOOP
        named := 'labels.' || left(entry.key, 64);
        IF NOT coalesce(entry.declared ->> 'type' IN ('slug', 'enum'), false) THEN
            RETURN named || ' is no declared slug or enum';
        END IF;
        IF jsonb_typeof(entry.value) <> 'object' THEN
            RETURN named || ' has the wrong type';
        END IF;
        IF NOT entry.value ? '*' THEN
            RETURN named || ' lacks "*", the label of all other values';
        END IF;
        IF (SELECT count(*) FROM jsonb_object_keys(entry.value)) > 500
                OR EXISTS (
                    SELECT 1 FROM jsonb_each(entry.value) w
                    WHERE jsonb_typeof(w.value) <> 'string' OR char_length(w.value #>> '{}') NOT BETWEEN 1 AND 100) THEN
            RETURN named || ' has at most 500 labels of 1 to 100 characters';
        END IF;
        SELECT min(w) INTO named FROM jsonb_object_keys(entry.value) w
        WHERE w <> '*' AND CASE entry.declared ->> 'type'
            WHEN 'enum' THEN NOT entry.declared -> 'values' ? w
            ELSE w !~ '^[a-z0-9._-]{1,100}$'
        END;
        IF named IS NOT NULL THEN
            RETURN 'labels.' || entry.key || ' has "' || left(named, 64) || '", which is no value of its key';
        END IF;
    END LOOP;
    RETURN NULL;
END
$_$;

ALTER FUNCTION postbell.labels_fault(labels jsonb, keys jsonb) OWNER TO postbell_owner;

CREATE TABLE postbell.kinds (
    kind_no integer NOT NULL,
    name text NOT NULL,
    revision integer NOT NULL,
    current boolean DEFAULT true NOT NULL,
    enabled boolean DEFAULT true NOT NULL,
    presentation text NOT NULL,
    payload jsonb NOT NULL,
    payload_keys jsonb NOT NULL,
    required_keys text[] NOT NULL,
    payload_names text[] DEFAULT '{}'::text[] NOT NULL,
    content jsonb NOT NULL,
    visible jsonb,
    uses_instance boolean DEFAULT false NOT NULL,
    needs_badge boolean DEFAULT false NOT NULL,
    apps text[],
    producers name[],
    urgency text NOT NULL,
    priority smallint NOT NULL,
    push_type text NOT NULL,
    grace interval NOT NULL,
    wait_for_device interval NOT NULL,
    max_age interval NOT NULL,
    provider_ttl interval,
    retry text,
    collapse text NOT NULL,
    interruption_level text,
    category text,
    sound text,
    group_by_thread boolean NOT NULL,
    mutable_content boolean NOT NULL,
    ends_when_seen boolean NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

ALTER TABLE postbell.kinds OWNER TO postbell_owner;

CREATE FUNCTION postbell.largest_bytes(kind postbell.kinds, OUT apns integer, OUT fcm integer) RETURNS record
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
DECLARE
    texts   jsonb;
    visible int;
    members jsonb := kind.content -> 'data';
BEGIN
    IF kind.presentation = 'raw' THEN
        RETURN;
    END IF;
    SELECT
        jsonb_object_agg('$' || t.name, t.bytes),
        sum(t.bytes + CASE
            WHEN t.bytes = 0 THEN 0
            WHEN kind.presentation = 'localized' THEN length(t.name) + 14
            ELSE length(t.name) + 6
        END)
    INTO texts, visible
    FROM (
        SELECT n.name, coalesce(postbell.largest_text(
            kind.presentation, kind.content -> n.name, kind.payload_keys, kind.content -> 'labels'), 0) AS bytes
        FROM unnest(ARRAY['title', 'subtitle', 'body']) n(name)
    ) t;
    visible := visible
        + CASE WHEN kind.group_by_thread THEN 215 ELSE 0 END
        + coalesce(octet_length(to_json(kind.sound)::text) + 9, 0)
        + coalesce(octet_length(to_json(kind.category)::text) + 12, 0);
    IF members IS NULL THEN
        SELECT coalesce(jsonb_object_agg(k.key, '{' || k.key || '}'), '{}') INTO members
        FROM jsonb_each(kind.payload_keys) k
        WHERE k.value ->> 'type' <> 'text';
    END IF;
    apns := CASE
        WHEN kind.content ? 'form' THEN 28
        ELSE
            -- {"aps":{"alert":{…},"badge":-2147483648,"interruption-level":"…","mutable-content":1},"container":{…}}
            CASE
                WHEN kind.push_type IN ('alert', 'voip') THEN
                    85 + visible + greatest(length(kind.interruption_level), 7)
                ELSE 35
            END
            + coalesce(octet_length(kind.content ->> 'container') + 6, 0)
            + postbell.largest_members(members, kind.payload_keys, texts, false)
    END;
    fcm := CASE
        WHEN kind.content ? 'fcm' THEN
            postbell.largest_members(kind.content -> 'fcm', kind.payload_keys, texts, true)
        WHEN kind.content ? 'form' THEN 67
        -- notification_id, silent and tag; badge
        ELSE 51 + 7 + 203 + CASE kind.push_type WHEN 'background' THEN 0 ELSE visible + 16 END
            + postbell.largest_members(members, kind.payload_keys, texts, true)
    END;
END
$_$;

ALTER FUNCTION postbell.largest_bytes(kind postbell.kinds, OUT apns integer, OUT fcm integer) OWNER TO postbell_owner;

CREATE FUNCTION postbell.largest_members(members jsonb, keys jsonb, texts jsonb, is_fcm boolean) RETURNS integer
    LANGUAGE sql IMMUTABLE
    AS $_$
    SELECT coalesce(sum(octet_length(m.key) + CASE
        WHEN NOT is_fcm THEN 4 + v.bytes + CASE WHEN v.is_bare THEN 0 ELSE 2 END
        -- one of Postbell's own names is sent as payload.NAME
        WHEN m.key IN (
            'notification_id', 'title', 'subtitle', 'body', 'title_loc_key', 'title_loc_args', 'subtitle_loc_key',
            'subtitle_loc_args', 'body_loc_key', 'body_loc_args', 'badge', 'sound', 'thread', 'category', 'silent',
            'tag') THEN 8 + v.bytes
        ELSE v.bytes
    END - CASE
        -- a list is its ids with commas between them
        WHEN is_fcm AND keys -> u.name ->> 'type' = 'uuids' THEN 2 + 2 * (keys -> u.name ->> 'length')::int
        ELSE 0
    END), 0)::int
    FROM jsonb_each(members) m
    CROSS JOIN LATERAL (SELECT substring(m.value #>> '{}' FROM '^\{([^{}]+)\}$') AS name) u
    CROSS JOIN LATERAL (
        SELECT
            u.name IS NULL AND jsonb_typeof(m.value) <> 'string' OR u.name IN ('$badge', '$silent')
                OR coalesce(keys -> u.name ->> 'type' IN ('int', 'bool', 'uuids'), false) AS is_bare,
            coalesce(
                postbell.value_bytes(keys -> u.name),
                (texts ->> u.name)::int,
                CASE u.name
                    WHEN '$id' THEN 36
                    WHEN '$thread' THEN 200
                    WHEN '$instance' THEN 64
                    WHEN '$mapping' THEN 16
                    WHEN '$badge' THEN 11
                    WHEN '$silent' THEN 1
                END,
                octet_length(m.value #>> '{}')) AS bytes
    ) v
$_$;

ALTER FUNCTION postbell.largest_members(members jsonb, keys jsonb, texts jsonb, is_fcm boolean) OWNER TO postbell_owner;

CREATE FUNCTION postbell.largest_text(presentation text, value jsonb, keys jsonb, labels jsonb) RETURNS integer
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
DECLARE
    leaf text := value #>> '{}';
BEGIN
    IF jsonb_typeof(value) = 'object' THEN
        RETURN (
            SELECT max(postbell.largest_text(presentation, v.variant, keys, labels))
            FROM (
                SELECT c.value AS variant FROM jsonb_each(value -> 'cases') c
                UNION ALL SELECT value -> 'absent' WHERE value ? 'absent'
                UNION ALL SELECT value -> 'else' WHERE value ? 'else'
            ) v);
    END IF;
    IF presentation = 'localized' AND leaf ~ '\(' THEN
        -- {"title-loc-args":["…","…"]}; the longest name is that of the subtitle
        RETURN octet_length(regexp_replace(leaf, '\(.*$', '')) + 24 + (
            SELECT sum(3 + postbell.value_bytes(keys -> a))
            FROM unnest(string_to_array(substring(leaf FROM '\((.*)\)$'), ',')) a);
    END IF;
    RETURN postbell.text_bytes(presentation, value) + coalesce((
        SELECT sum(coalesce(
            (SELECT max(octet_length(l.value::text)) - 2 FROM jsonb_each(labels -> m[1]) l),
            postbell.value_bytes(keys -> m[1])))
        FROM regexp_matches(replace(replace(leaf, '{{', ''), '}}', ''), '\{([^{}]+)\}', 'g') m), 0);
END
$_$;

ALTER FUNCTION postbell.largest_text(presentation text, value jsonb, keys jsonb, labels jsonb) OWNER TO postbell_owner;

CREATE FUNCTION postbell.leaf_fault(presentation text, place text, leaf text, keys jsonb) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
DECLARE
    bare text := replace(replace(leaf, '{{', ''), '}}', '');
    used text;
BEGIN
    IF presentation = 'localized' THEN
        IF leaf !~ '^[A-Za-z0-9_.-]{1,100}(\([A-Za-z0-9_.-]+(,[A-Za-z0-9_.-]+)*\))?$' THEN
            RETURN place || ' is no key, nor KEY(argument,argument)';
        END IF;
        FOREACH used IN ARRAY coalesce(string_to_array(substring(leaf FROM '\((.*)\)$'), ','), '{}') LOOP
            IF coalesce(keys -> used ->> 'type' IN ('text', 'uuids'), true)
                    OR NOT (keys -> used ->> 'required')::boolean THEN
                RETURN place || ' has the argument "' || left(used, 64)
                    || '", which is no required key of one value without text';
            END IF;
        END LOOP;
        RETURN NULL;
    END IF;
    IF regexp_replace(bare, '\{[^{}]+\}', '', 'g') ~ '[{}]' THEN
        RETURN place || ' has a brace left open';
    END IF;
    FOR used IN SELECT m[1] FROM regexp_matches(bare, '\{([^{}]+)\}', 'g') m LOOP
        IF presentation = 'code' THEN
            RETURN place || ' stands for every code and takes no value';
        END IF;
        IF NOT keys ? used THEN
            RETURN place || ' uses the undeclared key "' || left(used, 64) || '"';
        END IF;
        IF keys -> used ->> 'type' = 'uuids' THEN
            RETURN place || ' uses the key "' || left(used, 64) || '", which is a list and is never shown';
        END IF;
    END LOOP;
    RETURN NULL;
END
$_$;

ALTER FUNCTION postbell.leaf_fault(presentation text, place text, leaf text, keys jsonb) OWNER TO postbell_owner;

CREATE FUNCTION postbell.lock_registrations(tenant text, principal text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('postbell.registry ' || tenant, 0));
    PERFORM pg_advisory_xact_lock(hashtextextended('postbell.principal ' || tenant || ' ' || principal, 0));
END
$$;

ALTER FUNCTION postbell.lock_registrations(tenant text, principal text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.mapping() RETURNS json
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT ('{"version":"' || left(encode(sha256(convert_to(m.entries, 'UTF8')), 'hex'), 16)
        || '","entries":' || m.entries || '}')::json
    FROM postbell.mapping_entries() m(entries)
$$;

ALTER FUNCTION postbell.mapping() OWNER TO postbell_owner;

CREATE FUNCTION postbell.mapping_entries() RETURNS text
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT '{' || coalesce(string_agg(
        to_json(c.namespace || ':' || c.key)::text || ':' || postbell.code_entry(c), ','
        ORDER BY (c.namespace || ':' || c.key) COLLATE "C"), '') || '}'
    FROM postbell.codes c
$$;

ALTER FUNCTION postbell.mapping_entries() OWNER TO postbell_owner;

CREATE FUNCTION postbell.mapping_version() RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT left(encode(sha256(convert_to(postbell.mapping_entries(), 'UTF8')), 'hex'), 16)
$$;

ALTER FUNCTION postbell.mapping_version() OWNER TO postbell_owner;

CREATE FUNCTION postbell.members_fault(place text, members jsonb, keys jsonb) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
DECLARE
    entry record;
    named text;
    used  text;
BEGIN
    IF jsonb_typeof(members) <> 'object' THEN
        RETURN place || ' has the wrong type';
    END IF;
    IF (SELECT count(*) FROM jsonb_object_keys(members)) > 32 THEN
        RETURN place || ' has at most 32 members';
    END IF;
    FOR entry IN SELECT m.key, m.value, m.value #>> '{}' AS content FROM jsonb_each(members) m LOOP
        named := place || '.' || left(entry.key, 64);
        IF entry.key !~ '^[A-Za-z][A-Za-z0-9_.-]{0,63}$' OR entry.key = 'aps' THEN
            RETURN named || ' is no name that a member can have';
        END IF;
        IF entry.key ~ '^(from$|message_type$|google|gcm)' THEN
            RETURN named || ' is reserved by FCM';
        END IF;
        CONTINUE WHEN jsonb_typeof(entry.value) = 'boolean';
        IF jsonb_typeof(entry.value) = 'number' THEN
            IF entry.content !~ '^-?[0-9]{1,18}$' THEN
                RETURN named || ' is no whole number';
            END IF;
            CONTINUE;
        END IF;
        IF jsonb_typeof(entry.value) <> 'string' OR char_length(entry.content) > 200 THEN
            RETURN named || ' is no number, boolean or text of at most 200 characters';
        END IF;
        used := substring(entry.content FROM '^\{([^{}]+)\}$');
        IF used IS NULL AND entry.content ~ '[{}]' THEN
            RETURN named || ' is neither a constant nor one value in braces';
        END IF;
        IF left(used, 1) = '$' THEN
            IF used NOT IN (
                    '$id', '$thread', '$instance', '$mapping', '$badge', '$silent', '$title', '$subtitle', '$body') THEN
                RETURN named || ' uses an unknown value of the notification';
            END IF;
        ELSIF NOT keys ? used THEN
            RETURN named || ' uses the undeclared key "' || left(used, 64) || '"';
        END IF;
    END LOOP;
    RETURN NULL;
END
$_$;

ALTER FUNCTION postbell.members_fault(place text, members jsonb, keys jsonb) OWNER TO postbell_owner;

CREATE FUNCTION postbell.moment(value text) RETURNS timestamp with time zone
    LANGUAGE plpgsql STABLE STRICT
    AS $_$
BEGIN
    RETURN CASE
        WHEN value ~ '^[0-9]{4}(-[0-9]{2}){2}[T ][0-9]{2}(:[0-9]{2}){1,2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}(:?[0-9]{2})?)$'
            THEN value::timestamptz
    END;
EXCEPTION WHEN datetime_field_overflow OR invalid_datetime_format THEN
    RETURN NULL;
END
$_$;

ALTER FUNCTION postbell.moment(value text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.normal_token(provider text, token text) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT CASE provider WHEN 'apns' THEN lower(token) ELSE token END
$$;

ALTER FUNCTION postbell.normal_token(provider text, token text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.note_enqueue_failure(principal text, kind text, state text, message text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
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
$_$;

ALTER FUNCTION postbell.note_enqueue_failure(principal text, kind text, state text, message text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.open_of_kinds(kinds integer[]) RETURNS SETOF uuid
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT n.id
    FROM (
        SELECT q.notification_id FROM postbell.queue q
        UNION SELECT i.id FROM postbell.leases l CROSS JOIN LATERAL unnest(l.ids) i(id)
    ) w
    JOIN postbell.outbox n ON n.id = w.notification_id
    WHERE n.kind_no = ANY (kinds)
$$;

ALTER FUNCTION postbell.open_of_kinds(kinds integer[]) OWNER TO postbell_owner;

CREATE TABLE postbell.outbox (
    id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    planned_at timestamp with time zone NOT NULL,
    not_before timestamp with time zone,
    expires_at timestamp with time zone NOT NULL,
    kind_no integer NOT NULL,
    tenant_no integer NOT NULL,
    device_no bigint,
    except_device_no bigint,
    badge integer,
    silent boolean DEFAULT false NOT NULL,
    tenant_id text DEFAULT COALESCE(NULLIF(current_setting('postbell.tenant_id'::text, true), ''::text), 'default'::text) NOT NULL,
    principal_id text NOT NULL,
    kind text NOT NULL,
    dedupe_key text NOT NULL,
    subject text,
    thread text,
    collapse_key text,
    urgency text NOT NULL,
    device_id uuid,
    except_device_id uuid,
    predecessor uuid,
    instance text,
    routes smallint[] NOT NULL,
    payload text DEFAULT '{}'::text NOT NULL
);

ALTER TABLE ONLY postbell.outbox FORCE ROW LEVEL SECURITY;

ALTER TABLE postbell.outbox OWNER TO postbell_owner;

CREATE FUNCTION postbell.operator_event(notification postbell.outbox, name text, detail jsonb DEFAULT '{}'::jsonb) RETURNS void
    LANGUAGE sql
    AS $$
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

ALTER FUNCTION postbell.operator_event(notification postbell.outbox, name text, detail jsonb) OWNER TO postbell_owner;

CREATE FUNCTION postbell.operator_tenant() RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    RETURN CASE WHEN postbell.reader_tenant() IS NOT NULL THEN postbell.session_tenant() END;
END
$$;

ALTER FUNCTION postbell.operator_tenant() OWNER TO postbell_owner;

CREATE FUNCTION postbell.outbox_defaults() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
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
$_$;

ALTER FUNCTION postbell.outbox_defaults() OWNER TO postbell_owner;

CREATE FUNCTION postbell.outbox_enqueue() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET jit TO 'off'
    AS $$
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

ALTER FUNCTION postbell.outbox_enqueue() OWNER TO postbell_owner;

CREATE FUNCTION postbell.outcome_name(code smallint) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
    SELECT ('{delivered,unregistered,rejected,retry,throttled,misconfigured,unknown,skipped}'::text[])[code + 1]
$$;

ALTER FUNCTION postbell.outcome_name(code smallint) OWNER TO postbell_owner;

CREATE FUNCTION postbell.own_namespace() RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    found_one text;
BEGIN
    SELECT n.namespace INTO found_one
    FROM postbell.namespaces n
    WHERE n.role_name = coalesce(nullif(current_setting('role'), 'none'), SESSION_USER)::name;
    IF found_one IS NULL THEN
        PERFORM postbell.refuse('code.not_permitted', 'this role has no namespace for codes');
    END IF;
    RETURN found_one;
END
$$;

ALTER FUNCTION postbell.own_namespace() OWNER TO postbell_owner;

CREATE FUNCTION postbell.payload_fault(payload text, presentation text, keys jsonb, required text[]) RETURNS TABLE(code text, key text)
    LANGUAGE sql IMMUTABLE
    AS $_$
    SELECT
        CASE
            WHEN f.is_large THEN 'notification.too_large'
            WHEN f.undeclared IS NOT NULL OR f.is_double OR f.is_short THEN 'notification.payload_key'
            WHEN f.misfit IS NOT NULL THEN 'notification.payload_type'
        END,
        CASE
            WHEN f.is_large THEN NULL
            -- a name that is not plain may be anything
            WHEN f.undeclared IS NOT NULL THEN
                CASE WHEN f.undeclared ~ '^[A-Za-z0-9_.-]{1,64}$' THEN f.undeclared ELSE '?' END
            WHEN f.is_double THEN (
                SELECT min(d.name)
                FROM (SELECT k.name FROM json_object_keys(payload::json) k(name) GROUP BY k.name HAVING count(*) > 1) d)
            WHEN f.is_short THEN (SELECT min(r) FROM unnest(required) r WHERE NOT payload::jsonb ? r)
            ELSE f.misfit
        END
    FROM (
        SELECT
            payload <> postbell.bounded_payload(payload, presentation) AS is_large,
            min(e.key) FILTER (WHERE CASE presentation
                WHEN 'raw' THEN e.key NOT IN ('apns', 'fcm')
                ELSE NOT keys ? e.key
            END) AS undeclared,
            min(e.key) FILTER (WHERE NOT CASE presentation
                WHEN 'raw' THEN json_typeof(e.value) = 'object'
                ELSE postbell.payload_value_fits(keys -> e.key, json_typeof(e.value), e.value #>> '{}')
            END) AS misfit,
            -- twice the same key: two readers may read two values
            count(*) <> (
                SELECT count(*)
                FROM jsonb_object_keys(postbell.bounded_payload(payload, presentation)::jsonb)
            ) AS is_double,
            CASE presentation
                WHEN 'raw' THEN count(*) = 0
                ELSE count(*) FILTER (WHERE e.key = ANY (required)) < cardinality(required)
            END AS is_short
        FROM json_each(postbell.bounded_payload(payload, presentation)::json) e
    ) f
$_$;

ALTER FUNCTION postbell.payload_fault(payload text, presentation text, keys jsonb, required text[]) OWNER TO postbell_owner;

CREATE FUNCTION postbell.payload_fits(payload text, keys jsonb, names text[], required text[]) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE
    AS $$
DECLARE
    members jsonb;
    value   jsonb;
    type    text;
    content text;
    key     text;
    colons  int := length(payload) - length(replace(payload, ':', ''));
BEGIN
    IF octet_length(payload) > 8192 OR strpos(payload, '\') > 0 THEN
        RETURN false;
    END IF;
    BEGIN
        members := payload::jsonb;
    EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
        RETURN false;
    END;
    IF jsonb_typeof(members) <> 'object' OR NOT members ?& required THEN
        RETURN false;
    END IF;
    FOREACH key IN ARRAY names LOOP
        value := members -> key;
        CONTINUE WHEN value IS NULL;
        type := keys #>> ARRAY[key, 'type'];
        content := value #>> '{}';
        colons := colons - 1;
        -- the most common ones by themselves: the rule for all types has more to begin than all others here
        IF type = 'uuid' THEN
            CONTINUE WHEN jsonb_typeof(value) = 'string' AND postbell.is_uuid(content);
            RETURN false;
        ELSIF type = 'slug' THEN
            CONTINUE WHEN jsonb_typeof(value) = 'string' AND postbell.is_slug(content);
            RETURN false;
        ELSIF type = 'int' THEN
            content := payload::json ->> key;  -- as it was written
        END IF;
        IF NOT postbell.payload_value_fits(keys -> key, jsonb_typeof(value), content) THEN
            RETURN false;
        END IF;
        colons := colons - length(content) + length(replace(content, ':', ''));
    END LOOP;
    RETURN colons = 0;
END
$$;

ALTER FUNCTION postbell.payload_fits(payload text, keys jsonb, names text[], required text[]) OWNER TO postbell_owner;

CREATE FUNCTION postbell.payload_type(declared text) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE STRICT
    AS $_$
DECLARE
    part text[];
BEGIN
    part := regexp_match(declared, '^(uuid|int|slug|code|timestamp|bool)([!?])$');
    IF part IS NOT NULL THEN
        RETURN jsonb_build_object('type', part[1], 'required', part[2] = '!');
    END IF;
    part := regexp_match(declared, '^code\(([a-z0-9._-]{1,64}(?:/[a-z0-9._-]{1,64})?)\)([!?])$');
    IF part IS NOT NULL THEN
        RETURN jsonb_build_object('type', 'code', 'required', part[2] = '!', 'namespace', part[1]);
    END IF;
    part := regexp_match(declared, '^enum\(([A-Za-z0-9._-]{1,100}(?:,[A-Za-z0-9._-]{1,100}){0,63})\)([!?])$');
    IF part IS NOT NULL THEN
        RETURN jsonb_build_object(
            'type', 'enum', 'required', part[2] = '!', 'values', to_jsonb(string_to_array(part[1], ',')));
    END IF;
    part := regexp_match(declared, '^(text|uuids)\(([1-9][0-9]{0,2}|1000)\)([!?])$');
    IF part[1] = 'text' OR part[2]::int <= 100 THEN
        RETURN jsonb_build_object('type', part[1], 'required', part[3] = '!', 'length', part[2]::int);
    END IF;
    RETURN NULL;
END
$_$;

ALTER FUNCTION postbell.payload_type(declared text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.payload_value_fits(declared jsonb, form text, content text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    AS $_$
    SELECT coalesce(CASE form
        WHEN 'string' THEN CASE declared ->> 'type'
            WHEN 'uuid' THEN postbell.is_uuid(content)
            WHEN 'slug' THEN postbell.is_slug(content)
            WHEN 'code' THEN length(content) <= 200
                AND content ~ '^[a-z0-9._-]+(/[a-z0-9._-]+)?:[A-Za-z0-9._-]+$'
                -- a code has at most one slash, before its colon
                AND (declared ->> 'namespace' IS NULL
                    OR left(content, length(declared ->> 'namespace') + 1)
                        IN ((declared ->> 'namespace') || ':', (declared ->> 'namespace') || '/'))
            WHEN 'enum' THEN declared -> 'values' ? content
            WHEN 'timestamp' THEN content ~
                '^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:?[0-9]{2})$'
            WHEN 'text' THEN length(content) <= (declared ->> 'length')::int
                AND content !~ '[\u0001-\u001f\u007f-\u009f\u2028\u2029]'
        END
        WHEN 'number' THEN declared ->> 'type' = 'int' AND content ~ '^-?[0-9]{1,18}$'
        WHEN 'boolean' THEN declared ->> 'type' = 'bool'
        WHEN 'array' THEN declared ->> 'type' = 'uuids'  -- JSON as it was written: a comma is between two members
            AND length(content) - length(replace(content, ',', '')) < (declared ->> 'length')::int
            AND content ~ '^\[(?:\s*"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"\s*[],])+$'
    END, false)
$_$;

ALTER FUNCTION postbell.payload_value_fits(declared jsonb, form text, content text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.prune_idempotency_keys(row_limit integer) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
DECLARE
    pruned int;
BEGIN
    DELETE FROM postbell.idempotency_keys k
    WHERE k.ctid = ANY (ARRAY(
        SELECT o.ctid
        FROM postbell.idempotency_keys o
        WHERE o.created_at <= clock_timestamp() - postbell.idempotency_period()
        ORDER BY o.created_at
        LIMIT row_limit
        FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS pruned = ROW_COUNT;
    RETURN pruned;
END
$$;

ALTER FUNCTION postbell.prune_idempotency_keys(row_limit integer) OWNER TO postbell_owner;

CREATE FUNCTION postbell.push_type_fault(push_type text, priority integer, presentation text, content jsonb, category text, sound text, interruption_level text, mutable_content boolean) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT CASE
        WHEN t.form IS NULL THEN 'APNs has no push type "' || left(push_type, 64) || '"'
        WHEN NOT coalesce(priority = ANY (t.priorities), false) THEN
            'push type ' || push_type || ' goes with priority ' || array_to_string(t.priorities, ' or ')
        WHEN presentation = 'raw' THEN NULL
        WHEN t.form = 'raw' THEN
            'push type ' || push_type || ' needs the presentation raw: no template can write its payload'
        WHEN content ? 'form' AND t.form <> 'alert' THEN 'form "badge" goes with push type alert'
        WHEN content ? 'form' AND (
                sound IS NOT NULL OR category IS NOT NULL OR interruption_level IS NOT NULL OR mutable_content) THEN
            'a badge alone is without sound, category, interruption level and mutable content'
        WHEN t.form = 'alert' AND NOT content ?| ARRAY['title', 'body', 'form'] THEN
            'an alert needs a title or a body'
        WHEN t.form IN ('background', 'data') AND (
                content ?| ARRAY['title', 'subtitle', 'body'] OR sound IS NOT NULL OR category IS NOT NULL
                OR interruption_level IS NOT NULL OR mutable_content) THEN
            'push type ' || push_type || ' shows nothing: without title, subtitle, body, sound, category,'
                || ' interruption level and mutable content'
        WHEN size.bytes > t.payload_limit THEN
            'its fixed texts have ' || size.bytes || ' bytes, push type ' || push_type || ' takes ' || t.payload_limit
                || ' for the whole payload'
    END
    FROM (
        SELECT postbell.content_bytes(presentation, content)
            + coalesce(octet_length(category), 0) + coalesce(octet_length(sound), 0) AS bytes
    ) size
    LEFT JOIN (VALUES
        ('alert', '{10,5,1}'::int[], 'alert', 4096),
        ('background', '{5}', 'background', 4096),
        ('voip', '{10,5,1}', 'app', 5120),
        ('complication', '{10,5,1}', 'data', 4096),
        ('fileprovider', '{10,5,1}', 'data', 4096),
        ('mdm', '{10,5,1}', 'raw', 4096),
        ('location', '{10,5}', 'data', 4096),
        ('liveactivity', '{10,5}', 'raw', 4096),
        ('pushtotalk', '{10,5,1}', 'data', 4096),
        ('widgets', '{10,5,1}', 'raw', 4096),
        ('controls', '{10,5,1}', 'raw', 4096)
    ) t(name, priorities, form, payload_limit) ON t.name = push_type
$$;

ALTER FUNCTION postbell.push_type_fault(push_type text, priority integer, presentation text, content jsonb, category text, sound text, interruption_level text, mutable_content boolean) OWNER TO postbell_owner;

CREATE FUNCTION postbell.quiet_period() RETURNS interval
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT interval '1 day'
$$;

ALTER FUNCTION postbell.quiet_period() OWNER TO postbell_owner;

CREATE FUNCTION postbell.read_import(rows jsonb, reading timestamp with time zone) RETURNS SETOF postbell.import_row
    LANGUAGE sql STABLE
    AS $_$
    WITH served AS MATERIALIZED (
        SELECT array_agg(p) AS providers FROM unnest('{apns,fcm}'::text[]) p WHERE postbell.is_served(p)
    ),
    given AS MATERIALIZED (
        SELECT
            a.place,
            CASE WHEN e.line ~ '^[0-9]{1,18}$' THEN e.line::bigint ELSE a.place END AS line,
            -- a list or an object in the place of a text would be taken as the text that it is written as
            jsonb_path_exists(a.value, 'strict $.* ? (@.type() == "array" || @.type() == "object")') AS is_nested,
            e.principal_id, e.client_device_id, e.provider, e.app,
            postbell.normal_token(e.provider, e.token) AS token,
            e.environment, e.name, e.kind, e.platform, e.device_ref, e.session_ref, e.registered_at
        FROM jsonb_array_elements(rows) WITH ORDINALITY a(value, place)
        CROSS JOIN LATERAL jsonb_to_record(a.value) AS e(
            line text, principal_id text, client_device_id text, provider text, app text, token text,
            environment text, name text, kind text, platform text, device_ref text, session_ref text,
            registered_at text)
    ),
    judged AS (
        SELECT
            g.*,
            -- not later than now, and null where it is not said
            CASE WHEN m.at > reading THEN reading ELSE m.at END AS known_at,
            coalesce(
                postbell.registration_fault(
                    g.principal_id, g.client_device_id, g.provider, g.app, g.token, g.environment, g.name, g.kind,
                    g.platform, g.device_ref, g.session_ref),
                CASE
                    WHEN g.is_nested OR (g.registered_at IS NOT NULL AND m.at IS NULL) THEN 'device.invalid'
                    WHEN NOT g.provider = ANY (s.providers) THEN 'device.provider'
                    WHEN NOT postbell.acts_for(g.principal_id) THEN 'notification.not_permitted'
                END) AS fault
        FROM given g
        CROSS JOIN served s
        CROSS JOIN LATERAL (SELECT postbell.moment(g.registered_at) AS at OFFSET 0) m
    )
    SELECT
        j.place, j.line, j.principal_id, j.client_device_id, j.provider, j.app, j.token, j.environment, j.name, j.kind,
        j.platform, j.device_ref, j.session_ref, j.known_at,
        CASE
            WHEN j.fault IS NOT NULL THEN j.fault
            WHEN lead(true) OVER (
                    PARTITION BY j.fault IS NULL, j.principal_id, j.client_device_id ORDER BY j.place)
                OR lead(true) OVER (
                    PARTITION BY j.fault IS NULL, j.token, j.provider, j.environment ORDER BY j.place)
                OR (j.device_ref IS NOT NULL AND lead(true) OVER (
                    PARTITION BY j.fault IS NULL, j.principal_id, j.device_ref, j.provider, j.app ORDER BY j.place))
                THEN 'device.duplicate'
        END,
        NULL::bigint, NULL::bigint, NULL::bigint[], NULL::smallint, NULL::int, NULL::text
    FROM judged j
$_$;

ALTER FUNCTION postbell.read_import(rows jsonb, reading timestamp with time zone) OWNER TO postbell_owner;

CREATE FUNCTION postbell.reader_tenant() RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    RETURN CASE WHEN nullif(current_setting('postbell.tenant_id', true), '') IS NOT NULL
            OR EXISTS (SELECT 1 FROM postbell.role_tenants r WHERE r.role_name = SESSION_USER)
        THEN postbell.session_tenant() END;
EXCEPTION WHEN SQLSTATE 'PB005' THEN
    RETURN '';
END
$$;

ALTER FUNCTION postbell.reader_tenant() OWNER TO postbell_owner;

CREATE FUNCTION postbell.reader_tenant_no() RETURNS integer
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT CASE WHEN postbell.reader_tenant() IS NOT NULL THEN
        coalesce((SELECT t.tenant_no FROM postbell.tenants t WHERE t.tenant_id = postbell.reader_tenant()), -1)
    END
$$;

ALTER FUNCTION postbell.reader_tenant_no() OWNER TO postbell_owner;

CREATE FUNCTION postbell.recover(known_at timestamp with time zone, healthy_since timestamp with time zone, lease_limit integer, max_crashes integer, worker_no integer, OUT batch uuid, OUT route_no smallint, OUT items integer, OUT unknowns integer, OUT set_aside integer) RETURNS SETOF record
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    lapsed  uuid[];
    lease   postbell.leases;
    counted int;
    cutoff  timestamptz := least(now(), recover.known_at);
BEGIN
    lapsed := ARRAY(
        SELECT l.batch FROM postbell.leases l
        WHERE l.until < cutoff
        ORDER BY l.until
        LIMIT lease_limit
        FOR UPDATE SKIP LOCKED);
    FOREACH batch IN ARRAY lapsed LOOP
        BEGIN
            DELETE FROM postbell.leases l
            WHERE l.batch = recover.batch
            RETURNING l.* INTO lease;
            counted := (
                recover.healthy_since < lease.claimed_at
                OR (recover.healthy_since < cutoff - interval '4 s' AND EXISTS (
                    SELECT 1 FROM postbell.workers w
                    WHERE w.owner = lease.owner
                        AND w.stopped_at IS NULL
                        AND w.heartbeat_at < recover.healthy_since))
            )::int;
            INSERT INTO postbell.deliveries (
                id, notification_id, batch, device_no, tenant_no, worker_no, route_no, attempt, outcome, final, late,
                reason)
            SELECT
                postbell.uuid7(), lease.ids[t.pos], lease.batch, t.dev, lease.tenants[t.pos], recover.worker_no,
                lease.route_no, lease.attempts[t.pos], 6, false, false, 'lease_lost'
            FROM unnest(lease.t_pos, lease.t_dev) t(pos, dev)
            WHERE get_bit(lease.open, t.pos - 1) = 1
                AND NOT EXISTS (
                    SELECT 1 FROM postbell.deliveries d
                    WHERE d.notification_id = lease.ids[t.pos]
                        AND d.device_no = t.dev
                        AND d.batch = lease.batch
                        AND d.id >= postbell.uuid_floor(lease.claimed_at - interval '1 day'))
            ON CONFLICT DO NOTHING;
            GET DIAGNOSTICS unknowns = ROW_COUNT;
            WITH held AS MATERIALIZED (
                SELECT u.*, cardinality(lease.ids) = 1 AND u.crashes + counted >= recover.max_crashes AS aside
                FROM unnest(lease.ids, lease.tenants, lease.urgencies, lease.attempts, lease.crashes, lease.cursors)
                    WITH ORDINALITY u(id, tenant_no, urgency, attempt, crashes, cursor, pos)
                WHERE get_bit(lease.open, (u.pos - 1)::int) = 1
            ),
            aside AS (
                INSERT INTO postbell.settlements (notification_id, tenant_no, route_no, status, reason)
                SELECT h.id, h.tenant_no, lease.route_no, 'failed', 'crashes'
                FROM held h
                WHERE h.aside
                RETURNING 1
            ),
            back AS (
                INSERT INTO postbell.queue (
                    due_at, notification_id, after_device, tenant_no, route_no, crashes, urgency, attempt, prior)
                SELECT
                    now(), h.id, h.cursor, h.tenant_no, lease.route_no,
                    least(h.crashes + counted, recover.max_crashes), h.urgency, greatest(h.attempt - 1, 0), true
                FROM held h
                WHERE NOT h.aside
                ORDER BY h.id
                ON CONFLICT DO NOTHING
                RETURNING 1
            )
            SELECT (SELECT count(*) FROM back), (SELECT count(*) FROM aside) INTO items, set_aside;
            route_no := lease.route_no;
            RETURN NEXT;
        EXCEPTION WHEN OTHERS THEN
            -- one lease that cannot be recovered must not hold up the others: it stays, and comes last the next time
            RAISE WARNING 'postbell: lease % cannot be recovered: SQLSTATE %', recover.batch, SQLSTATE;
            UPDATE postbell.leases l SET until = now() + interval '10 s' WHERE l.batch = recover.batch;
        END;
    END LOOP;
END
$$;

ALTER FUNCTION postbell.recover(known_at timestamp with time zone, healthy_since timestamp with time zone, lease_limit integer, max_crashes integer, worker_no integer, OUT batch uuid, OUT route_no smallint, OUT items integer, OUT unknowns integer, OUT set_aside integer) OWNER TO postbell_owner;

CREATE FUNCTION postbell.refuse(code text, detail text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION USING MESSAGE = code || ': ' || detail, ERRCODE = CASE code
        WHEN 'notification.unknown_kind'   THEN 'PB001'
        WHEN 'notification.payload_key'    THEN 'PB002'
        WHEN 'notification.payload_type'   THEN 'PB003'
        WHEN 'notification.too_large'      THEN 'PB004'
        WHEN 'notification.not_permitted'  THEN 'PB005'
        WHEN 'notification.invalid'        THEN 'PB006'
        WHEN 'notification.payload_syntax' THEN 'PB007'
        WHEN 'notification.unknown'        THEN 'PB008'
        WHEN 'notification.not_requeued'   THEN 'PB009'
        WHEN 'notification.visible_text'   THEN 'PB010'
        WHEN 'device.unknown'              THEN 'PB101'
        WHEN 'device.token'                THEN 'PB102'
        WHEN 'device.environment'          THEN 'PB103'
        WHEN 'device.provider'             THEN 'PB104'
        WHEN 'device.invalid'              THEN 'PB105'
        WHEN 'device.revoked'              THEN 'PB106'
        WHEN 'device.conflict'             THEN 'PB107'
        WHEN 'device.busy'                 THEN 'PB108'
        WHEN 'device.pending'              THEN 'PB109'
        WHEN 'device.no_token'             THEN 'PB110'
        WHEN 'device.duplicate'            THEN 'PB111'
        WHEN 'kind.invalid'                THEN 'PB201'
        WHEN 'kind.push_type'              THEN 'PB202'
        WHEN 'kind.hook'                   THEN 'PB203'
        WHEN 'kind.content'                THEN 'PB205'
        WHEN 'kind.in_use'                 THEN 'PB206'
        WHEN 'receipt.unknown'             THEN 'PB301'
        WHEN 'receipt.invalid'             THEN 'PB302'
        WHEN 'inbox.invalid'               THEN 'PB303'
        WHEN 'forget.invalid'              THEN 'PB304'
        WHEN 'code.invalid'                THEN 'PB401'
        WHEN 'code.not_permitted'          THEN 'PB402'
        ELSE 'PB000'
    END;
END
$$;

ALTER FUNCTION postbell.refuse(code text, detail text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.refuse_confined() RETURNS void
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM postbell.role_tenants r WHERE r.role_name = SESSION_USER) THEN
        PERFORM postbell.refuse('notification.not_permitted', 'retention is for all tenants, and not for this login');
    END IF;
END
$$;

ALTER FUNCTION postbell.refuse_confined() OWNER TO postbell_owner;

CREATE FUNCTION postbell.refuse_foreign_fact(tenant text, what text, value text) RETURNS void
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
    IF tenant IS DISTINCT FROM postbell.session_tenant()
            AND NOT pg_has_role(SESSION_USER, 'postbell_owner', 'MEMBER') THEN
        PERFORM postbell.refuse('notification.not_permitted', 'a fact is for the session''s own tenant');
    END IF;
    IF NOT coalesce(postbell.is_name(tenant) AND postbell.is_name(value), false) THEN
        PERFORM postbell.refuse('notification.invalid', what || ' must be 1 to 200 printable ASCII characters');
    END IF;
END
$$;

ALTER FUNCTION postbell.refuse_foreign_fact(tenant text, what text, value text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.refuse_payload(payload text, number integer) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    bad record;
BEGIN
    SELECT k.name, f.code, f.key INTO bad
    FROM postbell.kinds k
    CROSS JOIN LATERAL postbell.payload_fault(
        refuse_payload.payload, k.presentation, k.payload_keys, k.required_keys) f
    WHERE k.kind_no = number;
    PERFORM postbell.refuse(bad.code, 'kind "' || bad.name || '"' || coalesce(', key "' || bad.key || '"', ''));
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    SELECT k.name INTO bad FROM postbell.kinds k WHERE k.kind_no = number;
    PERFORM postbell.refuse('notification.payload_syntax', 'kind "' || bad.name || '"');
END
$$;

ALTER FUNCTION postbell.refuse_payload(payload text, number integer) OWNER TO postbell_owner;

CREATE FUNCTION postbell.refuse_retention(detail text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION USING MESSAGE = 'retention.invalid: ' || detail, ERRCODE = 'PB501';
END
$$;

ALTER FUNCTION postbell.refuse_retention(detail text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.registration_detail(code text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT
    AS $$
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

ALTER FUNCTION postbell.registration_detail(code text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.registration_fault(principal_id text, client_device_id text, provider text, app text, token text, environment text, name text, kind text, platform text, device_ref text, session_ref text) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $_$
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
$_$;

ALTER FUNCTION postbell.registration_fault(principal_id text, client_device_id text, provider text, app text, token text, environment text, name text, kind text, platform text, device_ref text, session_ref text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.remove_notifications(tenant text, principal text, row_limit integer) RETURNS integer
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
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

ALTER FUNCTION postbell.remove_notifications(tenant text, principal text, row_limit integer) OWNER TO postbell_owner;

CREATE FUNCTION postbell.replace_registration(device_number bigint, reading timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

ALTER FUNCTION postbell.replace_registration(device_number bigint, reading timestamp with time zone) OWNER TO postbell_owner;

CREATE FUNCTION postbell.request_hash(request text) RETURNS bytea
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
    RETURN sha256(s.value || sha256(s.value || convert_to(request, 'UTF8')))
        FROM postbell.secrets s
        WHERE s.name = 'idempotency';
END
$$;

ALTER FUNCTION postbell.request_hash(request text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.requeue(id uuid, expires_at timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS uuid
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

ALTER FUNCTION postbell.requeue(id uuid, expires_at timestamp with time zone) OWNER TO postbell_owner;

CREATE FUNCTION postbell.retain(row_limit integer DEFAULT 500, OUT table_name text, OUT removed bigint, OUT is_behind boolean) RETURNS SETOF record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    reading timestamptz := clock_timestamp();
    policy  record;
    -- a fact counts for what was enqueued before it, so it stays until nothing so old is left
    oldest  timestamptz;
BEGIN
    PERFORM postbell.refuse_confined();
    IF NOT pg_try_advisory_xact_lock(postbell.awake_class(), -2) THEN
        RETURN;
    END IF;
    FOR policy IN
        SELECT p.table_name AS name, reading - p.keep AS cutoff
        FROM postbell.retention p
        WHERE p.keep IS NOT NULL AND p.table_name <> 'deliveries'
        ORDER BY p.table_name <> 'outbox', p.table_name
    LOOP
        table_name := policy.name;
        IF table_name = 'outbox' THEN
            SELECT r.* INTO removed, is_behind FROM postbell.retain_outbox(policy.cutoff, row_limit) r;
        ELSIF table_name = 'workers' THEN
            DELETE FROM postbell.workers w
            WHERE w.heartbeat_at < policy.cutoff
                AND NOT EXISTS (SELECT 1 FROM postbell.leases l WHERE l.owner = w.owner);
            GET DIAGNOSTICS removed = ROW_COUNT;
            is_behind := false;
        ELSIF table_name = 'events' THEN
            SELECT r.* INTO removed, is_behind
            FROM postbell.retain_appended(table_name, policy.cutoff, row_limit) r;
        ELSE
            SELECT least(policy.cutoff, min(f.created_at)) INTO oldest
            FROM (SELECT o.created_at FROM postbell.outbox o ORDER BY o.id LIMIT 1) f;
            IF table_name = 'receipts' THEN
                SELECT r.* INTO removed, is_behind FROM postbell.retain_walked(table_name, 'seen_at', oldest) r;
            ELSE
                SELECT r.* INTO removed, is_behind FROM postbell.retain_appended(table_name, oldest, row_limit) r;
            END IF;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;

ALTER FUNCTION postbell.retain(row_limit integer, OUT table_name text, OUT removed bigint, OUT is_behind boolean) OWNER TO postbell_owner;

CREATE FUNCTION postbell.retain_appended(policy text, cutoff timestamp with time zone, row_limit integer, OUT removed bigint, OUT is_behind boolean) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $_$
BEGIN
    EXECUTE format(
        'DELETE FROM postbell.%1$I t
        WHERE t.ctid = ANY (ARRAY(
            SELECT o.ctid FROM postbell.%1$I o WHERE o.id < $1 ORDER BY o.id LIMIT $2 FOR UPDATE SKIP LOCKED))',
        policy)
    USING postbell.uuid_floor(cutoff), row_limit;
    GET DIAGNOSTICS removed = ROW_COUNT;
    is_behind := removed = row_limit;
END
$_$;

ALTER FUNCTION postbell.retain_appended(policy text, cutoff timestamp with time zone, row_limit integer, OUT removed bigint, OUT is_behind boolean) OWNER TO postbell_owner;

CREATE FUNCTION postbell.retain_outbox(cutoff timestamp with time zone, row_limit integer, OUT removed bigint, OUT is_behind boolean) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
DECLARE
    first uuid := coalesce(
        (SELECT p.resume_after FROM postbell.retention p WHERE p.table_name = 'outbox'),
        '00000000-0000-0000-0000-000000000000');
    bound uuid := postbell.uuid_floor(cutoff);
    last  uuid;
BEGIN
    WITH stretch AS MATERIALIZED (
        SELECT o.id, o.planned_at
        FROM postbell.outbox o
        WHERE o.id > first AND o.id < bound
        ORDER BY o.id
        LIMIT row_limit
    ),
    held AS MATERIALIZED (
        SELECT u.id FROM postbell.leases l, unnest(l.ids) u(id)
    ),
    over AS MATERIALIZED (
        SELECT s.id
        FROM stretch s
        WHERE s.planned_at < cutoff
            AND NOT EXISTS (SELECT 1 FROM postbell.queue q WHERE q.notification_id = s.id)
            AND s.id NOT IN (SELECT h.id FROM held h)
            AND NOT EXISTS (
                SELECT 1 FROM postbell.settlements e WHERE e.notification_id = s.id AND e.at >= cutoff)
            AND NOT EXISTS (
                SELECT 1 FROM postbell.deliveries d WHERE d.notification_id = s.id AND d.id >= bound)
    ),
    locked AS MATERIALIZED (
        SELECT n.tid, n.id, n.tenant_id
        FROM over v
        CROSS JOIN LATERAL (
            SELECT o.ctid AS tid, o.id, o.tenant_id
            FROM postbell.outbox o
            WHERE o.id = v.id
            FOR UPDATE SKIP LOCKED
        ) n
    ),
    ends AS (
        DELETE FROM postbell.settlements e
        WHERE e.notification_id = ANY (ARRAY(SELECT l.id FROM locked l))
    ),
    acknowledged AS (
        DELETE FROM postbell.acknowledgements a
        WHERE a.ctid = ANY (ARRAY(
            -- one by one: as a join it could become a walk through all there are
            SELECT k.tid
            FROM locked l
            CROSS JOIN LATERAL (
                SELECT a.ctid AS tid
                FROM postbell.acknowledgements a
                WHERE a.tenant_id = l.tenant_id AND a.notification_id = l.id
                OFFSET 0
            ) k))
    ),
    gone AS (
        DELETE FROM postbell.outbox o
        WHERE o.ctid = ANY (ARRAY(SELECT l.tid FROM locked l))
        RETURNING o.id
    )
    SELECT
        (SELECT count(*) FROM gone),
        count(*) = row_limit,
        (SELECT s.id FROM stretch s ORDER BY s.id DESC LIMIT 1)
    INTO removed, is_behind, last
    FROM stretch;
    UPDATE postbell.retention p SET
        resume_after = CASE WHEN is_behind THEN last END,
        removed_before = CASE WHEN removed > 0 THEN greatest(p.removed_before, cutoff) ELSE p.removed_before END
    WHERE p.table_name = 'outbox';
END
$$;

ALTER FUNCTION postbell.retain_outbox(cutoff timestamp with time zone, row_limit integer, OUT removed bigint, OUT is_behind boolean) OWNER TO postbell_owner;

CREATE FUNCTION postbell.retain_walked(policy text, time_column text, cutoff timestamp with time zone, OUT removed bigint, OUT is_behind boolean) RETURNS record
    LANGUAGE plpgsql
    SET jit TO 'off'
    AS $_$
DECLARE
    blocks bigint := pg_relation_size(format('postbell.%I', policy)) / current_setting('block_size')::int;
    first  bigint := coalesce((SELECT p.resume_block FROM postbell.retention p WHERE p.table_name = policy), 0);
    next   bigint := first + 200;
BEGIN
    EXECUTE format(
        'DELETE FROM postbell.%I t WHERE t.ctid >= $1 AND t.ctid < $2 AND t.%I < $3', policy, time_column)
    USING format('(%s,0)', first)::tid, format('(%s,0)', next)::tid, cutoff;
    GET DIAGNOSTICS removed = ROW_COUNT;
    is_behind := next < blocks;
    UPDATE postbell.retention p SET resume_block = CASE WHEN is_behind THEN next END WHERE p.table_name = policy;
END
$_$;

ALTER FUNCTION postbell.retain_walked(policy text, time_column text, cutoff timestamp with time zone, OUT removed bigint, OUT is_behind boolean) OWNER TO postbell_owner;

CREATE FUNCTION postbell.retained_since() RETURNS timestamp with time zone
    LANGUAGE sql STABLE
    AS $$
    SELECT max(p.removed_before) + interval '10 min'
    FROM postbell.retention p
    WHERE p.table_name IN ('outbox', 'deliveries')
$$;

ALTER FUNCTION postbell.retained_since() OWNER TO postbell_owner;

CREATE FUNCTION postbell.retry_held(route_nos smallint[], row_limit integer) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    moved int;
BEGIN
    WITH waiting AS MATERIALIZED (
        SELECT q.ctid AS tid, q.notification_id, w.held
        FROM postbell.queue q
        CROSS JOIN LATERAL (
            -- null: nothing on the ledger makes it wait
            SELECT bool_or(d.outcome = 5) AS held
            FROM postbell.deliveries d
            WHERE d.notification_id = q.notification_id
                AND d.route_no = q.route_no
                AND d.retry_at > now()
        ) w
        WHERE q.route_no = ANY (route_nos)
            AND q.prior
            AND q.due_at > now()
            AND w.held IS NOT FALSE
        LIMIT row_limit
        FOR UPDATE OF q SKIP LOCKED
    ),
    freed AS (
        UPDATE postbell.deliveries d
        SET retry_at = now()
        FROM waiting w
        WHERE w.held
            AND d.notification_id = w.notification_id
            AND d.route_no = ANY (route_nos)
            AND d.outcome = 5
            AND d.retry_at > now()
    ),
    gone AS (
        DELETE FROM postbell.queue
        WHERE ctid = ANY (ARRAY(SELECT tid FROM waiting))
        RETURNING notification_id, after_device, tenant_no, route_no, crashes, urgency, attempt, prior
    )
    INSERT INTO postbell.queue (
        due_at, notification_id, after_device, tenant_no, route_no, crashes, urgency, attempt, prior)
    SELECT now(), g.* FROM gone g;
    GET DIAGNOSTICS moved = ROW_COUNT;
    RETURN moved;
END
$$;

ALTER FUNCTION postbell.retry_held(route_nos smallint[], row_limit integer) OWNER TO postbell_owner;

CREATE FUNCTION postbell.route_number(tenant text, provider text, environment text, app text) RETURNS smallint
    LANGUAGE plpgsql
    AS $$
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

ALTER FUNCTION postbell.route_number(tenant text, provider text, environment text, app text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.safe_payload(kind text, payload text, visible jsonb) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    AS $$
DECLARE
    made record;
BEGIN
    IF payload <> postbell.bounded_payload(payload, '') OR NOT postbell.is_json_object(payload) THEN
        RETURN payload;
    END IF;
    SELECT
        '{' || coalesce(string_agg(
            to_json(e.key)::text || ':' || coalesce(to_json(s.safe)::text, e.value::text), ',' ORDER BY e.place), '')
            || '}' AS payload,
        min(e.key) FILTER (WHERE s.is_text AND s.safe IS NULL) AS refused
    INTO made
    FROM json_each(payload::json) WITH ORDINALITY e(key, value, place)
    CROSS JOIN LATERAL (
        SELECT t.is_text, CASE WHEN t.is_text THEN postbell.safe_text(
            e.value #>> '{}', (visible -> e.key ->> 'length')::int, visible -> e.key ->> 'replacement') END AS safe
        FROM (SELECT visible ? e.key AND json_typeof(e.value) = 'string' AS is_text) t
    ) s;
    IF made.refused IS NOT NULL THEN
        PERFORM postbell.refuse(
            'notification.visible_text',
            'kind "' || kind || '", key "' || made.refused || '" is empty or looks like a credential');
    END IF;
    RETURN made.payload;
END
$$;

ALTER FUNCTION postbell.safe_payload(kind text, payload text, visible jsonb) OWNER TO postbell_owner;

CREATE FUNCTION postbell.safe_text(value text, length integer, replacement text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
DECLARE
    shown  text := postbell.visible_text(value);
    folded text := normalize(shown, NFKC);
BEGIN
    IF shown = ''
            OR postbell.holds_credential(value)
            OR shown <> value AND postbell.holds_credential(shown)
            OR folded <> shown AND postbell.holds_credential(folded) THEN
        RETURN replacement;
    END IF;
    RETURN CASE
        WHEN char_length(shown) <= length THEN shown
        ELSE rtrim(left(shown, length - 1)) || chr(8230)
    END;
END
$$;

ALTER FUNCTION postbell.safe_text(value text, length integer, replacement text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.session_tenant() RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    tenant text := coalesce(nullif(current_setting('postbell.tenant_id', true), ''), 'default');
BEGIN
    IF EXISTS (SELECT 1 FROM postbell.role_tenants r WHERE r.role_name = SESSION_USER)
            AND NOT EXISTS (
                SELECT 1 FROM postbell.role_tenants r WHERE r.role_name = SESSION_USER AND r.tenant_id = tenant) THEN
        RAISE EXCEPTION USING ERRCODE = 'PB005',
            MESSAGE = 'notification.not_permitted: this login may not act for that tenant';
    END IF;
    RETURN tenant;
END
$$;

ALTER FUNCTION postbell.session_tenant() OWNER TO postbell_owner;

CREATE FUNCTION postbell.set_hook(kind text, purpose text, function regprocedure, timeout interval DEFAULT '00:00:02'::interval) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    fault text;
BEGIN
    IF set_hook.purpose IS NULL OR set_hook.purpose NOT IN ('stale', 'access') THEN
        PERFORM postbell.refuse('kind.hook', 'a hook is stale or access');
    END IF;
    IF set_hook.function IS NULL THEN
        DELETE FROM postbell.hooks h WHERE h.kind = set_hook.kind AND h.purpose = set_hook.purpose;
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT 1 FROM postbell.kinds k WHERE k.name = set_hook.kind) THEN
        PERFORM postbell.refuse('kind.hook', 'there is no such kind');
    END IF;
    IF set_hook.timeout IS NULL OR set_hook.timeout NOT BETWEEN '10 ms' AND '10 s' THEN
        PERFORM postbell.refuse('kind.hook', 'timeout must be 10 ms to 10 s');
    END IF;
    fault := postbell.hook_fault(set_hook.function);
    IF fault IS NOT NULL THEN
        PERFORM postbell.refuse('kind.hook', fault);
    END IF;
    INSERT INTO postbell.hooks AS h (kind, purpose, function_schema, function_name, timeout)
    SELECT set_hook.kind, set_hook.purpose, n.nspname, p.proname, set_hook.timeout
    FROM pg_proc p
    JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE p.oid = set_hook.function
    ON CONFLICT (kind, purpose) DO UPDATE SET
        function_schema = excluded.function_schema,
        function_name = excluded.function_name,
        timeout = excluded.timeout,
        set_at = excluded.set_at,
        set_by = excluded.set_by
    WHERE (h.function_schema, h.function_name, h.timeout)
        <> (excluded.function_schema, excluded.function_name, excluded.timeout);
END
$$;

ALTER FUNCTION postbell.set_hook(kind text, purpose text, function regprocedure, timeout interval) OWNER TO postbell_owner;

CREATE FUNCTION postbell.set_instance(tenant text, instance text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
BEGIN
    IF coalesce(set_instance.instance !~ '^[!-~]{1,64}$', true) THEN
        PERFORM postbell.refuse('notification.invalid', 'an instance id is 1 to 64 printable ASCII characters');
    END IF;
    UPDATE postbell.tenants t SET instance = set_instance.instance
    WHERE t.tenant_no = postbell.tenant_number(set_instance.tenant);
END
$_$;

ALTER FUNCTION postbell.set_instance(tenant text, instance text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.set_retention(table_name text, keep interval) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_variable
BEGIN
    PERFORM postbell.refuse_confined();
    UPDATE postbell.retention p SET keep = keep, changed_at = clock_timestamp(), changed_by = SESSION_USER
    WHERE p.table_name = table_name;
    IF NOT FOUND THEN
        PERFORM postbell.refuse_retention('there is no policy for a table of that name');
    END IF;
    IF EXISTS (
            SELECT 1
            FROM (VALUES ('deliveries', 'outbox'), ('events', 'outbox'), ('workers', 'deliveries')) n(longer, shorter)
            JOIN postbell.retention l ON l.table_name = n.longer
            JOIN postbell.retention s ON s.table_name = n.shorter
            WHERE l.keep IS NOT NULL AND (s.keep IS NULL OR l.keep < s.keep)) THEN
        PERFORM postbell.refuse_retention(
            'deliveries and events are kept at least as long as outbox, and workers as long as deliveries');
    END IF;
EXCEPTION WHEN check_violation THEN
    PERFORM postbell.refuse_retention('that is shorter than at_least of its policy');
END
$$;

ALTER FUNCTION postbell.set_retention(table_name text, keep interval) OWNER TO postbell_owner;

CREATE FUNCTION postbell.size_warning(kind postbell.kinds) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT string_agg(l.bytes || ' bytes for ' || l.provider || ', which takes ' || l.most, ', and ')
    FROM postbell.largest_bytes(kind) b
    CROSS JOIN LATERAL (VALUES
        ('APNs', b.apns, CASE kind.push_type WHEN 'voip' THEN 5120 ELSE 4096 END),
        ('FCM', b.fcm, 4096)
    ) l(provider, bytes, most)
    WHERE l.bytes > l.most
$$;

ALTER FUNCTION postbell.size_warning(kind postbell.kinds) OWNER TO postbell_owner;

CREATE FUNCTION postbell.status_rank(status text) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
    SELECT CASE status
        WHEN 'failed' THEN 5
        WHEN 'expired' THEN 4
        WHEN 'cancelled' THEN 3
        WHEN 'superseded' THEN 2
        ELSE 1
    END
$$;

ALTER FUNCTION postbell.status_rank(status text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.store_import(tenant text, stored postbell.import_row[], reading timestamp with time zone) RETURNS void
    LANGUAGE sql
    AS $$
    UPDATE postbell.devices d SET
        provider = r.provider,
        environment = r.environment,
        app = r.app,
        route_no = r.route_no,
        rerouted_at = CASE WHEN d.route_no = r.route_no THEN d.rerouted_at ELSE reading END,
        token = r.token,
        token_registered_at = coalesce(r.known_at, '-infinity'),
        fingerprint = r.fingerprint,
        token_seq = d.token_seq + CASE WHEN d.token IS DISTINCT FROM r.token THEN 1 ELSE 0 END,
        push_token_updated_at =
            CASE WHEN d.token IS DISTINCT FROM r.token THEN reading ELSE d.push_token_updated_at END,
        push_token_invalidated_at = NULL,
        failure_count = CASE WHEN d.token IS DISTINCT FROM r.token THEN 0 ELSE d.failure_count END,
        success_due_at = '-infinity',
        status = CASE d.status WHEN 'pending' THEN d.status ELSE 'active' END,
        disabled_reason = NULL,
        name = coalesce(r.name, d.name),
        kind = coalesce(r.kind, d.kind),
        platform = coalesce(r.platform, d.platform),
        device_ref = coalesce(r.device_ref, d.device_ref),
        session_ref = coalesce(r.session_ref, d.session_ref),
        updated_at = reading
    FROM unnest(stored) r
    WHERE d.device_no = r.device_no;

    INSERT INTO postbell.devices (
        id, tenant_id, principal_id, client_device_id, provider, environment, app, route_no, token,
        token_registered_at, fingerprint, token_seq, push_token_updated_at,
        name, kind, platform, device_ref, session_ref, last_seen_at, created_at, updated_at)
    SELECT
        postbell.uuid7(reading), tenant, r.principal_id, r.client_device_id, r.provider, r.environment, r.app,
        r.route_no, r.token,
        -- no proof that a token is dead is older than a time that nobody knows
        coalesce(r.known_at, '-infinity'), r.fingerprint, 1, reading,
        r.name, r.kind, r.platform, r.device_ref, r.session_ref, coalesce(r.known_at, reading), reading, reading
    FROM unnest(stored) r
    WHERE r.device_no IS NULL;
$$;

ALTER FUNCTION postbell.store_import(tenant text, stored postbell.import_row[], reading timestamp with time zone) OWNER TO postbell_owner;

CREATE FUNCTION postbell.store_registration(wanted postbell.devices, reading timestamp with time zone) RETURNS postbell.devices
    LANGUAGE plpgsql
    AS $$
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

ALTER FUNCTION postbell.store_registration(wanted postbell.devices, reading timestamp with time zone) OWNER TO postbell_owner;

CREATE FUNCTION postbell.supersede(tenant text, subject text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    reading timestamptz := clock_timestamp();
BEGIN
    PERFORM postbell.refuse_foreign_fact(tenant, 'subject', subject);
    INSERT INTO postbell.supersessions (id, at, tenant_id, subject)
    VALUES (postbell.uuid7(reading), reading, tenant, supersede.subject);
END
$$;

ALTER FUNCTION postbell.supersede(tenant text, subject text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.sync(principal text, delivered uuid[] DEFAULT '{}'::uuid[], seen text[] DEFAULT '{}'::text[], query uuid[] DEFAULT '{}'::uuid[], OUT obsolete uuid[], OUT unread uuid[]) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    tenant   text := postbell.session_tenant();
    reading  timestamptz := clock_timestamp();
    subjects text[];
BEGIN
    subjects := ARRAY(SELECT DISTINCT u.subject FROM unnest(seen) u(subject));
    IF NOT coalesce(postbell.is_name(principal), false)
            OR NOT coalesce((SELECT bool_and(coalesce(postbell.is_name(u), false)) FROM unnest(subjects) u), true) THEN
        PERFORM postbell.refuse('receipt.invalid', 'principal and subjects are 1 to 200 printable ASCII characters');
    END IF;
    IF cardinality(delivered) > 200 OR cardinality(seen) > 100 OR cardinality(query) > 100 THEN
        PERFORM postbell.refuse('receipt.invalid', 'at most 200 delivered, 100 seen and 100 queried');
    END IF;
    IF cardinality(subjects) > 0 THEN
        WITH known AS MATERIALIZED (
            SELECT o.subject, max(o.created_at) AS newest
            FROM postbell.outbox o
            WHERE o.tenant_id = tenant
                AND o.principal_id = principal
                AND o.subject = ANY (subjects)
                AND postbell.acts_for(principal)
            GROUP BY o.subject
        ),
        made AS (
            -- one that is there already and later than all it could be about says the same
            INSERT INTO postbell.receipts (seen_at, tenant_id, principal_id, subject)
            SELECT reading, tenant, principal, k.subject
            FROM known k
            WHERE NOT EXISTS (
                SELECT 1 FROM postbell.receipts r
                WHERE r.tenant_id = tenant
                    AND r.principal_id = principal
                    AND r.subject = k.subject
                    AND r.seen_at > k.newest)
            ON CONFLICT DO NOTHING
        )
        SELECT array_agg(k.subject) INTO seen
        FROM known k;
        IF coalesce(cardinality(seen), 0) < cardinality(subjects) THEN
            PERFORM postbell.refuse('receipt.unknown', 'a seen subject is none of this principal''s');
        END IF;
    END IF;
    WITH asked AS MATERIALIZED (
        SELECT
            o.id, n.is_delivered, n.is_queried,
            o.expires_at <= reading AS is_expired,
            EXISTS (
                SELECT 1 FROM postbell.settlements w
                WHERE w.notification_id = o.id AND w.route_no IS NULL AND w.status IN ('superseded', 'cancelled'))
                OR (o.subject IS NOT NULL AND EXISTS (
                    SELECT 1 FROM postbell.supersessions u
                    WHERE u.tenant_id = o.tenant_id AND u.subject = o.subject AND u.at > o.created_at))
                OR (o.thread IS NOT NULL AND EXISTS (
                    SELECT 1 FROM postbell.erasures e
                    WHERE e.tenant_id = o.tenant_id AND e.thread = o.thread AND e.at > o.created_at)) AS is_over,
            -- null without a subject: what nobody can see is not unread either
            CASE WHEN o.subject IS NOT NULL THEN EXISTS (
                SELECT 1 FROM postbell.receipts r
                WHERE r.tenant_id = o.tenant_id
                    AND r.principal_id = o.principal_id
                    AND r.subject = o.subject
                    AND r.seen_at > o.created_at)
            END AS is_seen,
            k.ends_when_seen
        FROM (
            SELECT u.id, bool_or(u.is_delivered) AS is_delivered, bool_or(NOT u.is_delivered) AS is_queried
            FROM (
                SELECT d, true FROM unnest(delivered) d
                UNION ALL
                SELECT q, false FROM unnest(query) q
            ) u(id, is_delivered)
            GROUP BY u.id
        ) n
        JOIN postbell.outbox o ON o.id = n.id
        JOIN postbell.kinds k ON k.kind_no = o.kind_no
        WHERE o.tenant_id = tenant AND o.principal_id = principal AND postbell.acts_for(principal)
    )
    SELECT
        coalesce(array_agg(a.id ORDER BY a.id) FILTER (
            WHERE a.is_delivered AND (a.is_expired OR a.is_over OR (a.ends_when_seen AND a.is_seen))), '{}'),
        coalesce(array_agg(a.id ORDER BY a.id) FILTER (WHERE a.is_queried AND NOT a.is_over AND NOT a.is_seen), '{}')
    INTO obsolete, unread
    FROM asked a;
END
$$;

ALTER FUNCTION postbell.sync(principal text, delivered uuid[], seen text[], query uuid[], OUT obsolete uuid[], OUT unread uuid[]) OWNER TO postbell_owner;

CREATE FUNCTION postbell.take_tokens(device_numbers bigint[], reading timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

ALTER FUNCTION postbell.take_tokens(device_numbers bigint[], reading timestamp with time zone) OWNER TO postbell_owner;

CREATE FUNCTION postbell.target_status(outcome smallint, reason text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT CASE
        WHEN outcome IN (2, 3, 4, 5, 6) THEN 'failed'
        WHEN outcome = 7 AND reason = 'expired' THEN 'expired'
        WHEN outcome = 7 AND reason IN ('cancelled', 'erased') THEN 'cancelled'
        WHEN outcome = 7 AND reason IN ('superseded', 'seen', 'no_access') THEN 'superseded'
        ELSE 'dispatched'
    END
$$;

ALTER FUNCTION postbell.target_status(outcome smallint, reason text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.tenant_number(tenant text) RETURNS integer
    LANGUAGE plpgsql
    AS $_$
DECLARE
    found_no int;
BEGIN
    SELECT t.tenant_no INTO found_no FROM postbell.tenants t WHERE t.tenant_id = tenant;
    IF found_no IS NULL THEN
        IF tenant IS NULL OR tenant !~ '^[!-~]{1,63}$' THEN
            RAISE EXCEPTION USING ERRCODE = 'PB006',
                MESSAGE = 'notification.invalid: tenant_id must be 1 to 63 printable ASCII characters';
        END IF;
        INSERT INTO postbell.tenants AS t (tenant_id) VALUES (tenant)
        ON CONFLICT (tenant_id) DO UPDATE SET tenant_id = excluded.tenant_id
        RETURNING t.tenant_no INTO found_no;
    END IF;
    RETURN found_no;
END
$_$;

ALTER FUNCTION postbell.tenant_number(tenant text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.text_bytes(presentation text, value jsonb) RETURNS integer
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
DECLARE
    leaf text := value #>> '{}';
BEGIN
    IF jsonb_typeof(value) = 'object' THEN
        RETURN (
            SELECT min(postbell.text_bytes(presentation, v.variant))
            FROM (
                SELECT c.value AS variant FROM jsonb_each(value -> 'cases') c
                UNION ALL SELECT value -> 'absent' WHERE value ? 'absent'
                UNION ALL SELECT value -> 'else' WHERE value ? 'else'
            ) v);
    END IF;
    leaf := CASE presentation
        WHEN 'localized' THEN regexp_replace(leaf, '\(.*$', '')
        ELSE regexp_replace(regexp_replace(leaf, '\{\{|\}\}', '|', 'g'), '\{[^{}]+\}', '', 'g')
    END;
    RETURN coalesce(octet_length(to_json(leaf)::text) - 2, 0);
END
$_$;

ALTER FUNCTION postbell.text_bytes(presentation text, value jsonb) OWNER TO postbell_owner;

CREATE FUNCTION postbell.text_fault(presentation text, place text, value jsonb, keys jsonb, depth integer DEFAULT 0) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    AS $$
DECLARE
    declared jsonb;
    words    text[];
    fault    text;
    variant  record;
BEGIN
    IF jsonb_typeof(value) = 'string' THEN
        RETURN postbell.leaf_fault(presentation, place, value #>> '{}', keys);
    END IF;
    IF jsonb_typeof(value) <> 'object' OR presentation = 'code' THEN
        RETURN place || ' has the wrong type';
    END IF;
    IF depth = 3 THEN
        RETURN place || ' has variants of variants of variants of variants';
    END IF;
    SELECT min(k) INTO fault FROM jsonb_object_keys(value) k WHERE k NOT IN ('by', 'cases', 'absent', 'else');
    IF fault IS NOT NULL THEN
        RETURN place || ' has by, cases, absent and else, but not "' || left(fault, 64) || '"';
    END IF;
    declared := keys -> (value ->> 'by');
    IF declared IS NULL THEN
        RETURN place || '.by names no declared key';
    END IF;
    words := CASE declared ->> 'type'
        WHEN 'enum' THEN ARRAY(SELECT jsonb_array_elements_text(declared -> 'values'))
        WHEN 'bool' THEN ARRAY['true', 'false']
        ELSE '{}'
    END;
    IF value ? 'cases' THEN
        IF jsonb_typeof(value -> 'cases') <> 'object' THEN
            RETURN place || '.cases has the wrong type';
        END IF;
        FOR variant IN SELECT c.key, c.value FROM jsonb_each(value -> 'cases') c LOOP
            IF variant.key <> ALL (words) THEN
                RETURN place || '.cases has "' || left(variant.key, 64) || '", which is no word of its key';
            END IF;
            fault := postbell.text_fault(
                presentation, place || '.cases.' || variant.key, variant.value, keys, depth + 1);
            IF fault IS NOT NULL THEN
                RETURN fault;
            END IF;
        END LOOP;
    END IF;
    FOR variant IN SELECT c.key, c.value FROM jsonb_each(value) c WHERE c.key IN ('absent', 'else') LOOP
        fault := postbell.text_fault(presentation, place || '.' || variant.key, variant.value, keys, depth + 1);
        IF fault IS NOT NULL THEN
            RETURN fault;
        END IF;
    END LOOP;
    IF NOT value ? 'else' AND (
            words = '{}' OR NOT coalesce(value -> 'cases', '{}') ?& words
            OR NOT ((declared ->> 'required')::boolean OR value ? 'absent')) THEN
        RETURN place || ' leaves a value of its key without a text: it needs an else';
    END IF;
    RETURN NULL;
END
$$;

ALTER FUNCTION postbell.text_fault(presentation text, place text, value jsonb, keys jsonb, depth integer) OWNER TO postbell_owner;

CREATE FUNCTION postbell.token_fingerprint(token text) RETURNS integer
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
    RETURN postbell.keyed_fingerprint(s.value, token) FROM postbell.secrets s WHERE s.name = 'fingerprint';
END
$$;

ALTER FUNCTION postbell.token_fingerprint(token text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.uninstall_codes() RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    own  text := postbell.own_namespace();
    gone int;
BEGIN
    DELETE FROM postbell.codes c WHERE c.namespace = own;
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END
$$;

ALTER FUNCTION postbell.uninstall_codes() OWNER TO postbell_owner;

CREATE FUNCTION postbell.uses_own_value(content jsonb, name text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    AS $_$
    SELECT EXISTS (
        SELECT 1
        FROM (VALUES (content -> 'data'), (content -> 'fcm')) m(members)
        CROSS JOIN LATERAL jsonb_each(m.members) e
        WHERE e.value #>> '{}' = '{$' || name || '}')
$_$;

ALTER FUNCTION postbell.uses_own_value(content jsonb, name text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.uuid7(at timestamp with time zone DEFAULT clock_timestamp()) RETURNS uuid
    LANGUAGE sql PARALLEL SAFE
    AS $$
    -- one expression without FROM, which the planner puts in the caller's place
    SELECT pg_catalog.encode(
        pg_catalog.int8send(
            (((pg_catalog.date_part('epoch', at) * 1000000)::bigint / 1000) << 16)
                | 28672
                | (((pg_catalog.date_part('epoch', at) * 1000000)::bigint % 1000) * 4096 / 1000))
            || pg_catalog.substring(pg_catalog.uuid_send(pg_catalog.gen_random_uuid()), 9),
        'hex')::uuid
$$;

ALTER FUNCTION postbell.uuid7(at timestamp with time zone) OWNER TO postbell_owner;

CREATE FUNCTION postbell.uuid_floor(at timestamp with time zone) RETURNS uuid
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
    SELECT pg_catalog.encode(
        pg_catalog.int8send(pg_catalog.floor(pg_catalog.date_part(
            'epoch', least(greatest(at, '1970-01-01+00'), '9999-12-31+00')) * 1000)::bigint << 16)
            || '\x0000000000000000'::bytea,
        'hex')::uuid
$$;

ALTER FUNCTION postbell.uuid_floor(at timestamp with time zone) OWNER TO postbell_owner;

CREATE FUNCTION postbell.value_bytes(declared jsonb) RETURNS integer
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT CASE declared ->> 'type'
        WHEN 'uuid' THEN 36
        WHEN 'int' THEN 19
        WHEN 'bool' THEN 5
        WHEN 'slug' THEN 100
        WHEN 'code' THEN 200
        WHEN 'timestamp' THEN 35
        WHEN 'enum' THEN (SELECT max(length(v)) FROM jsonb_array_elements_text(declared -> 'values') v)
        WHEN 'text' THEN (declared ->> 'length')::int * 4
        WHEN 'uuids' THEN (declared ->> 'length')::int * 39 + 1
    END
$$;

ALTER FUNCTION postbell.value_bytes(declared jsonb) OWNER TO postbell_owner;

CREATE FUNCTION postbell.visible_fault(presentation text, visible jsonb, keys jsonb) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    AS $$
DECLARE
    entry record;
    named text;
BEGIN
    IF jsonb_typeof(visible) <> 'object' THEN
        RETURN 'visible has the wrong type';
    END IF;
    SELECT min(k.key) INTO named FROM jsonb_each(keys) k
    WHERE k.value ->> 'type' = 'text' AND (presentation <> 'template' OR NOT visible ? k.key);
    IF named IS NOT NULL THEN
        RETURN 'the key "' || named || '" is text, which only a template shows, and only when visible names it';
    END IF;
    FOR entry IN SELECT v.key, v.value, keys -> v.key AS declared FROM jsonb_each(visible) v LOOP
        IF NOT coalesce(entry.declared ->> 'type' = 'text', false) THEN
            RETURN 'visible.' || left(entry.key, 64) || ' is no declared text';
        END IF;
        CONTINUE WHEN jsonb_typeof(entry.value) = 'null';
        IF jsonb_typeof(entry.value) <> 'string'
                OR postbell.safe_text(entry.value #>> '{}', (entry.declared ->> 'length')::int, '')
                    <> entry.value #>> '{}'
                OR entry.value #>> '{}' = '' THEN
            RETURN 'visible.' || entry.key || ' must be null, or a text that needs no replacement itself';
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;

ALTER FUNCTION postbell.visible_fault(presentation text, visible jsonb, keys jsonb) OWNER TO postbell_owner;

CREATE FUNCTION postbell.visible_keys(content jsonb, keys jsonb) RETURNS jsonb
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT jsonb_object_agg(k.key, jsonb_build_object(
        'length', k.value -> 'length', 'replacement', content -> 'visible' -> k.key))
    FROM jsonb_each(keys) k
    WHERE k.value ->> 'type' = 'text'
$$;

ALTER FUNCTION postbell.visible_keys(content jsonb, keys jsonb) OWNER TO postbell_owner;

CREATE FUNCTION postbell.visible_text(value text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
    SELECT btrim(regexp_replace(regexp_replace(
        value,
        '[\u0001-\u0008\u000e-\u001f\u007f-\u0084\u0086-\u009f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f'
            || '\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f'
            || '\u2800\u3164\ufe00-\ufe0d\ufeff'
            || '\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a'
            || '\U000e0000-\U000e0fff]',
        '', 'g'),
        '[\u0009-\u000d\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+', ' ', 'g'))
$$;

ALTER FUNCTION postbell.visible_text(value text) OWNER TO postbell_owner;

CREATE FUNCTION postbell.wake(woken smallint[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

ALTER FUNCTION postbell.wake(woken smallint[]) OWNER TO postbell_owner;

CREATE TABLE postbell.acknowledgements (
    at timestamp with time zone NOT NULL,
    notification_id uuid NOT NULL,
    tenant_id text NOT NULL
);

ALTER TABLE ONLY postbell.acknowledgements FORCE ROW LEVEL SECURITY;

ALTER TABLE postbell.acknowledgements OWNER TO postbell_owner;

CREATE TABLE postbell.deliveries (
    id uuid NOT NULL,
    notification_id uuid NOT NULL,
    batch uuid NOT NULL,
    device_no bigint NOT NULL,
    attempted_at timestamp with time zone,
    retry_at timestamp with time zone,
    tenant_no integer NOT NULL,
    worker_no integer,
    answer_us integer,
    token_seq integer,
    route_no smallint NOT NULL,
    attempt smallint NOT NULL,
    outcome smallint NOT NULL,
    provider_status smallint,
    final boolean NOT NULL,
    late boolean NOT NULL,
    reason text,
    provider_id text,
    topic text
)
PARTITION BY RANGE (id);

ALTER TABLE ONLY postbell.deliveries FORCE ROW LEVEL SECURITY;

ALTER TABLE postbell.deliveries OWNER TO postbell_owner;

CREATE TABLE postbell.deliveries_default (
    id uuid NOT NULL,
    notification_id uuid NOT NULL,
    batch uuid NOT NULL,
    device_no bigint NOT NULL,
    attempted_at timestamp with time zone,
    retry_at timestamp with time zone,
    tenant_no integer NOT NULL,
    worker_no integer,
    answer_us integer,
    token_seq integer,
    route_no smallint NOT NULL,
    attempt smallint NOT NULL,
    outcome smallint NOT NULL,
    provider_status smallint,
    final boolean NOT NULL,
    late boolean NOT NULL,
    reason text,
    provider_id text,
    topic text
);

ALTER TABLE postbell.deliveries_default OWNER TO postbell_owner;

ALTER TABLE postbell.devices ALTER COLUMN device_no ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME postbell.devices_device_no_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE SEQUENCE postbell.discarded_notifications
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER TABLE postbell.discarded_notifications OWNER TO postbell_owner;

CREATE TABLE postbell.erasures (
    id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    tenant_id text NOT NULL,
    thread text NOT NULL
);

ALTER TABLE ONLY postbell.erasures FORCE ROW LEVEL SECURITY;

ALTER TABLE postbell.erasures OWNER TO postbell_owner;

CREATE TABLE postbell.events (
    id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    tenant_id text NOT NULL,
    name text NOT NULL,
    key text NOT NULL,
    principal_id text,
    device_id uuid,
    detail jsonb DEFAULT '{}'::jsonb NOT NULL
);

ALTER TABLE ONLY postbell.events FORCE ROW LEVEL SECURITY;

ALTER TABLE postbell.events OWNER TO postbell_owner;

CREATE TABLE postbell.workers (
    worker_no integer NOT NULL,
    owner uuid NOT NULL,
    name text NOT NULL,
    version text NOT NULL,
    routes smallint[] DEFAULT '{}'::smallint[] NOT NULL,
    lanes jsonb DEFAULT '{}'::jsonb NOT NULL,
    started_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    heartbeat_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    stopped_at timestamp with time zone,
    hooks jsonb DEFAULT '{}'::jsonb NOT NULL
);

ALTER TABLE postbell.workers OWNER TO postbell_owner;

CREATE VIEW postbell.hook_health WITH (security_invoker='true') AS
 SELECT h.key AS kind,
    w.name AS worker,
    (h.value ->> 'reason'::text) AS reason,
    ((h.value ->> 'since'::text))::timestamp with time zone AS since,
    ((h.value ->> 'until'::text))::timestamp with time zone AS until
   FROM (postbell.workers w
     CROSS JOIN LATERAL jsonb_each(w.hooks) h(key, value))
  WHERE ((w.stopped_at IS NULL) AND (w.heartbeat_at > (now() - postbell.heartbeat_limit())));

ALTER TABLE postbell.hook_health OWNER TO postbell_owner;

CREATE TABLE postbell.hooks (
    kind text NOT NULL,
    purpose text NOT NULL,
    function_schema name NOT NULL,
    function_name name NOT NULL,
    timeout interval NOT NULL,
    set_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    set_by text DEFAULT SESSION_USER NOT NULL,
    CONSTRAINT hooks_purpose_check CHECK ((purpose = ANY (ARRAY['stale'::text, 'access'::text]))),
    CONSTRAINT hooks_timeout_check CHECK (((timeout >= '00:00:00.01'::interval) AND (timeout <= '00:00:10'::interval)))
);

ALTER TABLE postbell.hooks OWNER TO postbell_owner;

CREATE TABLE postbell.idempotency_keys (
    created_at timestamp with time zone NOT NULL,
    device_id uuid NOT NULL,
    tenant_id text NOT NULL,
    principal_id text NOT NULL,
    key text NOT NULL,
    device_status text NOT NULL,
    token_fingerprint text NOT NULL,
    request_hash bytea NOT NULL
);

ALTER TABLE ONLY postbell.idempotency_keys FORCE ROW LEVEL SECURITY;

ALTER TABLE postbell.idempotency_keys OWNER TO postbell_owner;

CREATE TABLE postbell.leases (
    batch uuid NOT NULL,
    owner uuid NOT NULL,
    claimed_at timestamp with time zone NOT NULL,
    until timestamp with time zone NOT NULL,
    route_no smallint NOT NULL,
    ids uuid[] NOT NULL,
    tenants integer[] NOT NULL,
    urgencies smallint[] NOT NULL,
    attempts smallint[] NOT NULL,
    crashes smallint[] NOT NULL,
    cursors bigint[] NOT NULL,
    t_pos smallint[] NOT NULL,
    t_dev bigint[] NOT NULL,
    open bit varying NOT NULL
);
ALTER TABLE ONLY postbell.leases ALTER COLUMN ids SET STORAGE EXTERNAL;
ALTER TABLE ONLY postbell.leases ALTER COLUMN tenants SET STORAGE EXTERNAL;
ALTER TABLE ONLY postbell.leases ALTER COLUMN urgencies SET STORAGE EXTERNAL;
ALTER TABLE ONLY postbell.leases ALTER COLUMN attempts SET STORAGE EXTERNAL;
ALTER TABLE ONLY postbell.leases ALTER COLUMN crashes SET STORAGE EXTERNAL;
ALTER TABLE ONLY postbell.leases ALTER COLUMN cursors SET STORAGE EXTERNAL;
ALTER TABLE ONLY postbell.leases ALTER COLUMN t_pos SET STORAGE EXTERNAL;
ALTER TABLE ONLY postbell.leases ALTER COLUMN t_dev SET STORAGE EXTERNAL;

ALTER TABLE ONLY postbell.leases FORCE ROW LEVEL SECURITY;

ALTER TABLE postbell.leases OWNER TO postbell_owner;

CREATE VIEW postbell.lease_positions WITH (security_barrier='true') AS
 SELECT u.id AS notification_id,
    u.tenant_no,
    u.attempt,
    u.crashes,
    l.batch,
    l.owner,
    l.route_no,
    l.claimed_at,
    l.until,
    (get_bit((l.open)::"bit", ((u.pos - 1))::integer) = 1) AS is_open
   FROM postbell.leases l,
    LATERAL UNNEST(l.ids, l.tenants, l.attempts, l.crashes) WITH ORDINALITY u(id, tenant_no, attempt, crashes, pos)
  WHERE ((CURRENT_USER = 'postbell_owner'::name) OR (( SELECT postbell.reader_tenant_no() AS reader_tenant_no) IS NULL) OR (u.tenant_no = ( SELECT postbell.reader_tenant_no() AS reader_tenant_no)));

ALTER TABLE postbell.lease_positions OWNER TO postbell_owner;

CREATE TABLE postbell.routes (
    route_no smallint NOT NULL,
    provider text NOT NULL,
    environment text,
    app text NOT NULL,
    twin integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

ALTER TABLE ONLY postbell.routes FORCE ROW LEVEL SECURITY;

ALTER TABLE postbell.routes OWNER TO postbell_owner;

CREATE VIEW postbell.in_flight WITH (security_invoker='true') AS
 SELECT l.batch,
    l.route_no,
    r.provider,
    r.environment,
    r.app,
    w.name AS worker,
    l.claimed_at,
    l.until AS claimed_until,
    count(*) AS claimed,
    count(*) FILTER (WHERE l.is_open) AS open
   FROM ((postbell.lease_positions l
     LEFT JOIN postbell.routes r USING (route_no))
     LEFT JOIN postbell.workers w ON ((w.owner = l.owner)))
  GROUP BY l.batch, l.route_no, r.provider, r.environment, r.app, w.name, l.claimed_at, l.until;

ALTER TABLE postbell.in_flight OWNER TO postbell_owner;

ALTER TABLE postbell.kinds ALTER COLUMN kind_no ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME postbell.kinds_kind_no_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE VIEW postbell.worker_health WITH (security_invoker='true') AS
 SELECT w.worker_no,
    w.owner,
    w.name,
    w.version,
        CASE
            WHEN (w.stopped_at IS NOT NULL) THEN 'stopped'::text
            WHEN (w.heartbeat_at > (now() - postbell.heartbeat_limit())) THEN 'alive'::text
            ELSE 'dead'::text
        END AS state,
    w.started_at,
    w.heartbeat_at,
    w.stopped_at,
    w.routes,
    w.lanes
   FROM postbell.workers w;

ALTER TABLE postbell.worker_health OWNER TO postbell_owner;

CREATE VIEW postbell.lane_health WITH (security_invoker='true') AS
 SELECT w.worker_no,
    w.name AS worker,
    l.key AS lane,
        CASE
            WHEN (((l.value ->> 'state'::text) = 'paused'::text) AND (t.until <= now())) THEN 'probing'::text
            ELSE (l.value ->> 'state'::text)
        END AS state,
    (l.value ->> 'reason'::text) AS reason,
    ((l.value ->> 'since'::text))::timestamp with time zone AS since,
    t.until,
    ARRAY( SELECT (r.value)::smallint AS value
           FROM jsonb_array_elements_text((l.value -> 'routes'::text)) r(value)) AS routes
   FROM ((postbell.worker_health w
     CROSS JOIN LATERAL jsonb_each(w.lanes) l(key, value))
     CROSS JOIN LATERAL ( SELECT ((l.value ->> 'until'::text))::timestamp with time zone AS until) t)
  WHERE (w.state = 'alive'::text);

ALTER TABLE postbell.lane_health OWNER TO postbell_owner;

CREATE TABLE postbell.tenants (
    tenant_no integer NOT NULL,
    tenant_id text NOT NULL,
    instance text DEFAULT (gen_random_uuid())::text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

ALTER TABLE ONLY postbell.tenants FORCE ROW LEVEL SECURITY;

ALTER TABLE postbell.tenants OWNER TO postbell_owner;

CREATE VIEW postbell.ledger WITH (security_invoker='true') AS
 SELECT d.id,
    t.tenant_id,
    d.notification_id,
    d.device_no,
    v.id AS device_id,
    v.name AS device_name,
    v.kind AS device_kind,
    r.provider,
    r.environment,
    COALESCE(d.topic, r.app) AS topic,
    d.route_no,
    d.batch,
    d.attempt,
    postbell.outcome_name(d.outcome) AS outcome,
    d.final,
    d.late,
    d.retry_at,
    d.provider_status,
        CASE
            WHEN (d.outcome <> 7) THEN d.reason
            ELSE NULL::text
        END AS provider_reason,
        CASE
            WHEN (d.outcome = 7) THEN d.reason
            ELSE NULL::text
        END AS skip_reason,
        CASE
            WHEN (d.provider_status IS NOT NULL) THEN COALESCE(d.provider_id,
            CASE
                WHEN (r.provider = 'apns'::text) THEN (d.notification_id)::text
                ELSE NULL::text
            END)
            ELSE NULL::text
        END AS provider_id,
        CASE
            WHEN (v.token_seq = d.token_seq) THEN postbell.fingerprint_text(v.fingerprint)
            ELSE ( SELECT (e.detail ->> 'fingerprint'::text)
               FROM postbell.events e
              WHERE (e.key = ANY (ARRAY[((('device.registered:'::text || d.device_no) || ':'::text) || d.token_seq), ((('device.push_token_updated:'::text || d.device_no) || ':'::text) || d.token_seq)]))
             LIMIT 1)
        END AS token_fingerprint,
    w.name AS worker,
    d.attempted_at,
    (d.attempted_at + ((d.answer_us)::double precision * '00:00:00.000001'::interval)) AS answered_at
   FROM ((((postbell.deliveries d
     LEFT JOIN postbell.tenants t ON ((t.tenant_no = d.tenant_no)))
     LEFT JOIN postbell.routes r ON ((r.route_no = d.route_no)))
     LEFT JOIN postbell.devices v ON ((v.device_no = d.device_no)))
     LEFT JOIN postbell.workers w ON ((w.worker_no = d.worker_no)));

ALTER TABLE postbell.ledger OWNER TO postbell_owner;

CREATE TABLE postbell.namespaces (
    role_name name NOT NULL,
    namespace text NOT NULL,
    assigned_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    assigned_by text DEFAULT SESSION_USER NOT NULL
);

ALTER TABLE postbell.namespaces OWNER TO postbell_owner;

CREATE TABLE postbell.queue (
    due_at timestamp with time zone NOT NULL,
    notification_id uuid NOT NULL,
    after_device bigint DEFAULT 0 NOT NULL,
    tenant_no integer NOT NULL,
    route_no smallint NOT NULL,
    crashes smallint DEFAULT 0 NOT NULL,
    urgency smallint NOT NULL,
    attempt smallint DEFAULT 0 NOT NULL,
    prior boolean DEFAULT false NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='20000', autovacuum_vacuum_cost_delay='0');

ALTER TABLE ONLY postbell.queue FORCE ROW LEVEL SECURITY;

ALTER TABLE postbell.queue OWNER TO postbell_owner;

CREATE TABLE postbell.settlements (
    seq bigint NOT NULL,
    notification_id uuid NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    tenant_no integer NOT NULL,
    route_no smallint,
    status text NOT NULL,
    reason text NOT NULL
);

ALTER TABLE ONLY postbell.settlements FORCE ROW LEVEL SECURITY;

ALTER TABLE postbell.settlements OWNER TO postbell_owner;

CREATE VIEW postbell.target_ends WITH (security_invoker='true') AS
 SELECT DISTINCT ON (d.notification_id, d.device_no) d.notification_id,
    d.device_no,
    d.route_no,
    d.id,
    d.outcome,
    d.reason,
    postbell.target_status(d.outcome, d.reason) AS status
   FROM postbell.deliveries d
  WHERE (d.final AND (NOT ((d.outcome = 6) AND (EXISTS ( SELECT 1
           FROM postbell.deliveries t
          WHERE ((t.notification_id = d.notification_id) AND (t.device_no = d.device_no) AND (t.batch = d.batch) AND t.late AND t.final))))))
  ORDER BY d.notification_id, d.device_no, d.id;

ALTER TABLE postbell.target_ends OWNER TO postbell_owner;

CREATE VIEW postbell.notifications WITH (security_invoker='true') AS
 SELECT o.id,
    o.tenant_id,
    o.principal_id,
    o.kind,
    o.dedupe_key,
    o.subject,
    o.thread,
    o.urgency,
    o.created_at,
    o.planned_at,
    o.expires_at,
    o.predecessor,
    COALESCE(whole.status,
        CASE
            WHEN (place.name IS NOT NULL) THEN 'pending'::text
            ELSE NULL::text
        END, worst.status, 'dispatched'::text) AS status,
    COALESCE(whole.reason,
        CASE
            WHEN (place.name IS NULL) THEN worst.reason
            ELSE NULL::text
        END) AS reason,
    place.name AS place,
    waiting.due_at AS next_attempt_at,
    leased.owner AS claimed_by,
    leased.until AS claimed_until,
        CASE
            WHEN ((whole.status IS NOT NULL) OR (place.name IS NULL)) THEN GREATEST(whole.at, worst.at, counts.last_at)
            ELSE NULL::timestamp with time zone
        END AS settled_at,
    counts.attempts,
    counts.delivered,
    counts.unregistered,
    counts.rejected,
    counts.retried,
    counts.unknown,
    counts.skipped
   FROM ((((((postbell.outbox o
     LEFT JOIN LATERAL ( SELECT s.status,
            s.reason,
            s.at
           FROM postbell.settlements s
          WHERE ((s.notification_id = o.id) AND (s.route_no IS NULL))
          ORDER BY s.seq
         LIMIT 1) whole ON (true))
     LEFT JOIN ( SELECT DISTINCT ON (l.notification_id) l.notification_id AS id,
            l.owner,
            l.until
           FROM postbell.lease_positions l
          WHERE l.is_open
          ORDER BY l.notification_id, l.until) leased ON ((leased.id = o.id)))
     LEFT JOIN LATERAL ( SELECT min(q.due_at) AS due_at
           FROM postbell.queue q
          WHERE (q.notification_id = o.id)) waiting ON (true))
     CROSS JOIN LATERAL ( SELECT
                CASE
                    WHEN (leased.id IS NOT NULL) THEN 'lease'::text
                    WHEN (waiting.due_at IS NOT NULL) THEN 'queue'::text
                    ELSE NULL::text
                END AS name) place)
     LEFT JOIN LATERAL ( SELECT e.status,
            e.reason,
            e.at
           FROM ( SELECT s.status,
                    s.reason,
                    s.at
                   FROM postbell.settlements s
                  WHERE ((s.notification_id = o.id) AND (s.route_no IS NOT NULL))
                UNION ALL
                 SELECT t.status,
                        CASE
                            WHEN (t.outcome <> 0) THEN COALESCE(t.reason, postbell.outcome_name(t.outcome))
                            ELSE NULL::text
                        END AS "case",
                    NULL::timestamp with time zone
                   FROM postbell.target_ends t
                  WHERE (t.notification_id = o.id)) e
          ORDER BY (postbell.status_rank(e.status)) DESC, e.reason NULLS FIRST
         LIMIT 1) worst ON (true))
     CROSS JOIN LATERAL ( SELECT count(*) FILTER (WHERE (d.outcome <> 7)) AS attempts,
            count(*) FILTER (WHERE (d.outcome = 0)) AS delivered,
            count(*) FILTER (WHERE (d.outcome = 1)) AS unregistered,
            count(*) FILTER (WHERE (d.outcome = 2)) AS rejected,
            count(*) FILTER (WHERE (d.outcome = ANY (ARRAY[3, 4, 5]))) AS retried,
            count(*) FILTER (WHERE (d.outcome = 6)) AS unknown,
            count(*) FILTER (WHERE (d.outcome = 7)) AS skipped,
            max((d.attempted_at + ((COALESCE(d.answer_us, 0))::double precision * '00:00:00.000001'::interval))) AS last_at
           FROM postbell.deliveries d
          WHERE (d.notification_id = o.id)) counts);

ALTER TABLE postbell.notifications OWNER TO postbell_owner;

CREATE VIEW postbell.places WITH (security_invoker='true') AS
 SELECT q.notification_id,
    q.route_no,
    'queue'::text AS place,
    q.due_at AS at,
    NULL::uuid AS batch,
    NULL::uuid AS owner,
    q.attempt,
    q.crashes
   FROM postbell.queue q
UNION ALL
 SELECT l.notification_id,
    l.route_no,
    'lease'::text AS place,
    l.until AS at,
    l.batch,
    l.owner,
    l.attempt,
    l.crashes
   FROM postbell.lease_positions l
  WHERE l.is_open;

ALTER TABLE postbell.places OWNER TO postbell_owner;

CREATE VIEW postbell.queue_depth WITH (security_invoker='true') AS
 SELECT q.route_no,
    r.provider,
    r.environment,
    r.app,
        CASE q.urgency
            WHEN 0 THEN 'urgent'::text
            ELSE 'bulk'::text
        END AS urgency,
    count(*) AS waiting,
    count(*) FILTER (WHERE (q.due_at <= now())) AS due,
    min(q.due_at) AS oldest_due_at,
    count(*) FILTER (WHERE (q.crashes > 0)) AS crashed
   FROM (postbell.queue q
     LEFT JOIN postbell.routes r USING (route_no))
  GROUP BY q.route_no, r.provider, r.environment, r.app, q.urgency;

ALTER TABLE postbell.queue_depth OWNER TO postbell_owner;

CREATE TABLE postbell.receipts (
    seen_at timestamp with time zone NOT NULL,
    tenant_id text NOT NULL,
    principal_id text NOT NULL,
    subject text NOT NULL
);

ALTER TABLE ONLY postbell.receipts FORCE ROW LEVEL SECURITY;

ALTER TABLE postbell.receipts OWNER TO postbell_owner;

CREATE TABLE postbell.retention (
    table_name text NOT NULL,
    keep interval,
    at_least interval DEFAULT '1 day'::interval NOT NULL,
    removed_before timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    resume_after uuid,
    resume_block bigint,
    changed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    changed_by text DEFAULT SESSION_USER NOT NULL,
    CONSTRAINT retention_check CHECK ((keep >= at_least))
);

ALTER TABLE postbell.retention OWNER TO postbell_owner;

CREATE TABLE postbell.role_tenants (
    role_name name NOT NULL,
    tenant_id text NOT NULL
);

ALTER TABLE postbell.role_tenants OWNER TO postbell_owner;

CREATE VIEW postbell.route_service WITH (security_invoker='true') AS
 SELECT r.route_no,
    r.provider,
    r.environment,
    r.app,
        CASE
            WHEN (r.route_no = 0) THEN r.provider
            ELSE concat_ws('/'::text, r.provider, r.environment, r.app)
        END AS route,
    served.workers,
        CASE
            WHEN (served.workers = 0) THEN 'unserved'::text
            ELSE COALESCE(best.state, 'up'::text)
        END AS state,
    best.lane,
    best.reason,
    best.since,
    best.until
   FROM ((postbell.routes r
     CROSS JOIN LATERAL ( SELECT count(*) AS workers
           FROM postbell.worker_health w
          WHERE ((w.state = 'alive'::text) AND ((r.route_no = 0) OR (r.route_no = ANY (w.routes))))) served)
     LEFT JOIN LATERAL ( SELECT h.lane,
            h.state,
            h.reason,
            h.since,
            h.until
           FROM postbell.lane_health h
          WHERE (r.route_no = ANY (h.routes))
          ORDER BY (h.state <> 'up'::text), (h.state <> 'probing'::text), h.until, h.lane
         LIMIT 1) best ON (true));

ALTER TABLE postbell.route_service OWNER TO postbell_owner;

ALTER TABLE postbell.routes ALTER COLUMN route_no ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME postbell.routes_route_no_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE postbell.schema_migrations (
    version integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    applied_by text DEFAULT SESSION_USER NOT NULL
);

ALTER TABLE postbell.schema_migrations OWNER TO postbell_owner;

CREATE TABLE postbell.secrets (
    name text NOT NULL,
    value bytea NOT NULL
);

ALTER TABLE postbell.secrets OWNER TO postbell_owner;

CREATE TABLE postbell.settings (
    name text NOT NULL,
    value text NOT NULL
);

ALTER TABLE postbell.settings OWNER TO postbell_owner;

ALTER TABLE postbell.settlements ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME postbell.settlements_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE postbell.supersessions (
    id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    tenant_id text NOT NULL,
    subject text NOT NULL
);

ALTER TABLE ONLY postbell.supersessions FORCE ROW LEVEL SECURITY;

ALTER TABLE postbell.supersessions OWNER TO postbell_owner;

CREATE TABLE postbell.tenant_routes (
    tenant_id text NOT NULL,
    route_no smallint NOT NULL
);

ALTER TABLE ONLY postbell.tenant_routes FORCE ROW LEVEL SECURITY;

ALTER TABLE postbell.tenant_routes OWNER TO postbell_owner;

ALTER TABLE postbell.tenants ALTER COLUMN tenant_no ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME postbell.tenants_tenant_no_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE postbell.workers ALTER COLUMN worker_no ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME postbell.workers_worker_no_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE ONLY postbell.deliveries ATTACH PARTITION postbell.deliveries_default DEFAULT;

ALTER TABLE ONLY postbell.acknowledgements
    ADD CONSTRAINT acknowledgements_pkey PRIMARY KEY (tenant_id, notification_id);

ALTER TABLE ONLY postbell.codes
    ADD CONSTRAINT codes_pkey PRIMARY KEY (namespace, key);

ALTER TABLE ONLY postbell.deliveries
    ADD CONSTRAINT deliveries_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postbell.deliveries_default
    ADD CONSTRAINT deliveries_default_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postbell.devices
    ADD CONSTRAINT devices_id_key UNIQUE (id);

ALTER TABLE ONLY postbell.devices
    ADD CONSTRAINT devices_pkey PRIMARY KEY (device_no);

ALTER TABLE ONLY postbell.devices
    ADD CONSTRAINT devices_tenant_id_principal_id_client_device_id_key UNIQUE (tenant_id, principal_id, client_device_id);

ALTER TABLE ONLY postbell.erasures
    ADD CONSTRAINT erasures_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postbell.events
    ADD CONSTRAINT events_key_key UNIQUE (key);

ALTER TABLE ONLY postbell.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postbell.hooks
    ADD CONSTRAINT hooks_pkey PRIMARY KEY (kind, purpose);

ALTER TABLE ONLY postbell.idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (tenant_id, principal_id, key);

ALTER TABLE ONLY postbell.kinds
    ADD CONSTRAINT kinds_name_revision_key UNIQUE (name, revision);

ALTER TABLE ONLY postbell.kinds
    ADD CONSTRAINT kinds_pkey PRIMARY KEY (kind_no);

ALTER TABLE ONLY postbell.leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (batch);

ALTER TABLE ONLY postbell.namespaces
    ADD CONSTRAINT namespaces_namespace_key UNIQUE (namespace);

ALTER TABLE ONLY postbell.namespaces
    ADD CONSTRAINT namespaces_pkey PRIMARY KEY (role_name);

ALTER TABLE ONLY postbell.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postbell.outbox
    ADD CONSTRAINT outbox_tenant_id_dedupe_key_key UNIQUE (tenant_id, dedupe_key);

ALTER TABLE ONLY postbell.queue
    ADD CONSTRAINT queue_pkey PRIMARY KEY (notification_id, route_no);

ALTER TABLE ONLY postbell.receipts
    ADD CONSTRAINT receipts_pkey PRIMARY KEY (tenant_id, principal_id, subject, seen_at);

ALTER TABLE ONLY postbell.retention
    ADD CONSTRAINT retention_pkey PRIMARY KEY (table_name);

ALTER TABLE ONLY postbell.role_tenants
    ADD CONSTRAINT role_tenants_pkey PRIMARY KEY (role_name, tenant_id);

ALTER TABLE ONLY postbell.routes
    ADD CONSTRAINT routes_pkey PRIMARY KEY (route_no);

ALTER TABLE ONLY postbell.routes
    ADD CONSTRAINT routes_provider_environment_app_twin_key UNIQUE NULLS NOT DISTINCT (provider, environment, app, twin);

ALTER TABLE ONLY postbell.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (version);

ALTER TABLE ONLY postbell.secrets
    ADD CONSTRAINT secrets_pkey PRIMARY KEY (name);

ALTER TABLE ONLY postbell.settings
    ADD CONSTRAINT settings_pkey PRIMARY KEY (name);

ALTER TABLE ONLY postbell.settlements
    ADD CONSTRAINT settlements_pkey PRIMARY KEY (seq);

ALTER TABLE ONLY postbell.supersessions
    ADD CONSTRAINT supersessions_pkey PRIMARY KEY (id);

ALTER TABLE ONLY postbell.tenant_routes
    ADD CONSTRAINT tenant_routes_pkey PRIMARY KEY (tenant_id, route_no);

ALTER TABLE ONLY postbell.tenants
    ADD CONSTRAINT tenants_pkey PRIMARY KEY (tenant_no);

ALTER TABLE ONLY postbell.tenants
    ADD CONSTRAINT tenants_tenant_id_key UNIQUE (tenant_id);

ALTER TABLE ONLY postbell.workers
    ADD CONSTRAINT workers_owner_key UNIQUE (owner);

ALTER TABLE ONLY postbell.workers
    ADD CONSTRAINT workers_pkey PRIMARY KEY (worker_no);

CREATE INDEX deliveries_notification ON ONLY postbell.deliveries USING btree (notification_id, device_no);

CREATE INDEX deliveries_default_notification_id_device_no_idx ON postbell.deliveries_default USING btree (notification_id, device_no);

CREATE INDEX deliveries_retry ON ONLY postbell.deliveries USING btree (notification_id, retry_at) WHERE (retry_at IS NOT NULL);

CREATE INDEX deliveries_default_notification_id_retry_at_idx ON postbell.deliveries_default USING btree (notification_id, retry_at) WHERE (retry_at IS NOT NULL);

CREATE INDEX devices_device_ref ON postbell.devices USING btree (tenant_id, device_ref) WHERE (device_ref IS NOT NULL);

CREATE INDEX devices_live ON postbell.devices USING btree (tenant_id, principal_id, route_no, device_no) INCLUDE (token, token_seq, success_due_at, rerouted_at, muted_kinds) WHERE ((token IS NOT NULL) AND (status = 'active'::text));

CREATE INDEX devices_session_ref ON postbell.devices USING btree (tenant_id, session_ref) WHERE (session_ref IS NOT NULL);

CREATE UNIQUE INDEX devices_token ON postbell.devices USING btree (token, provider, environment) NULLS NOT DISTINCT WHERE (token IS NOT NULL);

CREATE INDEX erasures_thread ON postbell.erasures USING btree (tenant_id, thread, at DESC);

CREATE INDEX events_principal ON postbell.events USING btree (tenant_id, principal_id) WHERE (principal_id IS NOT NULL);

CREATE INDEX events_tenant ON postbell.events USING btree (tenant_id, id);

CREATE INDEX idempotency_keys_age ON postbell.idempotency_keys USING btree (created_at);

CREATE UNIQUE INDEX kinds_current ON postbell.kinds USING btree (name) WHERE current;

CREATE INDEX kinds_ending_when_seen ON postbell.kinds USING btree (kind_no) WHERE ends_when_seen;

CREATE INDEX outbox_principal ON postbell.outbox USING btree (tenant_id, principal_id, id);

CREATE INDEX outbox_thread ON postbell.outbox USING btree (tenant_id, thread) WHERE (thread IS NOT NULL);

CREATE INDEX queue_due ON postbell.queue USING btree (route_no, crashes, urgency, tenant_no, due_at, notification_id);

CREATE INDEX settlements_notification ON postbell.settlements USING btree (notification_id, seq);

CREATE INDEX settlements_whole ON postbell.settlements USING btree (notification_id) WHERE (route_no IS NULL);

CREATE INDEX supersessions_subject ON postbell.supersessions USING btree (tenant_id, subject, at DESC);

ALTER INDEX postbell.deliveries_notification ATTACH PARTITION postbell.deliveries_default_notification_id_device_no_idx;

ALTER INDEX postbell.deliveries_retry ATTACH PARTITION postbell.deliveries_default_notification_id_retry_at_idx;

ALTER INDEX postbell.deliveries_pkey ATTACH PARTITION postbell.deliveries_default_pkey;

CREATE TRIGGER kinds_keep_open AFTER DELETE ON postbell.kinds REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION postbell.kinds_keep_open();

CREATE TRIGGER kinds_warn_of_size AFTER INSERT ON postbell.kinds FOR EACH ROW EXECUTE FUNCTION postbell.kinds_warn_of_size();

CREATE TRIGGER outbox_defaults BEFORE INSERT ON postbell.outbox FOR EACH ROW EXECUTE FUNCTION postbell.outbox_defaults();

CREATE TRIGGER outbox_enqueue AFTER INSERT ON postbell.outbox REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION postbell.outbox_enqueue();

ALTER TABLE postbell.acknowledgements ENABLE ROW LEVEL SECURITY;

ALTER TABLE postbell.deliveries ENABLE ROW LEVEL SECURITY;

ALTER TABLE postbell.devices ENABLE ROW LEVEL SECURITY;

CREATE POLICY dispatcher_all ON postbell.deliveries TO postbell_dispatcher USING (true) WITH CHECK (true);

CREATE POLICY dispatcher_all ON postbell.devices TO postbell_dispatcher USING (true) WITH CHECK (true);

CREATE POLICY dispatcher_all ON postbell.erasures TO postbell_dispatcher USING (true) WITH CHECK (true);

CREATE POLICY dispatcher_all ON postbell.leases TO postbell_dispatcher USING (true) WITH CHECK (true);

CREATE POLICY dispatcher_all ON postbell.outbox TO postbell_dispatcher USING (true) WITH CHECK (true);

CREATE POLICY dispatcher_all ON postbell.queue TO postbell_dispatcher USING (true) WITH CHECK (true);

CREATE POLICY dispatcher_all ON postbell.receipts TO postbell_dispatcher USING (true) WITH CHECK (true);

CREATE POLICY dispatcher_all ON postbell.routes FOR SELECT TO postbell_dispatcher USING (true);

CREATE POLICY dispatcher_all ON postbell.settlements TO postbell_dispatcher USING (true) WITH CHECK (true);

CREATE POLICY dispatcher_all ON postbell.supersessions TO postbell_dispatcher USING (true) WITH CHECK (true);

CREATE POLICY dispatcher_all ON postbell.tenants TO postbell_dispatcher USING (true) WITH CHECK (true);

ALTER TABLE postbell.erasures ENABLE ROW LEVEL SECURITY;

ALTER TABLE postbell.events ENABLE ROW LEVEL SECURITY;

ALTER TABLE postbell.idempotency_keys ENABLE ROW LEVEL SECURITY;

ALTER TABLE postbell.leases ENABLE ROW LEVEL SECURITY;

ALTER TABLE postbell.outbox ENABLE ROW LEVEL SECURITY;

CREATE POLICY owner_all ON postbell.acknowledgements TO postbell_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON postbell.deliveries TO postbell_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON postbell.devices TO postbell_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON postbell.erasures TO postbell_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON postbell.events TO postbell_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON postbell.idempotency_keys TO postbell_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON postbell.leases TO postbell_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON postbell.outbox TO postbell_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON postbell.queue TO postbell_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON postbell.receipts TO postbell_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON postbell.routes TO postbell_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON postbell.settlements TO postbell_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON postbell.supersessions TO postbell_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON postbell.tenant_routes TO postbell_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_all ON postbell.tenants TO postbell_owner USING (true) WITH CHECK (true);

CREATE POLICY producer_ids ON postbell.outbox FOR SELECT TO postbell_producer USING ((tenant_id = ( SELECT COALESCE(postbell.reader_tenant(), postbell.session_tenant()) AS "coalesce")));

CREATE POLICY producer_insert ON postbell.outbox FOR INSERT TO postbell_producer WITH CHECK ((tenant_id = ( SELECT postbell.session_tenant() AS session_tenant)));

ALTER TABLE postbell.queue ENABLE ROW LEVEL SECURITY;

CREATE POLICY reader_routes ON postbell.routes FOR SELECT TO postbell_reader USING (((( SELECT postbell.reader_tenant() AS reader_tenant) IS NULL) OR (route_no = 0) OR (route_no IN ( SELECT t.route_no
   FROM postbell.tenant_routes t
  WHERE (t.tenant_id = ( SELECT postbell.reader_tenant() AS reader_tenant))))));

CREATE POLICY reader_tenant ON postbell.acknowledgements FOR SELECT TO postbell_reader USING (((( SELECT postbell.reader_tenant() AS reader_tenant) IS NULL) OR (tenant_id = ( SELECT postbell.reader_tenant() AS reader_tenant))));

CREATE POLICY reader_tenant ON postbell.deliveries FOR SELECT TO postbell_reader USING (((( SELECT postbell.reader_tenant_no() AS reader_tenant_no) IS NULL) OR (tenant_no = ( SELECT postbell.reader_tenant_no() AS reader_tenant_no))));

CREATE POLICY reader_tenant ON postbell.devices FOR SELECT TO postbell_reader USING (((( SELECT postbell.reader_tenant() AS reader_tenant) IS NULL) OR (tenant_id = ( SELECT postbell.reader_tenant() AS reader_tenant))));

CREATE POLICY reader_tenant ON postbell.erasures FOR SELECT TO postbell_reader USING (((( SELECT postbell.reader_tenant() AS reader_tenant) IS NULL) OR (tenant_id = ( SELECT postbell.reader_tenant() AS reader_tenant))));

CREATE POLICY reader_tenant ON postbell.events FOR SELECT TO postbell_reader USING (((( SELECT postbell.reader_tenant() AS reader_tenant) IS NULL) OR (tenant_id = ( SELECT postbell.reader_tenant() AS reader_tenant))));

CREATE POLICY reader_tenant ON postbell.outbox FOR SELECT TO postbell_reader USING (((( SELECT postbell.reader_tenant() AS reader_tenant) IS NULL) OR (tenant_id = ( SELECT postbell.reader_tenant() AS reader_tenant))));

CREATE POLICY reader_tenant ON postbell.queue FOR SELECT TO postbell_reader USING (((( SELECT postbell.reader_tenant_no() AS reader_tenant_no) IS NULL) OR (tenant_no = ( SELECT postbell.reader_tenant_no() AS reader_tenant_no))));

CREATE POLICY reader_tenant ON postbell.receipts FOR SELECT TO postbell_reader USING (((( SELECT postbell.reader_tenant() AS reader_tenant) IS NULL) OR (tenant_id = ( SELECT postbell.reader_tenant() AS reader_tenant))));

CREATE POLICY reader_tenant ON postbell.settlements FOR SELECT TO postbell_reader USING (((( SELECT postbell.reader_tenant_no() AS reader_tenant_no) IS NULL) OR (tenant_no = ( SELECT postbell.reader_tenant_no() AS reader_tenant_no))));

CREATE POLICY reader_tenant ON postbell.supersessions FOR SELECT TO postbell_reader USING (((( SELECT postbell.reader_tenant() AS reader_tenant) IS NULL) OR (tenant_id = ( SELECT postbell.reader_tenant() AS reader_tenant))));

CREATE POLICY reader_tenant ON postbell.tenant_routes FOR SELECT TO postbell_reader USING (((( SELECT postbell.reader_tenant() AS reader_tenant) IS NULL) OR (tenant_id = ( SELECT postbell.reader_tenant() AS reader_tenant))));

CREATE POLICY reader_tenant ON postbell.tenants FOR SELECT TO postbell_reader USING (((( SELECT postbell.reader_tenant() AS reader_tenant) IS NULL) OR (tenant_id = ( SELECT postbell.reader_tenant() AS reader_tenant))));

ALTER TABLE postbell.receipts ENABLE ROW LEVEL SECURITY;

ALTER TABLE postbell.routes ENABLE ROW LEVEL SECURITY;

ALTER TABLE postbell.settlements ENABLE ROW LEVEL SECURITY;

ALTER TABLE postbell.supersessions ENABLE ROW LEVEL SECURITY;

ALTER TABLE postbell.tenant_routes ENABLE ROW LEVEL SECURITY;

ALTER TABLE postbell.tenants ENABLE ROW LEVEL SECURITY;

GRANT USAGE ON SCHEMA postbell TO postbell_producer;
GRANT USAGE ON SCHEMA postbell TO postbell_registrar;
GRANT USAGE ON SCHEMA postbell TO postbell_dispatcher;
GRANT USAGE ON SCHEMA postbell TO postbell_reader;
GRANT USAGE ON SCHEMA postbell TO postbell_operator;

REVOKE ALL ON FUNCTION postbell.acknowledge(id uuid, principal text) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.acknowledge(id uuid, principal text) TO postbell_registrar;

REVOKE ALL ON FUNCTION postbell.acts_for(principal text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.ask_hook(kind text, purpose text, ids uuid[]) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.ask_hook(kind text, purpose text, ids uuid[]) TO postbell_dispatcher;

REVOKE ALL ON FUNCTION postbell.assign_namespace(role name, namespace text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.audit(since timestamp with time zone, grace interval) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.audit(since timestamp with time zone, grace interval) TO postbell_dispatcher;
GRANT ALL ON FUNCTION postbell.audit(since timestamp with time zone, grace interval) TO postbell_reader;

REVOKE ALL ON FUNCTION postbell.audit_ledger(since timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.audit_registry(since timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.audit_scope(since timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.audit_scope(since timestamp with time zone) TO postbell_dispatcher;
GRANT ALL ON FUNCTION postbell.audit_scope(since timestamp with time zone) TO postbell_reader;

REVOKE ALL ON FUNCTION postbell.audit_work(since timestamp with time zone, grace interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.awake_class() FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.awake_class() TO postbell_dispatcher;

REVOKE ALL ON FUNCTION postbell.bounded_payload(payload text, presentation text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.cancel(id uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.cancel(id uuid) TO postbell_operator;

GRANT SELECT ON TABLE postbell.codes TO postbell_reader;

REVOKE ALL ON FUNCTION postbell.code_entry(entry postbell.codes) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.code_fault(content jsonb, keys jsonb, lacks_extension boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.codes_fault(codes jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.confined_tenant() FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.content_bytes(presentation text, content jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.content_fault(presentation text, content jsonb, keys jsonb, lacks_extension boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.create_partitions(days_ahead integer, lock_limit text) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.create_partitions(days_ahead integer, lock_limit text) TO postbell_dispatcher;

REVOKE ALL ON FUNCTION postbell.define_kind(name text, presentation text, payload jsonb, content jsonb, apps text[], producers name[], urgency text, priority smallint, push_type text, grace interval, wait_for_device interval, max_age interval, provider_ttl interval, retry text, collapse text, interruption_level text, category text, sound text, group_by_thread boolean, mutable_content boolean, ends_when_seen boolean, enabled boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.device_activate(device_id uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.device_activate(device_id uuid) TO postbell_registrar;

REVOKE ALL ON FUNCTION postbell.device_delete(device_id uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.device_delete(device_id uuid) TO postbell_registrar;

REVOKE ALL ON FUNCTION postbell.device_effects(device_numbers bigint[], sequences integer[], effects smallint[], fences timestamp with time zone[], notifications uuid[], max_failures integer, OUT ordinal smallint, OUT state smallint) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.device_effects(device_numbers bigint[], sequences integer[], effects smallint[], fences timestamp with time zone[], notifications uuid[], max_failures integer, OUT ordinal smallint, OUT state smallint) TO postbell_dispatcher;

GRANT SELECT(device_no) ON TABLE postbell.devices TO postbell_dispatcher;
GRANT SELECT(device_no) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(id) ON TABLE postbell.devices TO postbell_dispatcher;
GRANT SELECT(id) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(token_registered_at) ON TABLE postbell.devices TO postbell_dispatcher;
GRANT SELECT(token_registered_at) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(success_due_at) ON TABLE postbell.devices TO postbell_dispatcher;
GRANT SELECT(success_due_at) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(rerouted_at) ON TABLE postbell.devices TO postbell_dispatcher;
GRANT SELECT(rerouted_at) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(last_success_at) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(last_seen_at) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(push_token_updated_at) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(push_token_invalidated_at) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(created_at) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(updated_at) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(token_seq) ON TABLE postbell.devices TO postbell_dispatcher;
GRANT SELECT(token_seq) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(fingerprint) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(failure_count) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(route_no) ON TABLE postbell.devices TO postbell_dispatcher;
GRANT SELECT(route_no) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(tenant_id) ON TABLE postbell.devices TO postbell_dispatcher;
GRANT SELECT(tenant_id) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(principal_id) ON TABLE postbell.devices TO postbell_dispatcher;
GRANT SELECT(principal_id) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(client_device_id) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(provider) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(environment) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(app) ON TABLE postbell.devices TO postbell_dispatcher;
GRANT SELECT(app) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(token) ON TABLE postbell.devices TO postbell_dispatcher;

GRANT SELECT(status) ON TABLE postbell.devices TO postbell_dispatcher;
GRANT SELECT(status) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(disabled_reason) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(muted_kinds) ON TABLE postbell.devices TO postbell_dispatcher;
GRANT SELECT(muted_kinds) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(name) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(kind) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(platform) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(device_ref) ON TABLE postbell.devices TO postbell_reader;

GRANT SELECT(session_ref) ON TABLE postbell.devices TO postbell_reader;

REVOKE ALL ON FUNCTION postbell.device_event(device postbell.devices, name text, key text, detail jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.fingerprint_text(fingerprint integer) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.fingerprint_text(fingerprint integer) TO postbell_reader;

REVOKE ALL ON FUNCTION postbell.device_get(device_id uuid, principal_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.device_get(device_id uuid, principal_id text) TO postbell_registrar;

REVOKE ALL ON FUNCTION postbell.device_joins(device postbell.devices) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.device_list(principal_id text, after text, max_rows integer) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.device_list(principal_id text, after text, max_rows integer) TO postbell_registrar;

REVOKE ALL ON FUNCTION postbell.device_mute(device_id uuid, kinds text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.device_mute(device_id uuid, kinds text[]) TO postbell_registrar;

REVOKE ALL ON FUNCTION postbell.device_outcomes(notification uuid) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.device_register(principal_id text, client_device_id text, provider text, app text, token text, environment text, name text, kind text, platform text, device_ref text, session_ref text, pending boolean, idempotency_key text, OUT device_id uuid, OUT device_status text, OUT token_fingerprint text) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.device_register(principal_id text, client_device_id text, provider text, app text, token text, environment text, name text, kind text, platform text, device_ref text, session_ref text, pending boolean, idempotency_key text, OUT device_id uuid, OUT device_status text, OUT token_fingerprint text) TO postbell_registrar;

REVOKE ALL ON FUNCTION postbell.device_revoke(device_id uuid, device_ref text, session_ref text, principal_id text, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.device_revoke(device_id uuid, device_ref text, session_ref text, principal_id text, reason text) TO postbell_registrar;

REVOKE ALL ON FUNCTION postbell.device_test(device_id uuid, idempotency_key text) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.device_test(device_id uuid, idempotency_key text) TO postbell_registrar;

REVOKE ALL ON FUNCTION postbell.devices_import(rows jsonb, all_or_nothing boolean, OUT registered integer, OUT updated integer, OUT unchanged integer, OUT kept integer, OUT refused integer, OUT faults jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.devices_import(rows jsonb, all_or_nothing boolean, OUT registered integer, OUT updated integer, OUT unchanged integer, OUT kept integer, OUT refused integer, OUT faults jsonb) TO postbell_registrar;

REVOKE ALL ON FUNCTION postbell.drop_kind(name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.drop_ledger_day() FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.drop_ledger_day() TO postbell_dispatcher;
GRANT ALL ON FUNCTION postbell.drop_ledger_day() TO postbell_operator;

REVOKE ALL ON FUNCTION postbell.empty_notifications(tenant text, principal text, row_limit integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.enqueue(kind text, principal_id text, dedupe_key text, payload text, subject text, thread text, tenant_id text, device_id uuid, except_device_id uuid, urgency text, collapse_key text, not_before timestamp with time zone, expires_at timestamp with time zone, silent boolean, badge integer) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.enqueue(kind text, principal_id text, dedupe_key text, payload text, subject text, thread text, tenant_id text, device_id uuid, except_device_id uuid, urgency text, collapse_key text, not_before timestamp with time zone, expires_at timestamp with time zone, silent boolean, badge integer) TO postbell_producer;

REVOKE ALL ON FUNCTION postbell.enqueue_or_note(kind text, principal_id text, dedupe_key text, payload text, subject text, thread text, tenant_id text, device_id uuid, except_device_id uuid, urgency text, collapse_key text, not_before timestamp with time zone, expires_at timestamp with time zone, silent boolean, badge integer) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.enqueue_or_note(kind text, principal_id text, dedupe_key text, payload text, subject text, thread text, tenant_id text, device_id uuid, except_device_id uuid, urgency text, collapse_key text, not_before timestamp with time zone, expires_at timestamp with time zone, silent boolean, badge integer) TO postbell_producer;

REVOKE ALL ON FUNCTION postbell.erase(tenant text, thread text) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.erase(tenant text, thread text) TO postbell_producer;

REVOKE ALL ON FUNCTION postbell.forget(principal text, max_rows integer) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.forget(principal text, max_rows integer) TO postbell_registrar;

REVOKE ALL ON FUNCTION postbell.forget_rows(tenant text, principal text, row_limit integer, OUT devices integer, OUT notifications integer, OUT others integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.forget_tenant(tenant text, max_rows integer) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.forget_tenant(tenant text, max_rows integer) TO postbell_operator;

REVOKE ALL ON FUNCTION postbell.forgotten_event(tenant text, name text, devices integer, notifications integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.heartbeat_limit() FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.heartbeat_limit() TO postbell_dispatcher;
GRANT ALL ON FUNCTION postbell.heartbeat_limit() TO postbell_reader;

REVOKE ALL ON FUNCTION postbell.holds_credential(value text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.hook_fault(function oid) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.hook_fault(function oid) TO postbell_dispatcher;

REVOKE ALL ON FUNCTION postbell.hook_faults() FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.hook_faults() TO postbell_dispatcher;

REVOKE ALL ON FUNCTION postbell.hook_function(function_schema name, function_name name) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.hook_function(function_schema name, function_name name) TO postbell_dispatcher;

REVOKE ALL ON FUNCTION postbell.idempotency_period() FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.import_devices(tenant text, given postbell.import_row) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.inbox(principal text, before uuid, max_rows integer) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.inbox(principal text, before uuid, max_rows integer) TO postbell_registrar;

REVOKE ALL ON FUNCTION postbell.install_codes(codes jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.install_codes(codes jsonb) TO postbell_producer;

REVOKE ALL ON FUNCTION postbell.is_faulty(payload text, presentation text, keys jsonb, required text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.is_json_object(value text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.is_name(value text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.is_reason(reason text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.is_served(provider text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.is_slug(value text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.is_uuid(value text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.judge_import(tenant text, given postbell.import_row[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.keyed_fingerprint(secret bytea, token text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.kinds_keep_open() FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.kinds_warn_of_size() FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.labels_fault(labels jsonb, keys jsonb) FROM PUBLIC;

GRANT SELECT ON TABLE postbell.kinds TO postbell_dispatcher;
GRANT SELECT ON TABLE postbell.kinds TO postbell_reader;

REVOKE ALL ON FUNCTION postbell.largest_bytes(kind postbell.kinds, OUT apns integer, OUT fcm integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.largest_members(members jsonb, keys jsonb, texts jsonb, is_fcm boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.largest_text(presentation text, value jsonb, keys jsonb, labels jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.leaf_fault(presentation text, place text, leaf text, keys jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.lock_registrations(tenant text, principal text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.mapping() FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.mapping() TO postbell_producer;
GRANT ALL ON FUNCTION postbell.mapping() TO postbell_registrar;
GRANT ALL ON FUNCTION postbell.mapping() TO postbell_dispatcher;
GRANT ALL ON FUNCTION postbell.mapping() TO postbell_reader;

REVOKE ALL ON FUNCTION postbell.mapping_entries() FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.mapping_entries() TO postbell_producer;
GRANT ALL ON FUNCTION postbell.mapping_entries() TO postbell_registrar;
GRANT ALL ON FUNCTION postbell.mapping_entries() TO postbell_dispatcher;
GRANT ALL ON FUNCTION postbell.mapping_entries() TO postbell_reader;

REVOKE ALL ON FUNCTION postbell.mapping_version() FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.mapping_version() TO postbell_producer;
GRANT ALL ON FUNCTION postbell.mapping_version() TO postbell_registrar;
GRANT ALL ON FUNCTION postbell.mapping_version() TO postbell_dispatcher;
GRANT ALL ON FUNCTION postbell.mapping_version() TO postbell_reader;

REVOKE ALL ON FUNCTION postbell.members_fault(place text, members jsonb, keys jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.moment(value text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.normal_token(provider text, token text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.note_enqueue_failure(principal text, kind text, state text, message text) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.note_enqueue_failure(principal text, kind text, state text, message text) TO postbell_producer;

REVOKE ALL ON FUNCTION postbell.open_of_kinds(kinds integer[]) FROM PUBLIC;

GRANT SELECT ON TABLE postbell.outbox TO postbell_dispatcher;

GRANT SELECT(id) ON TABLE postbell.outbox TO postbell_producer;
GRANT SELECT(id) ON TABLE postbell.outbox TO postbell_reader;

GRANT SELECT(created_at) ON TABLE postbell.outbox TO postbell_reader;

GRANT SELECT(planned_at) ON TABLE postbell.outbox TO postbell_reader;

GRANT INSERT(not_before) ON TABLE postbell.outbox TO postbell_producer;
GRANT SELECT(not_before) ON TABLE postbell.outbox TO postbell_reader;

GRANT INSERT(expires_at) ON TABLE postbell.outbox TO postbell_producer;
GRANT SELECT(expires_at) ON TABLE postbell.outbox TO postbell_reader;

GRANT SELECT(kind_no) ON TABLE postbell.outbox TO postbell_reader;

GRANT SELECT(tenant_no) ON TABLE postbell.outbox TO postbell_reader;

GRANT SELECT(device_no) ON TABLE postbell.outbox TO postbell_reader;

GRANT SELECT(except_device_no) ON TABLE postbell.outbox TO postbell_reader;

GRANT INSERT(badge) ON TABLE postbell.outbox TO postbell_producer;
GRANT SELECT(badge) ON TABLE postbell.outbox TO postbell_reader;

GRANT INSERT(silent) ON TABLE postbell.outbox TO postbell_producer;
GRANT SELECT(silent) ON TABLE postbell.outbox TO postbell_reader;

GRANT INSERT(tenant_id) ON TABLE postbell.outbox TO postbell_producer;
GRANT SELECT(tenant_id) ON TABLE postbell.outbox TO postbell_reader;

GRANT INSERT(principal_id) ON TABLE postbell.outbox TO postbell_producer;
GRANT SELECT(principal_id) ON TABLE postbell.outbox TO postbell_reader;

GRANT INSERT(kind) ON TABLE postbell.outbox TO postbell_producer;
GRANT SELECT(kind) ON TABLE postbell.outbox TO postbell_reader;

GRANT INSERT(dedupe_key) ON TABLE postbell.outbox TO postbell_producer;
GRANT SELECT(dedupe_key) ON TABLE postbell.outbox TO postbell_reader;

GRANT INSERT(subject) ON TABLE postbell.outbox TO postbell_producer;
GRANT SELECT(subject) ON TABLE postbell.outbox TO postbell_reader;

GRANT INSERT(thread) ON TABLE postbell.outbox TO postbell_producer;
GRANT SELECT(thread) ON TABLE postbell.outbox TO postbell_reader;

GRANT INSERT(collapse_key) ON TABLE postbell.outbox TO postbell_producer;
GRANT SELECT(collapse_key) ON TABLE postbell.outbox TO postbell_reader;

GRANT INSERT(urgency) ON TABLE postbell.outbox TO postbell_producer;
GRANT SELECT(urgency) ON TABLE postbell.outbox TO postbell_reader;

GRANT INSERT(device_id) ON TABLE postbell.outbox TO postbell_producer;
GRANT SELECT(device_id) ON TABLE postbell.outbox TO postbell_reader;

GRANT INSERT(except_device_id) ON TABLE postbell.outbox TO postbell_producer;
GRANT SELECT(except_device_id) ON TABLE postbell.outbox TO postbell_reader;

GRANT SELECT(predecessor) ON TABLE postbell.outbox TO postbell_reader;

GRANT SELECT(routes) ON TABLE postbell.outbox TO postbell_reader;

GRANT INSERT(payload) ON TABLE postbell.outbox TO postbell_producer;

REVOKE ALL ON FUNCTION postbell.operator_event(notification postbell.outbox, name text, detail jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.operator_tenant() FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.operator_tenant() TO postbell_dispatcher;
GRANT ALL ON FUNCTION postbell.operator_tenant() TO postbell_reader;

REVOKE ALL ON FUNCTION postbell.outbox_defaults() FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.outbox_enqueue() FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.outcome_name(code smallint) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.outcome_name(code smallint) TO postbell_dispatcher;
GRANT ALL ON FUNCTION postbell.outcome_name(code smallint) TO postbell_reader;

REVOKE ALL ON FUNCTION postbell.own_namespace() FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.payload_fault(payload text, presentation text, keys jsonb, required text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.payload_fits(payload text, keys jsonb, names text[], required text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.payload_type(declared text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.payload_value_fits(declared jsonb, form text, content text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.prune_idempotency_keys(row_limit integer) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.prune_idempotency_keys(row_limit integer) TO postbell_dispatcher;

REVOKE ALL ON FUNCTION postbell.push_type_fault(push_type text, priority integer, presentation text, content jsonb, category text, sound text, interruption_level text, mutable_content boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.quiet_period() FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.read_import(rows jsonb, reading timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.reader_tenant() FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.reader_tenant() TO postbell_producer;
GRANT ALL ON FUNCTION postbell.reader_tenant() TO postbell_reader;

REVOKE ALL ON FUNCTION postbell.reader_tenant_no() FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.reader_tenant_no() TO postbell_dispatcher;
GRANT ALL ON FUNCTION postbell.reader_tenant_no() TO postbell_reader;

REVOKE ALL ON FUNCTION postbell.recover(known_at timestamp with time zone, healthy_since timestamp with time zone, lease_limit integer, max_crashes integer, worker_no integer, OUT batch uuid, OUT route_no smallint, OUT items integer, OUT unknowns integer, OUT set_aside integer) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.recover(known_at timestamp with time zone, healthy_since timestamp with time zone, lease_limit integer, max_crashes integer, worker_no integer, OUT batch uuid, OUT route_no smallint, OUT items integer, OUT unknowns integer, OUT set_aside integer) TO postbell_dispatcher;

REVOKE ALL ON FUNCTION postbell.refuse(code text, detail text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.refuse_confined() FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.refuse_foreign_fact(tenant text, what text, value text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.refuse_payload(payload text, number integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.refuse_retention(detail text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.registration_detail(code text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.registration_fault(principal_id text, client_device_id text, provider text, app text, token text, environment text, name text, kind text, platform text, device_ref text, session_ref text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.remove_notifications(tenant text, principal text, row_limit integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.replace_registration(device_number bigint, reading timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.request_hash(request text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.requeue(id uuid, expires_at timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.requeue(id uuid, expires_at timestamp with time zone) TO postbell_operator;

REVOKE ALL ON FUNCTION postbell.retain(row_limit integer, OUT table_name text, OUT removed bigint, OUT is_behind boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.retain(row_limit integer, OUT table_name text, OUT removed bigint, OUT is_behind boolean) TO postbell_dispatcher;
GRANT ALL ON FUNCTION postbell.retain(row_limit integer, OUT table_name text, OUT removed bigint, OUT is_behind boolean) TO postbell_operator;

REVOKE ALL ON FUNCTION postbell.retain_appended(policy text, cutoff timestamp with time zone, row_limit integer, OUT removed bigint, OUT is_behind boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.retain_outbox(cutoff timestamp with time zone, row_limit integer, OUT removed bigint, OUT is_behind boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.retain_walked(policy text, time_column text, cutoff timestamp with time zone, OUT removed bigint, OUT is_behind boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.retained_since() FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.retry_held(route_nos smallint[], row_limit integer) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.retry_held(route_nos smallint[], row_limit integer) TO postbell_dispatcher;

REVOKE ALL ON FUNCTION postbell.route_number(tenant text, provider text, environment text, app text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.safe_payload(kind text, payload text, visible jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.safe_text(value text, length integer, replacement text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.session_tenant() FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.session_tenant() TO postbell_producer;

REVOKE ALL ON FUNCTION postbell.set_hook(kind text, purpose text, function regprocedure, timeout interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.set_instance(tenant text, instance text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.set_retention(table_name text, keep interval) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.set_retention(table_name text, keep interval) TO postbell_operator;

REVOKE ALL ON FUNCTION postbell.size_warning(kind postbell.kinds) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.status_rank(status text) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.status_rank(status text) TO postbell_reader;

REVOKE ALL ON FUNCTION postbell.store_import(tenant text, stored postbell.import_row[], reading timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.store_registration(wanted postbell.devices, reading timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.supersede(tenant text, subject text) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.supersede(tenant text, subject text) TO postbell_producer;

REVOKE ALL ON FUNCTION postbell.sync(principal text, delivered uuid[], seen text[], query uuid[], OUT obsolete uuid[], OUT unread uuid[]) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.sync(principal text, delivered uuid[], seen text[], query uuid[], OUT obsolete uuid[], OUT unread uuid[]) TO postbell_registrar;

REVOKE ALL ON FUNCTION postbell.take_tokens(device_numbers bigint[], reading timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.target_status(outcome smallint, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.target_status(outcome smallint, reason text) TO postbell_reader;

REVOKE ALL ON FUNCTION postbell.tenant_number(tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.text_bytes(presentation text, value jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.text_fault(presentation text, place text, value jsonb, keys jsonb, depth integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.token_fingerprint(token text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.uninstall_codes() FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.uninstall_codes() TO postbell_producer;

REVOKE ALL ON FUNCTION postbell.uses_own_value(content jsonb, name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.uuid7(at timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.uuid7(at timestamp with time zone) TO postbell_dispatcher;

REVOKE ALL ON FUNCTION postbell.uuid_floor(at timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.uuid_floor(at timestamp with time zone) TO postbell_dispatcher;
GRANT ALL ON FUNCTION postbell.uuid_floor(at timestamp with time zone) TO postbell_reader;

REVOKE ALL ON FUNCTION postbell.value_bytes(declared jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.visible_fault(presentation text, visible jsonb, keys jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.visible_keys(content jsonb, keys jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.visible_text(value text) FROM PUBLIC;

REVOKE ALL ON FUNCTION postbell.wake(woken smallint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION postbell.wake(woken smallint[]) TO postbell_dispatcher;

GRANT SELECT ON TABLE postbell.acknowledgements TO postbell_reader;

GRANT SELECT,INSERT ON TABLE postbell.deliveries TO postbell_dispatcher;
GRANT SELECT ON TABLE postbell.deliveries TO postbell_reader;

GRANT SELECT ON TABLE postbell.erasures TO postbell_dispatcher;
GRANT SELECT ON TABLE postbell.erasures TO postbell_reader;

GRANT SELECT ON TABLE postbell.events TO postbell_reader;

GRANT SELECT,INSERT ON TABLE postbell.workers TO postbell_dispatcher;
GRANT SELECT ON TABLE postbell.workers TO postbell_reader;

GRANT UPDATE(name) ON TABLE postbell.workers TO postbell_dispatcher;

GRANT UPDATE(version) ON TABLE postbell.workers TO postbell_dispatcher;

GRANT UPDATE(routes) ON TABLE postbell.workers TO postbell_dispatcher;

GRANT UPDATE(lanes) ON TABLE postbell.workers TO postbell_dispatcher;

GRANT UPDATE(heartbeat_at) ON TABLE postbell.workers TO postbell_dispatcher;

GRANT UPDATE(stopped_at) ON TABLE postbell.workers TO postbell_dispatcher;

GRANT UPDATE(hooks) ON TABLE postbell.workers TO postbell_dispatcher;

GRANT SELECT ON TABLE postbell.hook_health TO postbell_dispatcher;
GRANT SELECT ON TABLE postbell.hook_health TO postbell_reader;

GRANT SELECT ON TABLE postbell.hooks TO postbell_dispatcher;
GRANT SELECT ON TABLE postbell.hooks TO postbell_reader;

GRANT SELECT,INSERT,DELETE ON TABLE postbell.leases TO postbell_dispatcher;

GRANT UPDATE(until) ON TABLE postbell.leases TO postbell_dispatcher;

GRANT UPDATE(open) ON TABLE postbell.leases TO postbell_dispatcher;

GRANT SELECT ON TABLE postbell.lease_positions TO postbell_dispatcher;
GRANT SELECT ON TABLE postbell.lease_positions TO postbell_reader;

GRANT SELECT ON TABLE postbell.routes TO postbell_dispatcher;
GRANT SELECT ON TABLE postbell.routes TO postbell_reader;

GRANT SELECT ON TABLE postbell.in_flight TO postbell_reader;

GRANT SELECT ON TABLE postbell.worker_health TO postbell_dispatcher;
GRANT SELECT ON TABLE postbell.worker_health TO postbell_reader;

GRANT SELECT ON TABLE postbell.lane_health TO postbell_dispatcher;
GRANT SELECT ON TABLE postbell.lane_health TO postbell_reader;

GRANT SELECT ON TABLE postbell.tenants TO postbell_dispatcher;
GRANT SELECT ON TABLE postbell.tenants TO postbell_reader;

GRANT SELECT ON TABLE postbell.ledger TO postbell_reader;

GRANT SELECT ON TABLE postbell.namespaces TO postbell_reader;

GRANT SELECT,INSERT,DELETE ON TABLE postbell.queue TO postbell_dispatcher;
GRANT SELECT ON TABLE postbell.queue TO postbell_reader;

GRANT UPDATE(attempt) ON TABLE postbell.queue TO postbell_dispatcher;

GRANT SELECT ON TABLE postbell.settlements TO postbell_dispatcher;
GRANT SELECT ON TABLE postbell.settlements TO postbell_reader;

GRANT INSERT(notification_id) ON TABLE postbell.settlements TO postbell_dispatcher;

GRANT INSERT(tenant_no) ON TABLE postbell.settlements TO postbell_dispatcher;

GRANT INSERT(route_no) ON TABLE postbell.settlements TO postbell_dispatcher;

GRANT INSERT(status) ON TABLE postbell.settlements TO postbell_dispatcher;

GRANT INSERT(reason) ON TABLE postbell.settlements TO postbell_dispatcher;

GRANT SELECT ON TABLE postbell.target_ends TO postbell_reader;

GRANT SELECT ON TABLE postbell.notifications TO postbell_reader;

GRANT SELECT ON TABLE postbell.places TO postbell_reader;

GRANT SELECT ON TABLE postbell.queue_depth TO postbell_reader;

GRANT SELECT ON TABLE postbell.receipts TO postbell_dispatcher;
GRANT SELECT ON TABLE postbell.receipts TO postbell_reader;

GRANT SELECT ON TABLE postbell.retention TO postbell_reader;

GRANT SELECT ON TABLE postbell.route_service TO postbell_dispatcher;
GRANT SELECT ON TABLE postbell.route_service TO postbell_reader;

GRANT SELECT ON TABLE postbell.schema_migrations TO postbell_dispatcher;
GRANT SELECT ON TABLE postbell.schema_migrations TO postbell_reader;

GRANT SELECT ON TABLE postbell.settings TO postbell_dispatcher;
GRANT SELECT ON TABLE postbell.settings TO postbell_reader;

GRANT SELECT ON TABLE postbell.supersessions TO postbell_dispatcher;
GRANT SELECT ON TABLE postbell.supersessions TO postbell_reader;

GRANT SELECT ON TABLE postbell.tenant_routes TO postbell_reader;
