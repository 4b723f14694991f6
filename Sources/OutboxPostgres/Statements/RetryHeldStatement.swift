import OutboxCore
import Postgres

/// Makes what a wrong configuration stopped due at once; a function, because it changes the wait of held targets, which
/// a dispatcher may not (see migration 0005).
///
/// Parameters: $1 int2[] routes, $2 int4 most rows. Result: `moved` int8.
enum RetryHeldStatement {
    static let statement = PostgresStatement(
        "retry_held", "SELECT postbell.retry_held($1::int2[], $2::int4)::int8 AS moved",
        parameterTypes: [.int2.array, .int4])

    static func command(on routes: [RouteNumber], limit: Int) -> PostgresCommand {
        var parameters = PostgresParameters()
        var numbers = PostgresArray(of: .int2, capacity: routes.count)
        for route in routes { numbers.append(route) }
        parameters.append(numbers)
        parameters.append(Int32(clamping: limit))
        return PostgresCommand(statement, parameters)
    }
}
