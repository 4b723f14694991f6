import OutboxCore
import Postgres

/// The oldest rows of the queue that have been due for long, by the shares that the share scan found, and positions
/// that have been on lease for as long. Oldest first and bounded: each share is one probe of the index, no scan.
///
/// Answers nothing unless the asking worker is the one that has been alive for longest, so that a fleet warns once and
/// needs no leader: at worst, while heartbeats cross, two workers warn.
///
/// Parameters: $1 int2[] route, $2 int2[] crashes, $3 int2[] urgency, $4 int4[] tenant of each share, $5 interval age,
/// $6 int8 most rows, $7 int4 the worker's number, $8 int2[] routes whose
/// leases are looked at.
/// Result: `id` uuid, `route_no` int2, `kind` text, `created_at`, `due_at` timestamptz, `worker` text or null, `now`
/// timestamptz.
enum LongPendingStatement {
    static let statement = PostgresStatement(
        "long_pending", text,
        parameterTypes: [.int2.array, .int2.array, .int2.array, .int4.array, .interval, .int8, .int4, .int2.array])

    static let text = """
        WITH waiting AS MATERIALIZED (
            SELECT q.notification_id, q.route_no, q.due_at
            FROM unnest($1::int2[], $2::int2[], $3::int2[], $4::int4[]) s(route_no, crashes, urgency, tenant_no)
            CROSS JOIN LATERAL (
                SELECT p.notification_id, p.route_no, p.due_at
                FROM postbell.queue p
                WHERE p.route_no = s.route_no
                    AND p.crashes = s.crashes
                    AND p.urgency = s.urgency
                    AND p.tenant_no = s.tenant_no
                    AND p.due_at <= now() - $5::interval
                ORDER BY p.due_at, p.notification_id
                LIMIT $6::int8
            ) q
        ),
        -- a lease that is renewed for that long has a reason that somebody should know
        leased AS MATERIALIZED (
            SELECT u.id AS notification_id, l.route_no, l.claimed_at AS due_at, l.owner
            FROM postbell.leases l
            CROSS JOIN LATERAL unnest(l.ids) WITH ORDINALITY u(id, pos)
            WHERE l.claimed_at <= now() - $5::interval
                AND l.route_no = ANY ($8::int2[])
                AND get_bit(l.open, (u.pos - 1)::int) = 1
            ORDER BY l.claimed_at
            LIMIT $6::int8
        ),
        oldest AS MATERIALIZED (
            SELECT notification_id, route_no, due_at, NULL::uuid AS owner FROM waiting
            UNION ALL
            SELECT notification_id, route_no, due_at, owner FROM leased
            ORDER BY due_at, notification_id
            LIMIT $6::int8
        )
        SELECT o.notification_id, o.route_no, n.kind, n.created_at, o.due_at, w.name, now() AS now
        FROM oldest o
        CROSS JOIN LATERAL (
            SELECT x.kind, x.created_at FROM postbell.outbox x WHERE x.id = o.notification_id OFFSET 0
        ) n
        LEFT JOIN LATERAL (
            SELECT y.name FROM postbell.workers y WHERE y.owner = o.owner OFFSET 0
        ) w ON true
        WHERE $7::int4 = (SELECT min(h.worker_no) FROM postbell.worker_health h WHERE h.state = 'alive')
        ORDER BY o.due_at, o.notification_id
        """

    /// A share of the queue, one row of the share scan's answer.
    struct QueueShare: Equatable {
        let route: RouteNumber
        let crashes: Int16
        let urgency: Int16
        let tenant: Int32
    }

    /// The shares of a share scan whose first row has been due for longer than `age`, and where the scan of each route
    /// that was cut off goes on.
    static func shares(
        _ result: PostgresResult, olderThan age: Duration
    ) throws(PostgresError) -> (shares: [QueueShare], next: [RouteNumber: WaitingStatement.Cursor]) {
        var shares: [QueueShare] = []
        for row in 0..<result.rowCount where !result.isNull(row, 1) {
            guard try result.instant(row, 5) + age <= result.instant(row, 0) else { continue }
            shares.append(
                QueueShare(
                    route: try result.int2(row, 1), crashes: try result.int2(row, 2),
                    urgency: try result.int2(row, 3), tenant: try result.int4(row, 4)))
        }
        return (shares, try WaitingAnswer.read(result).next)
    }

    static func command(
        on routes: [RouteNumber], _ shares: [QueueShare], olderThan age: Duration, limit: Int, worker: Int32
    ) -> PostgresCommand {
        var parameters = PostgresParameters()
        parameters.append(PostgresArray(shares.map(\.route)))
        parameters.append(PostgresArray(shares.map(\.crashes)))
        parameters.append(PostgresArray(shares.map(\.urgency)))
        parameters.append(PostgresArray(shares.map(\.tenant)))
        parameters.append(age)
        parameters.append(Int64(limit))
        parameters.append(worker)
        parameters.append(PostgresArray(routes))
        return PostgresCommand(statement, parameters)
    }

    static func pending(_ result: PostgresResult) throws(PostgresError) -> [LongPending] {
        var pending: [LongPending] = []
        for row in 0..<result.rowCount {
            pending.append(
                LongPending(
                    notification: try result.identifier(row, 0), route: try result.int2(row, 1),
                    kind: try result.text(row, 2), createdAt: try result.instant(row, 3),
                    age: try result.instant(row, 6) - result.instant(row, 4), claimant: try result.textOrNil(row, 5)))
        }
        return pending
    }
}
