import OutboxCore
import Postgres

/// Moves due rows of one route from the queue into one new lease, and ends none of them: every row that leaves the
/// queue is in the lease and in the answer, whatever else is missing, and the only way out is the settle.
///
/// | parameter | type | meaning |
/// | --- | --- | --- |
/// | $1 | int2 | route |
/// | $2 | int2 | crash class: exactly this many crashes |
/// | $3, $4 | int2[], int4[] | the shares: urgency, tenant |
/// | $5 | int4[] | credit of each share; they sum to the batch, so nothing is locked and then left |
/// | $6, $7 | timestamptz[], uuid[] | low-water mark of each share |
/// | $8, $9 | uuid, uuid | batch (made before this was sent), owner |
/// | $10 | interval | life of the lease |
/// | $11 | int8 | most devices per row |
///
/// One result row per device of the page, or one with null device columns; rows of a position follow one another, in
/// the order of the devices: `position` int2, `notification_id` uuid, `tenant_no` int4, `urgency` int2, `due_at`
/// timestamptz, `attempt` int2 (this one included), `crashes` int2, `prior` bool, `after_device` int8, `verdict` int2
/// (0 send, 1 closed, 2 expired, 3 orphan, 4 superseded, 5 seen, 6 erased), `kind_no` int4, `created_at`, `expires_at`
/// timestamptz, `payload`, `collapse_key`, `thread` text, `badge` int4, `silent` bool, `device_no` int8, `token` text,
/// `token_seq` int4, `spent` int2 (-1: no target now, and then without a payload), `notes_success` bool, `nobody` text
/// (why a wanted row has no target; null: every target is final), `others_due_at` timestamptz (when the next target
/// that was left out because of its own wait is due), `now` timestamptz, `instance` text (the tenant's instance id,
/// where the kind carries it).
///
/// Each fact is asked for only where a row can have it: no thread, no look for an erasure; the kinds that end when seen
/// are read once. READ COMMITTED, autocommit. Plan: per share one range scan of `queue_due` behind its mark, TID scan
/// for the DELETE, primary keys of outbox and `settlements_whole`, index-only scan of `devices_live`; nested loops
/// only, and no join of two CTEs, which the pinned planner would make quadratic. Intervals are hours, not days, whose
/// addition goes through the calendar, once per row.
enum ClaimStatement {
    /// For rows of one crash class.
    static let clean = PostgresStatement("claim", text, parameterTypes: parameterTypes)

    /// For the suspects: whatever the number of crashes from $2 on, one row alone (its single credit is 1).
    static let suspect = PostgresStatement(
        "claim_suspect", text.replacing("crashes = $2::int2", with: "crashes >= $2::int2"),
        parameterTypes: parameterTypes)

    private static let parameterTypes: [PostgresType] = [
        .int2, .int2, .int2.array, .int4.array, .int4.array, .timestamptz.array, .uuid.array, .uuid, .uuid, .interval,
        .int8,
    ]

