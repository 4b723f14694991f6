import Glibc

/// How to reach a server, and what holds for each session there.
///
/// Everything libpq knows is open to the connection string, and what it leaves open comes from libpq's usual places:
/// `PG…` environment variables, the service file, the password file.
package struct PostgresConfiguration: Sendable, CustomStringConvertible, CustomReflectable {
    /// A libpq connection string or URI; may hold a password, therefore never printed.
    let connectionString: String
    /// Host, port, database and user of the connection string, as far as it names them.
    package let description: String
    private let namesService: Bool

    /// Longest time for one attempt to connect: name resolution, TCP, TLS, authentication, session settings.
    package var connectTimeout: Duration = .seconds(10)
    /// Deadline of a statement whose caller gives none, waiting for its turn included.
    package var statementDeadline: Duration = .seconds(30)
    /// How long the server may take to obey a cancel request before the connection is dropped.
    package var cancelGrace: Duration = .seconds(5)
    /// What `pg_stat_activity` and the server's log show, unless the connection string says otherwise.
    package var applicationName = "postbell"
    /// Settings applied right after connecting, before anything else runs: planner pins, `TimeZone`,
    /// `statement_timeout`, `lock_timeout`, `idle_in_transaction_session_timeout`. Leave it empty behind a proxy that
    /// pools transactions: there settings belong to the role.
    package var settings: [(name: String, value: String)] = []
    /// Accept a server that is in recovery or read-only. A worker never does: what it claimed there could not be
    /// settled.
    package var acceptsReadOnly = false
    /// Prepare statements by name. False sends the text each time, for a proxy that pools transactions.
    package var preparesStatements = true
    /// Most statements that may wait for their turn on one connection.
    package var queueLimit = 256

    /// A configuration for a connection string (`host=… dbname=…`) or URI (`postgresql://…`); an empty string means
    /// libpq's defaults. Throws an error of kind `configuration` that repeats nothing of the string when libpq cannot
    /// read it.
    package init(_ connectionString: String) throws(PostgresError) {
        let options = try ConnectionString.parse(connectionString)
        self.connectionString = connectionString
        namesService = options["service"] != nil
        description = ["host", "hostaddr", "port", "dbname", "user", "service"].compactMap { name in
            options[name].map { "\(name)=\($0)" }
        }.joined(separator: " ")
    }

    /// Nothing but the description, since a dump would show the connection string.
    package var customMirror: Mirror { Mirror(self, children: []) }

    /// Keywords and values for `PQconnectStartParams` with `expand_dbname`: what stands before `dbname` is a default
    /// that the connection string overrides, what stands behind it overrides the connection string.
    var keywords: [(name: String, value: String)] {
        var keywords = [(name: "fallback_application_name", value: applicationName)]
        // A service file fills only what is still open, so these would silence it.
        if !namesService && getenv("PGSERVICE") == nil {
            keywords += Self.deadPeerDetection
        }
        keywords.append((name: "dbname", value: connectionString))
        // Text is decoded as UTF-8 everywhere.
        keywords.append((name: "client_encoding", value: "UTF8"))
        return keywords
    }

    /// A dead peer is noticed within about 15 s: first probe after 5 s of silence, then every 3 s, three times; sent
    /// data must be acknowledged within 15 s (TCP_USER_TIMEOUT, in ms).
    private static let deadPeerDetection = [
        (name: "keepalives", value: "1"), (name: "keepalives_idle", value: "5"),
        (name: "keepalives_interval", value: "3"), (name: "keepalives_count", value: "3"),
        (name: "tcp_user_timeout", value: "15000"),
    ]
}
