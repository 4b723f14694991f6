import OutboxCore
import Postgres

/// Ends overdue rows of routes that nobody serves or that are paused, so that every notification reaches an end.
/// Walks the queue by its primary key, a bounded stretch per call; the caller carries the cursor and begins anew when
/// it comes back null.
///
/// Parameters: $1 int2[] routes that are served and left alone, $2 uuid and $3 int2 cursor (last row looked at; all
/// zero, -1 to begin), $4 int8 most rows to look at. Result, one row: `ended` int8, `last_id` uuid, `last_route` int2
/// (null: the end).
enum SweepStatement {
    static let statement = PostgresStatement("sweep", text, parameterTypes: [.int2.array, .uuid, .int2, .int8])

    static let text = """
        WITH stretch AS MATERIALIZED (
            SELECT q.notification_id, q.route_no
            FROM postbell.queue q
            WHERE (q.notification_id, q.route_no) > ($2::uuid, $3::int2)
            ORDER BY q.notification_id, q.route_no
            LIMIT $4::int8
        ),
        overdue AS MATERIALIZED (
            SELECT q.tid
            FROM stretch s
            CROSS JOIN LATERAL (
                SELECT p.ctid AS tid
                FROM postbell.queue p
                JOIN postbell.outbox n ON n.id = p.notification_id
                WHERE p.notification_id = s.notification_id AND p.route_no = s.route_no AND n.expires_at <= now()
                FOR UPDATE OF p SKIP LOCKED
            ) q
            WHERE s.route_no <> ALL ($1::int2[])
        ),
        gone AS (
            DELETE FROM postbell.queue
            WHERE ctid = ANY (ARRAY(SELECT tid FROM overdue))
            RETURNING notification_id, tenant_no, route_no
        ),
        ended AS (
            INSERT INTO postbell.settlements (notification_id, tenant_no, route_no, status, reason)
            SELECT g.notification_id, g.tenant_no, g.route_no, 'expired', 'expired'
            FROM gone g
            RETURNING 1
        ),
        last AS (
            SELECT notification_id, route_no
            FROM stretch
            ORDER BY notification_id DESC, route_no DESC
            LIMIT 1
        )
        SELECT
            (SELECT count(*) FROM ended) AS ended,
            (SELECT notification_id FROM last WHERE (SELECT count(*) FROM stretch) = $4::int8) AS last_id,
            (SELECT route_no FROM last WHERE (SELECT count(*) FROM stretch) = $4::int8) AS last_route
        """

    /// Where the next stretch begins: behind this row.
    struct Cursor: Equatable {
        let notification: Identifier
        let route: RouteNumber

        static let start = Cursor(notification: Identifier(high: 0, low: 0), route: -1)
    }

    static func command(after cursor: Cursor, limit: Int) -> PostgresCommand {
        var parameters = PostgresParameters()
        parameters.append(PostgresArray(of: .int2))
        parameters.append(cursor.notification)
        parameters.append(cursor.route)
        parameters.append(Int64(limit))
        return PostgresCommand(statement, parameters)
    }

    /// How many rows ended, and where to go on; nil at the end of the queue.
    static func answer(_ result: PostgresResult) throws(PostgresError) -> (ended: Int, next: Cursor?) {
        let ended = Int(try result.int8(0, 0))
        guard !result.isNull(0, 1) else { return (ended, nil) }
        return (ended, Cursor(notification: try result.identifier(0, 1), route: try result.int2(0, 2)))
    }
}
