// swift-format-ignore-file
// Written by scripts/embed-migrations from sql/migrations; not edited by hand.

extension Migration {
    /// 0005_dispatch.sql
    static let dispatch0005 = Migration(
        version: 5, name: "dispatch",
        checksum: "ae28e24fca9d5965e16351b60f08c2da932865ad6f1e56ff20da7a2d1e425277",
        sql: #"""
-- Postbell 0005: what workers call beside their own statements (recovery, the days of the ledger, what sending does to
-- devices), and how they are.
--
-- Locks: SHARE UPDATE EXCLUSIVE on deliveries and ACCESS EXCLUSIVE on its empty default partition
-- while days are attached.
-- Older workers: may run on; nothing they read changes.
-- Runs in one transaction that the caller opens.

SET LOCAL ROLE postbell_owner;

-- Names of the ledger's outcome codes.
CREATE FUNCTION postbell.outcome_name(code smallint) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT ('{delivered,unregistered,rejected,retry,throttled,misconfigured,unknown,skipped}'::text[])[code + 1]
$$;

-- Lapsed leases go back to the queue: ONE call, several snapshots. The first statement locks the lease, so no settle
-- of it can pass the fence any more; the later ones see every settle that held the lease before. For each open
-- position an `unknown` row tells whom the lost worker may have sent to: the targets are in the lease, for they cannot
-- be derived from today's devices. Only what had lapsed by `known_at`, the caller's last reading of this clock, is
-- taken: a call may be carried out long after it was sent, and after an outage that it does not know of, or a clock
-- that was set. `crashes` rises only if the caller was connected since before the claim (else it may be the database
-- that was away), or the owner is dead: its heartbeat has not come since the caller is connected, though callers leave
-- it the time to be back, a lease and ten seconds at most. Without the latter a worker that is alone would be killed by
-- the same row in each of its lives; so the four seconds, which tell apart a clock that was set, are less than the
-- shortest lease. Only a row that was alone in its lease is set aside. Called with the rights of the dispatcher.
CREATE FUNCTION postbell.recover(
    known_at      timestamptz,
    healthy_since timestamptz,
    lease_limit   int,
    max_crashes   int,
    worker_no     int,
    OUT batch     uuid,
    OUT route_no  smallint,
    OUT items     int,
    OUT unknowns  int,
    OUT set_aside int
) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
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

-- What was stopped by a wrong key, topic or environment is due at once, since somebody looked after that: rows of
-- these routes that went back unsent, and targets that are held as misconfigured. Whoever waits for a retry of its own
-- goes on waiting, and so does a row that was never claimed. The wait of a held target is the one thing that changes
-- in the ledger. At most `row_limit` rows; answers how many. Owner's rights: dispatchers change no ledger.
CREATE FUNCTION postbell.retry_held(route_nos smallint[], row_limit int) RETURNS int
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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

-- Makes the ledger's days from yesterday to `days_ahead` from now (UTC). LIKE and ATTACH: CREATE … PARTITION OF
-- would queue every settle behind one long reader. Gives up on a day after `lock_limit` (the caller comes again).
-- Answers how many were made.
CREATE FUNCTION postbell.create_partitions(days_ahead int DEFAULT 3, lock_limit text DEFAULT '200ms') RETURNS int
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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

SELECT postbell.create_partitions(3, '5s');

-- What sending does to devices, apart from the settle and never waiting: 0 succeeded, 1 failed, 2 token invalid.
-- The failure that makes `max_failures` in a row clears the token as well; 0 never does.
-- Each applies only while the token that was sent is still the one of its registration: `sequences` must match and
-- the token must not have been registered after `fences` (the provider's own timestamp, else when it was sent).
-- Answers per position: 1 applied, 0 no longer true, 2 locked by somebody (try again).
CREATE FUNCTION postbell.device_effects(
    device_numbers bigint[],
    sequences      int[],
    effects        smallint[],
    fences         timestamptz[],
    notifications  uuid[],
    max_failures   int,
    OUT ordinal    smallint,
    OUT state      smallint
) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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

-- Removes answers that are too old to count, the oldest first, at most `row_limit`; answers how many. What somebody
-- replaces at this moment is left to them.
CREATE FUNCTION postbell.prune_idempotency_keys(row_limit int) RETURNS int
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET jit = off
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

-- ---------------------------------------------------------------------------------------------------------------------
-- How workers, lanes and routes are. With the rights of whoever asks, like all views.

-- How old the heartbeat of a live worker can be. It comes every 5 s; a statement of a worker takes 10 s at most, and a
-- lost session is made again in a few more. By default a lease lasts as long: who has been silent for it has lost what
-- it held, alive or not.
CREATE FUNCTION postbell.heartbeat_limit() RETURNS interval
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT interval '30 s'
$$;

-- Who dispatches, or did: `alive` by its heartbeat, `stopped` when it said so, else `dead`.
CREATE VIEW postbell.worker_health WITH (security_invoker = true) AS
SELECT
    w.worker_no, w.owner, w.name, w.version,
    CASE
        WHEN w.stopped_at IS NOT NULL THEN 'stopped'
        WHEN w.heartbeat_at > pg_catalog.now() - postbell.heartbeat_limit() THEN 'alive'
        ELSE 'dead'
    END AS state,
    w.started_at, w.heartbeat_at, w.stopped_at, w.routes, w.lanes
FROM postbell.workers w;

-- The lanes of live workers. A pause that has run out is over, also before its worker says so.
CREATE VIEW postbell.lane_health WITH (security_invoker = true) AS
SELECT
    w.worker_no,
    w.name AS worker,
    l.key AS lane,
    -- a pause ends with the answer to a probe, for which there has to be a row
    CASE WHEN l.value ->> 'state' = 'paused' AND t.until <= pg_catalog.now() THEN 'probing'
        ELSE l.value ->> 'state' END AS state,
    l.value ->> 'reason' AS reason,
    (l.value ->> 'since')::timestamptz AS since,
    t.until,
    ARRAY(SELECT r.value::smallint FROM jsonb_array_elements_text(l.value -> 'routes') r) AS routes
FROM postbell.worker_health w
CROSS JOIN LATERAL jsonb_each(w.lanes) l
CROSS JOIN LATERAL (SELECT (l.value ->> 'until')::timestamptz AS until) t
WHERE w.state = 'alive';

-- Who serves a route, and whether it is sent on: the one definition of `unserved`. The best of its lanes counts; the
-- wait for a first device (route 0) is ended by any worker.
CREATE VIEW postbell.route_service WITH (security_invoker = true) AS
SELECT
    r.route_no, r.provider, r.environment, r.app,
    CASE WHEN r.route_no = 0 THEN r.provider ELSE concat_ws('/', r.provider, r.environment, r.app) END AS route,
    served.workers,
    CASE WHEN served.workers = 0 THEN 'unserved' ELSE coalesce(best.state, 'up') END AS state,
    best.lane, best.reason, best.since, best.until
FROM postbell.routes r
CROSS JOIN LATERAL (
    SELECT count(*) AS workers
    FROM postbell.worker_health w
    WHERE w.state = 'alive' AND (r.route_no = 0 OR r.route_no = ANY (w.routes))
) served
LEFT JOIN LATERAL (
    SELECT h.lane, h.state, h.reason, h.since, h.until
    FROM postbell.lane_health h
    WHERE r.route_no = ANY (h.routes)
    ORDER BY h.state <> 'up', h.state <> 'probing', h.until, h.lane
    LIMIT 1
) best ON true;

RESET ROLE;
"""#)
}