    static let text = """
        WITH candidate AS MATERIALIZED (
            -- one probe per share; what somebody has locked is left to the next scan from the start
            SELECT q.tid
            FROM unnest($3::int2[], $4::int4[], $5::int4[], $6::timestamptz[], $7::uuid[])
                s(urgency, tenant_no, credit, mark_due_at, mark_id)
            CROSS JOIN LATERAL (
                SELECT ctid AS tid
                FROM postbell.queue
                WHERE route_no = $1::int2
                    AND crashes = $2::int2
                    AND urgency = s.urgency
                    AND tenant_no = s.tenant_no
                    AND due_at <= now()
                    AND (due_at, notification_id) >= (s.mark_due_at, s.mark_id)
                ORDER BY due_at, notification_id
                LIMIT s.credit
                FOR UPDATE SKIP LOCKED
            ) q
        ),
        gone AS (
            -- a locked row cannot move and is never updated, so its ctid holds
            DELETE FROM postbell.queue
            WHERE ctid = ANY (ARRAY(SELECT tid FROM candidate))
            RETURNING notification_id, tenant_no, urgency, due_at, attempt, crashes, prior, after_device
        ),
        taken AS MATERIALIZED (
            -- LEFT JOIN: a row whose notification is not to be seen is an orphan, not a gap
            SELECT
                row_number() OVER ()::int2 AS pos,
                q.notification_id, q.tenant_no, q.urgency, q.due_at,
                (q.attempt + 1)::int2 AS attempt,
                q.crashes, q.prior, q.after_device,
                CASE
                    WHEN n.id IS NULL THEN 3
                    WHEN EXISTS (
                        SELECT 1 FROM postbell.settlements w
                        WHERE w.notification_id = q.notification_id AND w.route_no IS NULL)
                        THEN 1
                    \(ClosingFacts.branches(superseded: "4", seen: "5", erased: "6"))
                    WHEN n.expires_at <= now() THEN 2
                    ELSE 0
                END AS verdict,
                n.kind_no, n.created_at, n.expires_at, n.payload, n.collapse_key, n.thread, n.badge, n.silent,
                n.instance, n.tenant_id, n.principal_id, n.kind, n.device_no AS only_device,
                n.except_device_no AS not_device,
                -- targets that wait for their own retry: the dispatch must not leave before them. Once per row, not
                -- per target, and the first will do: there may be very many
                CASE WHEN q.prior THEN (
                    SELECT y.retry_at
                    FROM postbell.deliveries y
                    WHERE y.notification_id = q.notification_id
                        AND y.route_no = $1::int2
                        AND y.retry_at > now()
                        AND NOT y.final
                        AND y.id >= postbell.uuid_floor(n.created_at - interval '24 hours')
                        AND NOT EXISTS (
                            SELECT 1 FROM postbell.deliveries z
                            WHERE z.notification_id = y.notification_id
                                AND z.device_no = y.device_no
                                AND z.final
                                AND z.id >= postbell.uuid_floor(n.created_at - interval '24 hours'))
                    ORDER BY y.retry_at
                    LIMIT 1)
                END AS others_due_at
            FROM gone q
            LEFT JOIN postbell.outbox n ON n.id = q.notification_id
        ),
        addressed AS MATERIALIZED (
            -- the page: live devices of the route that do not mute the kind, so many and no more, whatever became of
            -- them; after an earlier claim, or one on the route that a device was on when the notification was made
            -- (a registration may stay open for as long as a transaction does, so a day is allowed), those that have a
            -- final row or wait for their own retry on this route are no targets (-1), and the others have spent so
            -- many attempts
            SELECT t.*, d.device_no, d.token, d.token_seq, d.spent, d.success_due_at
            FROM taken t
            LEFT JOIN LATERAL (
                SELECT
                    x.device_no, x.token, x.token_seq, x.success_due_at,
                    CASE WHEN t.prior OR x.rerouted_at > t.created_at - interval '24 hours' THEN (
                        SELECT CASE
                            WHEN bool_or(y.final OR (y.retry_at > now() AND y.route_no = $1::int2)) THEN -1
                            ELSE count(DISTINCT y.batch) FILTER (WHERE y.outcome IN (3, 6))
                        END
                        FROM postbell.deliveries y
                        WHERE y.notification_id = t.notification_id
                            AND y.device_no = x.device_no
                            AND y.id >= postbell.uuid_floor(t.created_at - interval '24 hours'))
                    ELSE 0 END AS spent
                FROM postbell.devices x
                WHERE t.verdict = 0
                    AND x.tenant_id = t.tenant_id
                    AND x.principal_id = t.principal_id
                    AND x.route_no = $1::int2
                    -- the complement of a device is below zero, and its own complement the device
                    AND x.device_no > greatest(t.after_device, ~t.after_device)
                    AND x.token IS NOT NULL
                    AND x.status = 'active'
                    AND (t.only_device IS NULL OR x.device_no = t.only_device)
                    AND (t.not_device IS NULL OR x.device_no <> t.not_device)
                    AND t.kind <> ALL (x.muted_kinds)
                ORDER BY x.device_no
                LIMIT $11::int8
            ) d ON true
        ),
        lease AS (
            INSERT INTO postbell.leases (
                batch, owner, route_no, claimed_at, until,
                ids, tenants, urgencies, attempts, crashes, cursors, open, t_pos, t_dev)
            SELECT
                $8::uuid, $9::uuid, $1::int2, now(), now() + $10::interval,
                array_agg(notification_id), array_agg(tenant_no), array_agg(urgency),
                array_agg(attempt), array_agg(crashes), array_agg(after_device),
                repeat('1', count(*)::int)::varbit,
                (SELECT coalesce(array_agg(pos), '{}') FROM addressed WHERE spent >= 0),
                (SELECT coalesce(array_agg(device_no), '{}') FROM addressed WHERE spent >= 0)
            FROM taken
            HAVING count(*) > 0
        )
        SELECT
            pos AS position, notification_id, tenant_no, urgency, due_at, attempt, crashes, prior, after_device,
            verdict::int2 AS verdict,
            kind_no, created_at, expires_at, CASE WHEN spent < 0 THEN NULL ELSE payload END AS payload, collapse_key,
            thread, badge, silent,
            device_no, token, token_seq,
            spent::int2 AS spent,
            success_due_at <= now() AS notes_success,
            -- nobody to send to: why, unless the dispatch has reached its targets already, or they wait. Whoever is on
            -- the page and no target was reached on another route
            CASE WHEN coalesce(spent, -1) < 0
                AND verdict = 0
                AND (device_no IS NULL OR others_due_at IS NULL)
                AND NOT (prior AND EXISTS (
                    SELECT 1 FROM postbell.deliveries y
                    WHERE y.notification_id = a.notification_id
                        AND y.final
                        AND y.route_no = $1::int2
                        AND y.id >= postbell.uuid_floor(a.created_at - interval '24 hours')))
            THEN CASE WHEN device_no IS NOT NULL THEN 'no_device' ELSE (
                SELECT CASE
                    WHEN bool_or(v.token IS NOT NULL AND v.status = 'active' AND a.kind = ANY (v.muted_kinds))
                        THEN 'muted'
                    WHEN bool_or(v.token IS NULL AND v.status = 'active') THEN 'no_token'
                    WHEN bool_or(v.status = 'revoked') THEN 'revoked'
                    ELSE 'no_device'
                END
                FROM postbell.devices v
                WHERE v.tenant_id = a.tenant_id
                    AND v.principal_id = a.principal_id
                    AND v.route_no = $1::int2
                    AND (a.only_device IS NULL OR v.device_no = a.only_device)
                    AND (a.not_device IS NULL OR v.device_no <> a.not_device))
            END END AS nobody,
            CASE
                WHEN verdict <> 0 THEN NULL
                -- the end of a second look: whose wait was over when its page had been looked at
                WHEN after_device < 0 AND device_no IS NULL AND EXISTS (
                    SELECT 1
                    FROM postbell.deliveries y
                    WHERE y.notification_id = a.notification_id
                        AND y.route_no = $1::int2
                        AND y.retry_at <= now()
                        AND NOT y.final
                        AND y.id >= postbell.uuid_floor(a.created_at - interval '24 hours')
                        AND NOT EXISTS (
                            SELECT 1 FROM postbell.deliveries z
                            WHERE z.notification_id = y.notification_id
                                AND z.device_no = y.device_no
                                AND (z.final OR (z.retry_at > now() AND z.route_no = $1::int2))
                                AND z.id >= postbell.uuid_floor(a.created_at - interval '24 hours'))
                        AND EXISTS (
                            SELECT 1 FROM postbell.devices x
                            WHERE x.device_no = y.device_no
                                AND x.tenant_id = a.tenant_id
                                AND x.principal_id = a.principal_id
                                AND x.route_no = $1::int2
                                AND x.token IS NOT NULL
                                AND x.status = 'active'
                                AND a.kind <> ALL (x.muted_kinds)))
                    THEN now()
                ELSE others_due_at
            END AS others_due_at,
            now() AS now,
            instance
        FROM addressed a
        """

    /// The statement and the values for a request.
    static func command(_ request: ClaimRequest, owner: Identifier) -> PostgresCommand {
        var parameters = PostgresParameters()
        parameters.append(request.route)
        parameters.append(request.crashClass.rawValue)
        var urgencies = PostgresArray(of: .int2, capacity: request.credits.count)
        var tenants = PostgresArray(of: .int4, capacity: request.credits.count)
        var rows = PostgresArray(of: .int4, capacity: request.credits.count)
        var instants = PostgresArray(of: .timestamptz, capacity: request.credits.count)
        var notifications = PostgresArray(of: .uuid, capacity: request.credits.count)
        for credit in request.credits {
            urgencies.append(credit.share.urgency)
            tenants.append(credit.share.tenant)
            rows.append(Int32(credit.rows))
            instants.append(credit.mark.dueAt)
            notifications.append(credit.mark.notification)
        }
        for array in [urgencies, tenants, rows, instants, notifications] { parameters.append(array) }
        parameters.append(request.batch)
        parameters.append(owner)
        parameters.append(request.lease)
        parameters.append(Int64(request.targetsPerRow))
        return PostgresCommand(request.crashClass == .suspect ? suspect : clean, parameters)
    }
}
