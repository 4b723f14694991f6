import OutboxCore
import Postgres

/// Removes answers of `device_register` whose idempotency keys count no longer; a function, because dispatchers may not
/// look into them (see migration 0005).
///
/// Parameters: $1 int4 most rows. Result: `pruned` int8.
enum PruneKeysStatement {
    static let statement = PostgresStatement(
        "prune_keys", "SELECT postbell.prune_idempotency_keys($1::int4)::int8 AS pruned", parameterTypes: [.int4])

    static func command(limit: Int) -> PostgresCommand {
        var parameters = PostgresParameters()
        parameters.append(Int32(clamping: limit))
        return PostgresCommand(statement, parameters)
    }
}
