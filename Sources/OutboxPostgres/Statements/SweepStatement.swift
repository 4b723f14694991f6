import OutboxCore
import Postgres

/// Ends rows that are over and that nobody claims, because their route is paused or unserved or they are due later:
/// past their deadline, ended already, or with a fact against them. So every notification reaches an end. Walks the
/// queue by its primary key, a bounded stretch per call; the caller carries the cursor and begins anew when it comes
/// back null.
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
        judged AS MATERIALIZED (
            -- the same order as in the claim
            SELECT s.notification_id, s.route_no, v.verdict
            FROM stretch s
            CROSS JOIN LATERAL (
                SELECT CASE
                    WHEN EXISTS (
                        SELECT 1 FROM postbell.settlements w
                        WHERE w.notification_id = n.id AND w.route_no IS NULL)
                        THEN 'closed'
                    \(ClosingFacts.reasons)
                    WHEN n.expires_at <= now() THEN 'expired'
                END AS verdict
                FROM postbell.outbox n
                WHERE n.id = s.notification_id
            ) v
            WHERE s.route_no <> ALL ($1::int2[]) AND v.verdict IS NOT NULL
        ),
        over AS MATERIALIZED (
            -- what is locked is still there, and leaves in this statement
            SELECT q.tid, j.notification_id, q.tenant_no, j.route_no, j.verdict
            FROM judged j
            CROSS JOIN LATERAL (
                SELECT p.ctid AS tid, p.tenant_no
                FROM postbell.queue p
                WHERE p.notification_id = j.notification_id AND p.route_no = j.route_no
                FOR UPDATE SKIP LOCKED
            ) q
        ),
        gone AS (
            DELETE FROM postbell.queue
            WHERE ctid = ANY (ARRAY(SELECT tid FROM over))
        ),
        ended AS (
            -- what has its end already gets no second one; a fact ends the whole notification, once
            INSERT INTO postbell.settlements (notification_id, tenant_no, route_no, status, reason)
            SELECT DISTINCT
                o.notification_id,
                o.tenant_no,
                CASE WHEN o.verdict = 'expired' THEN o.route_no END,
                CASE o.verdict WHEN 'erased' THEN 'cancelled' WHEN 'seen' THEN 'superseded' ELSE o.verdict END,
                o.verdict
            FROM over o
            WHERE o.verdict <> 'closed'
        ),
        last AS (
            SELECT notification_id, route_no
            FROM stretch
            ORDER BY notification_id DESC, route_no DESC
            LIMIT 1
        )
        SELECT
            (SELECT count(*) FROM over) AS ended,
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
