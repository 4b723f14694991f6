package import OutboxCore
package import Postgres

/// What a session says about the server and about itself; any role may ask.
package struct ServerFacts: Sendable {
    /// `server_version_num`: 180001 is 18.1.
    package let version: Int
    /// Whether the server refuses writes because it follows another.
    package let isInRecovery: Bool
    /// Whether the session refuses writes although its server takes them.
    package let isReadOnly: Bool
    /// The login, and the role that it acts in.
    package let sessionUser: String
    /// The role whose rights count.
    package let currentUser: String

    /// Oldest and newest major version that this program is tested with.
    package static let supportedVersions = 15...18

    /// The major version.
    package var majorVersion: Int { version / 10_000 }

    /// Asks `connection`.
    package static func read(from connection: PostgresConnection) async throws(PostgresError) -> ServerFacts {
        let result = try await connection.query(statement)
        return ServerFacts(
            version: Int(try result.int4(0, 0)), isInRecovery: try result.bool(0, 1),
            isReadOnly: try result.bool(0, 2), sessionUser: try result.text(0, 3),
            currentUser: try result.text(0, 4))
    }

    /// The server's clock at this moment.
    package static func time(of connection: PostgresConnection) async throws(PostgresError) -> Timestamp {
        try await connection.query(clock).instant(0, 0)
    }

    private static let statement = PostgresStatement(
        "server_facts",
        """
        SELECT
            pg_catalog.current_setting('server_version_num')::int4,
            pg_catalog.pg_is_in_recovery(),
            pg_catalog.current_setting('transaction_read_only') = 'on',
            SESSION_USER::text,
            CURRENT_USER::text
        """)

    private static let clock = PostgresStatement("clock", "SELECT pg_catalog.clock_timestamp()")
}
