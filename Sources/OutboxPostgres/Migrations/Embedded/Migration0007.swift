// swift-format-ignore-file
// Written by scripts/embed-migrations from sql/migrations; not edited by hand.

extension Migration {
    /// 0007_facts.sql
    static let facts0007 = Migration(
        version: 7, name: "facts",
        checksum: "c3b4c2d7fe007d43648d528bd6bee2dc2345c656e3e41c8b860ba0d6434a21a4",
        sql: #"""
-- Postbell 0007: facts that end notifications: a subject moved on, a thread was erased, a person has seen it.
--
-- Locks: none on existing tables.
-- Older workers: may run on; nothing they read changes.
-- Runs in one transaction that the caller opens.

SET LOCAL ROLE postbell_owner;

-- ---------------------------------------------------------------------------------------------------------------------
-- What the insert trigger asks about payloads, and what it notes.

-- Is this text a JSON object? Also what json lets pass and jsonb refuses (unpaired surrogates, \u0000) is none.
CREATE FUNCTION postbell.is_json_object(value text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN jsonb_typeof(value::jsonb) = 'object';
EXCEPTION WHEN OTHERS THEN
    RETURN false;  -- the server's own words would echo the value
END
$$;

-- Does the payload certainly fit its kind? What this says no to may fit all the same: payload_fault knows. A payload
-- without escapes has a colon for each member and those within its texts, so that one colon too many is a key twice, or
-- an undeclared one. No query, because beginning one costs more than all of this.
CREATE FUNCTION postbell.payload_fits(payload text, keys jsonb, names text[], required text[]) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
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

-- Whether payload_fault finds anything, or cannot even read it.
CREATE FUNCTION postbell.is_faulty(payload text, presentation text, keys jsonb, required text[]) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN (SELECT f.code IS NOT NULL FROM postbell.payload_fault(payload, presentation, keys, required) f);
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    RETURN true;
END
$$;

-- Refuses a payload that is_faulty.
CREATE FUNCTION postbell.refuse_payload(payload text, number int) RETURNS void
LANGUAGE plpgsql AS $$
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

-- One line about an enqueue that failed: no content, and nothing that was not checked. Under the session's tenant, or
-- where that is not this login's, under one that is.
CREATE FUNCTION postbell.note_enqueue_failure(principal text, kind text, state text, message text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
$$;

-- ---------------------------------------------------------------------------------------------------------------------
-- Facts

-- Refuses a fact about another tenant, or about what is no id.
CREATE FUNCTION postbell.refuse_foreign_fact(tenant text, what text, value text) RETURNS void
LANGUAGE plpgsql STABLE AS $$
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

-- The subject moved on: one fact, ordered by its clock reading after everything enqueued before it,
-- also if that commits later.
CREATE FUNCTION postbell.supersede(tenant text, subject text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    reading timestamptz := clock_timestamp();
BEGIN
    PERFORM postbell.refuse_foreign_fact(tenant, 'subject', subject);
    INSERT INTO postbell.supersessions (id, at, tenant_id, subject)
    VALUES (postbell.uuid7(reading), reading, tenant, supersede.subject);
END
$$;

-- The conversation is gone: one fact, ordered like that of supersede. What the thread's open notifications say goes in
-- this transaction; the lease holder finds the fact before it sends, and writes the end. Workers lock no row of the
-- outbox, so neither waits for the other. A notification that commits only after this keeps its payload until it is
-- removed, and is not sent.
CREATE FUNCTION postbell.erase(tenant text, thread text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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

-- A client of the principal says which notifications it shows (`delivered`), which subjects its person has seen, and
-- asks which notifications are unread (`query`). Appends a receipt for each seen subject; one that is no id, or about
-- which nothing was ever enqueued for this principal, fails the whole call. Answers which of the delivered are obsolete
-- (superseded, seen, erased, cancelled or past their deadline) and which of the queried are unread, this call's own
-- receipts included: those with a subject that nobody has seen, and that are not superseded, erased or cancelled. What
-- is another principal's is left out, as what does not exist is; so is all to a session that acts for another. Reads
-- the principal's notifications once.
CREATE FUNCTION postbell.sync(
    principal text,
    delivered uuid[] DEFAULT '{}',
    seen      text[] DEFAULT '{}',
    query     uuid[] DEFAULT '{}',
    OUT obsolete uuid[],
    OUT unread   uuid[]
)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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

RESET ROLE;
"""#)
}
