-- Postbell 0007: facts that end notifications: a subject moved on, a thread was erased, a person has seen it.
--
-- Locks: none on existing tables.
-- Older workers: may run on; nothing they read changes.
-- Runs in one transaction that the caller opens.

SET LOCAL ROLE postbell_owner;

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
