import OutboxCore
import Postgres

/// Which shares have rows on which routes: a loose index scan that jumps from one (crashes, urgency, tenant) to the
/// next, bounded per route, beginning behind a cursor so that no tenant hides behind another. It reads from the start
/// of each share, so with a pinned xmin horizon it walks over dead entries: the caller rations it by its own cost.
///
/// Parameters: $1 int2[] routes, $2 int2[], $3 int2[], $4 int4[] cursor of each route (crashes, urgency, tenant; -1
/// from the start), $5 int8 most shares per route.
/// Result: `route_no` int2, `crashes` int2, `urgency` int2, `tenant_no` int4, `due_at` timestamptz (of its first
/// row), `now` timestamptz; in index order per route. No row at all when nothing waits.
enum WaitingStatement {
    static let statement = PostgresStatement(
        "waiting", text,
        parameterTypes: [
            .int2.array, .int2.array, .int2.array, .int4.array, .int8,
        ])

    static let text = """
        SELECT now() AS now, w.route_no, w.crashes, w.urgency, w.tenant_no, w.due_at
        FROM (SELECT 1) always
        LEFT JOIN LATERAL (
            SELECT r.route_no, s.crashes, s.urgency, s.tenant_no, s.due_at
            FROM unnest($1::int2[], $2::int2[], $3::int2[], $4::int4[]) r(route_no, crashes, urgency, tenant_no)
            CROSS JOIN LATERAL (
                WITH RECURSIVE share AS (
                    (
                        SELECT q.crashes, q.urgency, q.tenant_no, q.due_at, 1 AS number
                        FROM postbell.queue q
                        WHERE q.route_no = r.route_no
                            AND (q.crashes, q.urgency, q.tenant_no) > (r.crashes, r.urgency, r.tenant_no)
                        ORDER BY q.crashes, q.urgency, q.tenant_no, q.due_at
                        LIMIT 1
                    )
                    UNION ALL
                    SELECT n.crashes, n.urgency, n.tenant_no, n.due_at, share.number + 1
                    FROM share
                    CROSS JOIN LATERAL (
                        SELECT q.crashes, q.urgency, q.tenant_no, q.due_at
                        FROM postbell.queue q
                        WHERE q.route_no = r.route_no
                            AND (q.crashes, q.urgency, q.tenant_no) > (share.crashes, share.urgency, share.tenant_no)
                        ORDER BY q.crashes, q.urgency, q.tenant_no, q.due_at
                        LIMIT 1
                    ) n
                    WHERE share.number < $5::int8
                )
                SELECT * FROM share
            ) s
        ) w ON true
        ORDER BY w.route_no, w.crashes, w.urgency, w.tenant_no
        """

    /// The most shares that one scan answers per route.
    static let sharesPerRoute = 64

    /// Where the next scan of a route begins: behind this share.
    struct Cursor: Equatable {
        let crashes: Int16
        let urgency: Int16
        let tenant: Int32

        static let start = Cursor(crashes: -1, urgency: -1, tenant: -1)
    }

    static func command(_ routes: [RouteNumber], after cursors: [Cursor]) -> PostgresCommand {
        var parameters = PostgresParameters()
        parameters.append(PostgresArray(routes))
        parameters.append(PostgresArray(cursors.map(\.crashes)))
        parameters.append(PostgresArray(cursors.map(\.urgency)))
        parameters.append(PostgresArray(cursors.map(\.tenant)))
        parameters.append(Int64(sharesPerRoute))
        return PostgresCommand(statement, parameters)
    }
}
