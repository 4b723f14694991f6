import OutboxCore
import Postgres

/// Makes the ledger's days ahead of time (see migration 0005); gives up quickly when somebody holds a lock, and is
/// called again.
///
/// Parameters: $1 int4 days ahead, $2 text lock timeout. Result: `made` int4.
enum PartitionStatement {
    static let statement = PostgresStatement("create_partitions", text, parameterTypes: [.int4, .text])

    static let text = """
        SELECT postbell.create_partitions($1::int4, $2::text) AS made
        """

    static func command(daysAhead: Int, lockTimeout: String) -> PostgresCommand {
        var parameters = PostgresParameters()
        parameters.append(Int32(clamping: daysAhead))
        parameters.append(lockTimeout)
        return PostgresCommand(statement, parameters)
    }
}
