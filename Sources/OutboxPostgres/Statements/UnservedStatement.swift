import OutboxCore
import Postgres

/// Routes with work that no live worker serves, by the one definition of it, `postbell.route_service`.
///
/// Result: `route_no` int2.
enum UnservedStatement {
    static let statement = PostgresStatement("unserved", text)

    static let text = """
        SELECT s.route_no
        FROM postbell.route_service s
        WHERE s.state = 'unserved'
            AND s.route_no <> 0
            AND EXISTS (SELECT 1 FROM postbell.queue q WHERE q.route_no = s.route_no)
        ORDER BY s.route_no
        """

    static func routes(_ result: PostgresResult) throws(PostgresError) -> [RouteNumber] {
        var routes: [RouteNumber] = []
        for row in 0..<result.rowCount { routes.append(try result.int2(row, 0)) }
        return routes
    }
}
