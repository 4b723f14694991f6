import OutboxCore
import Postgres

/// The registry of workers: announced at the start, repeated as a heartbeat, signed off at the end.
enum WorkerStatement {
    /// Parameters: $1 uuid owner, $2 text name (host and process), $3 text version, $4 int2[] routes served.
    /// Result: `worker_no` int4, `now` timestamptz.
    static let register = PostgresStatement(
        "register_worker", registerText, parameterTypes: [.uuid, .text, .text, .int2.array])

    static let registerText = """
        INSERT INTO postbell.workers AS w (owner, name, version, routes)
        VALUES ($1::uuid, $2::text, $3::text, $4::int2[])
        ON CONFLICT (owner) DO UPDATE SET
            name = excluded.name,
            version = excluded.version,
            routes = excluded.routes,
            heartbeat_at = clock_timestamp(),
            stopped_at = NULL
        RETURNING w.worker_no, now() AS now
        """

    /// Parameter: $1 uuid owner. No result.
    static let unregister = PostgresStatement("unregister_worker", unregisterText, parameterTypes: [.uuid])

    static let unregisterText = """
        UPDATE postbell.workers SET
            routes = '{}',
            stopped_at = clock_timestamp(),
            heartbeat_at = clock_timestamp()
        WHERE owner = $1::uuid
        """

    static func registration(
        owner: Identifier, name: String, version: String, routes: [RouteNumber]
    ) -> PostgresCommand {
        var parameters = PostgresParameters()
        parameters.append(owner)
        parameters.append(name)
        parameters.append(version)
        parameters.append(PostgresArray(routes))
        return PostgresCommand(register, parameters)
    }

    static func end(owner: Identifier) -> PostgresCommand {
        var parameters = PostgresParameters()
        parameters.append(owner)
        return PostgresCommand(unregister, parameters)
    }
}
