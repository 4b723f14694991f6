import OutboxCore
import Postgres

/// The awake keys, one advisory lock per route: a worker that holds one is about to look at the queue anyway, so
/// producers need not notify. Held by the session that claims; tried, never waited for; counted by the server, so
/// asked for only when not held.
enum AwakeStatement {
    /// Parameter: $1 int2[] routes. Result: `route_no` int2, one row per key that is now held.
    static let hold = PostgresStatement("hold_awake", holdText, parameterTypes: [.int2.array])

    static let holdText = """
        SELECT r.route_no
        FROM unnest($1::int2[]) r(route_no)
        WHERE pg_try_advisory_lock(postbell.awake_class(), r.route_no)
        """

    /// Parameter: $1 int2[] routes that this session holds. Result: `released` int8.
    static let release = PostgresStatement("release_awake", releaseText, parameterTypes: [.int2.array])

    static let releaseText = """
        SELECT count(*) FILTER (WHERE pg_advisory_unlock(postbell.awake_class(), r.route_no)) AS released
        FROM unnest($1::int2[]) r(route_no)
        """

    static func command(_ statement: PostgresStatement, _ routes: [RouteNumber]) -> PostgresCommand {
        var parameters = PostgresParameters()
        parameters.append(PostgresArray(routes))
        return PostgresCommand(statement, parameters)
    }
}
