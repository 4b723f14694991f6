import OutboxCore
import Postgres

/// Recovers lapsed leases of anybody; a function, because it needs two snapshots (see migration 0005).
///
/// Parameters: $1 timestamptz known at (what lapsed later is left alone), $2 timestamptz healthy since (a lapse that
/// began before it is no crash), $3 int4 most leases, $4 int4 most crashes, $5 int4 the worker's number. Result:
/// `leases`, `rows`, `unknowns`, `set_aside` int8.
enum RecoverStatement {
    static let statement = PostgresStatement(
        "recover", text, parameterTypes: [.timestamptz, .timestamptz, .int4, .int4, .int4])

    static let text = """
        SELECT
            count(*) AS leases,
            coalesce(sum(items), 0)::int8 AS rows,
            coalesce(sum(unknowns), 0)::int8 AS unknowns,
            coalesce(sum(set_aside), 0)::int8 AS set_aside
        FROM postbell.recover($1::timestamptz, $2::timestamptz, $3::int4, $4::int4, $5::int4)
        """

    static func command(
        knownAt: Timestamp, healthySince: Timestamp, limit: Int, maxCrashes: Int, worker: Int32
    ) -> PostgresCommand {
        var parameters = PostgresParameters()
        parameters.append(knownAt)
        parameters.append(healthySince)
        parameters.append(Int32(clamping: limit))
        parameters.append(Int32(clamping: maxCrashes))
        parameters.append(worker)
        return PostgresCommand(statement, parameters)
    }

    static func report(_ result: PostgresResult) throws(PostgresError) -> RecoveryReport {
        RecoveryReport(
            leases: Int(try result.int8(0, 0)), rows: Int(try result.int8(0, 1)),
            unknowns: Int(try result.int8(0, 2)), setAside: Int(try result.int8(0, 3)))
    }
}
