-- Postbell 0002: ids, tenants, and the catalog of kinds.
--
-- Locks: none on existing tables.
-- Older workers: may run on; nothing they read changes.
-- Runs in one transaction that the caller opens.

SET LOCAL ROLE postbell_owner;

-- ---------------------------------------------------------------------------------------------------------------------
-- Time-ordered ids (RFC 9562, version 7). The twelve bits after the version hold the fraction of the millisecond, so
-- ids of one millisecond still sort by time; the last eight bytes are those of a random UUID, with its variant.

CREATE FUNCTION postbell.uuid7(at timestamptz DEFAULT pg_catalog.clock_timestamp()) RETURNS uuid
LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
    -- one expression without FROM, which the planner puts in the caller's place
    SELECT pg_catalog.encode(
        pg_catalog.int8send(
            (((pg_catalog.date_part('epoch', at) * 1000000)::bigint / 1000) << 16)
                | 28672
                | (((pg_catalog.date_part('epoch', at) * 1000000)::bigint % 1000) * 4096 / 1000))
            || pg_catalog.substring(pg_catalog.uuid_send(pg_catalog.gen_random_uuid()), 9),
        'hex')::uuid
$$;

-- The smallest id of a millisecond: bounds of partitions, and pruning.
CREATE FUNCTION postbell.uuid_floor(at timestamptz) RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT pg_catalog.encode(
        pg_catalog.int8send(pg_catalog.floor(pg_catalog.date_part(
            'epoch', least(greatest(at, '1970-01-01+00'), '9999-12-31+00')) * 1000)::bigint << 16)
            || '\x0000000000000000'::bytea,
        'hex')::uuid
$$;

-- The tenant of this session: `postbell.tenant_id`, else `default`; a login in role_tenants names its own only.
CREATE FUNCTION postbell.session_tenant() RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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

-- For people who look at everything: the tenant that was named, or null for all. A confined login always has one; if
-- it named none of its own, '', which is nobody's: a policy that raised would do so where there is a row to be refused.
CREATE FUNCTION postbell.reader_tenant() RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN CASE WHEN nullif(current_setting('postbell.tenant_id', true), '') IS NOT NULL
            OR EXISTS (SELECT 1 FROM postbell.role_tenants r WHERE r.role_name = SESSION_USER)
        THEN postbell.session_tenant() END;
EXCEPTION WHEN SQLSTATE 'PB005' THEN
    RETURN '';
END
$$;

-- The same as a number; -1 for a tenant that has nothing yet.
CREATE FUNCTION postbell.reader_tenant_no() RETURNS int
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN postbell.reader_tenant() IS NOT NULL THEN
        coalesce((SELECT t.tenant_no FROM postbell.tenants t WHERE t.tenant_id = postbell.reader_tenant()), -1)
    END
$$;

-- Ids from outside: 1 to 200 printable ASCII characters. Null for null. A bounded repetition would have 200 states.
CREATE FUNCTION postbell.is_name(value text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT pg_catalog.octet_length(value) BETWEEN 1 AND 200 AND value OPERATOR(pg_catalog.!~) '[^!-~]'
$$;

-- Number of a tenant, made where missing.
CREATE FUNCTION postbell.tenant_number(tenant text) RETURNS int
LANGUAGE plpgsql VOLATILE AS $$
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
$$;

-- ---------------------------------------------------------------------------------------------------------------------
-- Kinds

-- Takes one declared type apart: 'uuid!' to {"type": "uuid", "required": true}. Null: not a type.
CREATE FUNCTION postbell.payload_type(declared text) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE STRICT AS $$
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
$$;

-- 32 digits around four dashes: a bounded repetition would be a regular expression of as many states.
CREATE FUNCTION postbell.is_uuid(value text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT value LIKE '________-____-____-____-____________'
        AND value !~ '[^0-9A-Fa-f-]' AND length(replace(value, '-', '')) = 32
$$;

CREATE FUNCTION postbell.is_slug(value text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT length(value) <= 100 AND value ~ '^[a-z0-9._-]+$'
$$;

-- Does a JSON value (form, and content as text) fit the type? False for none. Planned in the caller's place.
CREATE FUNCTION postbell.payload_value_fits(declared jsonb, form text, content text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
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
$$;

-- The payload; an empty object in the place of one that is too large, which is not even parsed.
CREATE FUNCTION postbell.bounded_payload(payload text, presentation text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN octet_length(payload) <= CASE presentation WHEN 'raw' THEN 16384 ELSE 8192 END THEN payload
        ELSE '{}'
    END
$$;

-- The fault of a payload against its kind: a code and the key, never a value; both null when there is none. Raises
-- for what is no JSON object. One query, which the planner puts in the caller's place: called row by row it would
-- cost more than the insert.
CREATE FUNCTION postbell.payload_fault(payload text, presentation text, keys jsonb, required text[])
RETURNS TABLE (code text, key text)
LANGUAGE sql IMMUTABLE AS $$
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
$$;

-- Raises the stable error of a code.
CREATE FUNCTION postbell.refuse(code text, detail text) RETURNS void
LANGUAGE plpgsql AS $$
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

-- Declares a kind; idempotent. A changed definition becomes a new revision, and rows of the old one still render.
-- What `content` holds for each presentation is in docs/kinds.md, and checked by content_fault; a `raw` kind has none
-- and must name the roles that may use it.
CREATE FUNCTION postbell.define_kind(
    name               text,
    presentation       text,
    payload            jsonb    DEFAULT '{}',
    content            jsonb    DEFAULT '{}',
    apps               text[]   DEFAULT NULL,
    producers          name[]   DEFAULT NULL,
    urgency            text     DEFAULT 'urgent',
    priority           smallint DEFAULT 10,
    push_type          text     DEFAULT 'alert',
    grace              interval DEFAULT '0',
    wait_for_device    interval DEFAULT '60 s',
    max_age            interval DEFAULT '24 h',
    provider_ttl       interval DEFAULT NULL,
    retry              text     DEFAULT NULL,
    collapse           text     DEFAULT 'dedupe_key',
    interruption_level text     DEFAULT NULL,
    category           text     DEFAULT NULL,
    sound              text     DEFAULT NULL,
    group_by_thread    boolean  DEFAULT true,
    mutable_content    boolean  DEFAULT false,
    ends_when_seen     boolean  DEFAULT false,
    enabled            boolean  DEFAULT true
) RETURNS int
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
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
$$;

RESET ROLE;
