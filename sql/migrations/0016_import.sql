-- Postbell 0016: the test of a device, and the import of a registry of devices.
--
-- Locks: none on existing tables.
-- Older workers: may run on; nothing they read changes.
-- Runs in one transaction that the caller opens.

SET LOCAL ROLE postbell_owner;

-- The kind of it comes with the schema, and is for those who may test. A catalog may declare it anew, with a payload
-- that may be empty. It is of no use to anybody later, so it is given up after ten minutes.
SELECT postbell.define_kind(
    'test', 'template', content => '{"title": "Test notification"}', max_age => '10 min',
    producers => '{postbell_owner,postbell_registrar}');

-- Enqueues a test notification to one device and answers its id; the same id for the same idempotency key. Null when
-- the kind or the instance is switched off.
CREATE FUNCTION postbell.device_test(device_id uuid, idempotency_key text DEFAULT NULL) RETURNS uuid
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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

-- A row of an import: what was given, normalised, and what becomes of it.
CREATE TYPE postbell.import_row AS (
    place            bigint,       -- in the call, from 1
    line             bigint,       -- in the caller's file; the place where it is not said
    principal_id     text,
    client_device_id text,
    provider         text,
    app              text,
    token            text,
    environment      text,
    name             text,
    kind             text,
    platform         text,
    device_ref       text,
    session_ref      text,
    known_at         timestamptz,  -- when the token was registered, as far as the caller knows
    fault            text,         -- why it is refused: a code
    device_no        bigint,       -- the device of this tenant that it is about
    holder           bigint,       -- another one that has the token, whoever's it is
    older            bigint[],     -- those of this tenant whose registrations it replaces
    route_no         smallint,
    fingerprint      int,
    verdict          text          -- new, changed, unchanged or kept
);

-- The rows of a call, normalised and judged by themselves and against each other: by the rules of a registration, and
-- one after the other as registrations would come, so of several about one device, token or installation the last
-- counts.
CREATE FUNCTION postbell.read_import(rows jsonb, reading timestamptz) RETURNS SETOF postbell.import_row
LANGUAGE sql STABLE AS $$
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
$$;

-- The devices that a good row is about: its own, another one that has its token, whoever's it is, and those of its
-- tenant whose registrations it replaces. Looked up row by row: as joins these could become walks through the registry.
CREATE FUNCTION postbell.import_devices(tenant text, given postbell.import_row)
RETURNS TABLE (device_no bigint, holder bigint, older bigint[])
LANGUAGE sql STABLE AS $$
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

-- What becomes of rows beside what the registry has. It is the registry of a back end that speaks, not the device: what
-- was heard here from a device of this tenant, or became of it, after the row's own time is kept. A row that does not
-- say its time is older than all that, and as old as another such row. Of other tenants nothing is asked, so nothing is
-- told.
CREATE FUNCTION postbell.judge_import(tenant text, given postbell.import_row[]) RETURNS SETOF postbell.import_row
LANGUAGE sql STABLE AS $$
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

-- Stores rows that were judged as new or changed.
CREATE FUNCTION postbell.store_import(tenant text, stored postbell.import_row[], reading timestamptz) RETURNS void
LANGUAGE sql VOLATILE AS $$
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

-- Takes up to 100,000 rows of an existing registry for the session's tenant: an array of flat objects whose keys are
-- arguments of device_register, and `line` and `registered_at` where they are known. Bad rows are answered in `faults`,
-- an array of {line, code}; with `all_or_nothing` a single one means that nothing is stored. The same call again finds
-- everything unchanged. One event for all that is stored. The planner is kept from walks through the registry, and
-- plans anew for each call, because a registry that is being imported is no longer what it was.
CREATE FUNCTION postbell.devices_import(
    rows           jsonb,
    all_or_nothing boolean DEFAULT false,
    OUT registered int,
    OUT updated    int,
    OUT unchanged  int,
    OUT kept       int,
    OUT refused    int,
    OUT faults     jsonb
)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
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

REVOKE ALL ON FUNCTION
    postbell.device_test(uuid, text), postbell.devices_import(jsonb, boolean), postbell.read_import(jsonb, timestamptz),
    postbell.import_devices(text, postbell.import_row), postbell.judge_import(text, postbell.import_row[]),
    postbell.store_import(text, postbell.import_row[], timestamptz)
FROM PUBLIC;
GRANT EXECUTE ON FUNCTION postbell.device_test(uuid, text), postbell.devices_import(jsonb, boolean)
TO postbell_registrar;

RESET ROLE;
