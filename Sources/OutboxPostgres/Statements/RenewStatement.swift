import OutboxCore
import Postgres

/// Extends leases from now on; a lapsed one that nobody has recovered is still ours.
///
/// Parameters: $1 uuid[] batches, $2 uuid owner, $3 interval life. Result: `batch` uuid, one row per lease that is
/// still ours.
enum RenewStatement {
    static let statement = PostgresStatement("renew", text, parameterTypes: [.uuid.array, .uuid, .interval])

    static let text = """
        UPDATE postbell.leases
        SET until = now() + $3::interval
        WHERE batch = ANY ($1::uuid[]) AND owner = $2::uuid
        RETURNING batch
        """

    static func command(_ batches: [Identifier], owner: Identifier, lease: Duration) -> PostgresCommand {
        var parameters = PostgresParameters()
        parameters.append(PostgresArray(batches))
        parameters.append(owner)
        parameters.append(lease)
        return PostgresCommand(statement, parameters)
    }

    static func batches(_ result: PostgresResult) throws(PostgresError) -> [Identifier] {
        var batches: [Identifier] = []
        for row in 0..<result.rowCount { batches.append(try result.identifier(row, 0)) }
        return batches
    }
}
