package import OutboxCore
package import Postgres

/// A route with what waits on it, for people who look in. Reads the whole queue: not for a worker's loop.
package struct RouteWork: Sendable, Equatable {
    /// The route.
    package let route: Route
    /// Rows in the queue.
    package let waiting: Int64
    /// How long the oldest due row has been due; nil when none is.
    package let oldestDue: Duration?
    /// Whether a worker has lately said that it serves the route.
    package let isServed: Bool

    /// All routes but 0, where notifications wait for a first device, in the order of their names.
    package static func read(from connection: PostgresConnection) async throws(PostgresError) -> [RouteWork] {
        let result = try await connection.query(statement)
        var work: [RouteWork] = []
        for row in 0..<result.rowCount {
            let route = Route(
                number: try result.int2(row, 0), provider: try result.text(row, 1),
                environment: try result.textOrNil(row, 2) ?? "", app: try result.text(row, 3))
            work.append(
                RouteWork(
                    route: route, waiting: try result.int8(row, 4),
                    oldestDue: result.isNull(row, 5) ? nil : .milliseconds(try result.int8(row, 5)),
                    isServed: try result.bool(row, 6)))
        }
        return work
    }

    private static let statement = PostgresStatement(
        "route_work",
        """
        SELECT
            r.route_no, r.provider, r.environment, r.app,
            coalesce(q.waiting, 0) AS waiting,
            (extract(epoch FROM now() - q.oldest_due) * 1000)::int8 AS oldest_due,
            r.workers > 0 AS is_served
        FROM postbell.route_service r
        LEFT JOIN (
            SELECT q.route_no, count(*) AS waiting, min(q.due_at) FILTER (WHERE q.due_at <= now()) AS oldest_due
            FROM postbell.queue q
            GROUP BY q.route_no
        ) q USING (route_no)
        WHERE r.route_no <> 0
        ORDER BY r.provider, r.environment, r.app
        """)
}
