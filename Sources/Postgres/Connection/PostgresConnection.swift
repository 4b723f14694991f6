package import EventLoop

/// One session on a PostgreSQL server, driven by the loop without blocking it.
///
/// Calls are served one at a time in order of arrival, each under a deadline. At the deadline the server is asked to
/// cancel; a server that does not obey within `cancelGrace` loses the connection. A task's own cancellation is not
/// looked at: what was sent is answered or ends at its deadline.
///
/// States: open (→ closed by `close()`, by a fault, by the server); closed is final, every call then throws.
package actor PostgresConnection {
    /// The loop that carries it.
    package nonisolated let loop: EventLoop
    /// What it was opened with.
    package nonisolated let configuration: PostgresConfiguration
    let wire: Wire
    private let turns: TurnQueue
    /// Statements prepared in this session: text by name.
    var prepared: [String: String] = [:]
    /// Names that the server may still hold although they are of no use any more.
    var stale: Set<String> = []
    /// The deadline of the statement under way.
    var deadline = StatementDeadline()

    /// Connects within the configuration's `connectTimeout`. Throws an error of kind `connection`, `server` (with
    /// SQLSTATE: wrong password, missing database, no connection free, starting up), `deadline`, or `recovery` when the
    /// server accepts no writes.
    package static func connect(
        _ configuration: PostgresConfiguration, on loop: EventLoop
    ) async throws(PostgresError) -> PostgresConnection {
        let deadline = ContinuousClock.now + configuration.connectTimeout
        let address = try await Connector(configuration, on: loop).connect()
        let connection = PostgresConnection(owning: address, configuration, on: loop)
        try await connection.begin(until: deadline)
        return connection
    }

    private init(owning address: UInt, _ configuration: PostgresConfiguration, on loop: EventLoop) {
        self.loop = loop
        self.configuration = configuration
        wire = Wire(owning: address, on: loop)
        turns = TurnQueue(on: loop, limit: configuration.queueLimit)
    }

    isolated deinit {
        wire.end(PostgresError(.closed, operation: "connection", message: "the connection was released"))
    }

    package nonisolated var unownedExecutor: UnownedSerialExecutor {
        loop.asUnownedSerialExecutor()
    }

    /// Whether statements can still be sent.
    package var isOpen: Bool { wire.isOpen }

    /// Closes the session. Statements under way or waiting throw.
    package func close() {
        wire.end(PostgresError(.closed, operation: "connection", message: "the connection was closed"))
    }

    /// Closes the session because of `reason`, which `whenEnded` reports. Statements under way or waiting throw.
    package func drop(_ reason: PostgresError) {
        wire.end(reason)
    }

    /// Calls `ended` on the loop, once, when the connection has ended, with the reason; at once if it has ended
    /// already.
    package func whenEnded(_ ended: @escaping @Sendable (PostgresError) -> Void) {
        if let reason = wire.reason { ended(reason) } else { wire.ended = ended }
    }

    /// Calls `notified` on the loop for each notification of the session's channels. The payload is not looked at.
    package func whenNotified(_ notified: @escaping @Sendable (_ channel: String) -> Void) {
        wire.notified = notified
    }

    /// Executes one statement and returns its rows in binary format.
    ///
    /// It is prepared at its first use on the connection. Should a change of the schema have made the prepared form
    /// useless, it is prepared again and repeated once, which is safe because the server refused it unexecuted.
    /// `deadline` defaults to `statementDeadline` from now.
    package func query(
        _ statement: PostgresStatement, _ parameters: PostgresParameters = PostgresParameters(),
        deadline: ContinuousClock.Instant? = nil
    ) async throws(PostgresError) -> PostgresResult {
        parameters.requireMatch(statement)
        return try await perform(statement.name, deadline) { () async throws(PostgresError) in
            try await run(PostgresCommand(statement, parameters))
        }
    }

    /// Executes SQL text, which may hold several statements, and returns the last one's rows in text format. Without
    /// explicit transactions all of it is one. For scripts and migrations; values belong into `query`.
    @discardableResult
    package func execute(
        _ sql: String, named name: String = "script", deadline: ContinuousClock.Instant? = nil
    ) async throws(PostgresError) -> PostgresResult {
        try await perform(name, deadline) { () async throws(PostgresError) in
            try await runScript(sql, named: name)
        }
    }

    /// Sends all commands at once and returns each one's rows or error, in order.
    ///
    /// Throws only when nothing was sent. An error of the connection stands in every place that it left unanswered.
    /// With `.each`, libpq 15 and 16 make one system call per command.
    package func pipeline(
        _ commands: [PostgresCommand], commit: PipelineCommit = .each, deadline: ContinuousClock.Instant? = nil
    ) async throws(PostgresError) -> [Result<PostgresResult, PostgresError>] {
        precondition(commands.count <= Self.pipelineLimit, "a pipeline has at most \(Self.pipelineLimit) commands")
        for command in commands { command.parameters.requireMatch(command.statement) }
        guard let name = commands.first?.statement.name else { return [] }
        return try await perform(name, deadline) { () async throws(PostgresError) in
            try await runPipeline(commands, commit)
        }
    }

    /// Runs `body` as the only one on the connection and under a deadline.
    func perform<Value>(
        _ name: String, _ deadline: ContinuousClock.Instant?, _ body: () async throws(PostgresError) -> Value
    ) async throws(PostgresError) -> Value {
        let deadline = deadline ?? .now + configuration.statementDeadline
        try await turns.enter(name, until: deadline)
        wire.beginUse()
        startDeadline(name, at: deadline)
        let outcome: Result<Value, PostgresError>
        do { outcome = .success(try await body()) } catch { outcome = .failure(error) }
        await endDeadline()
        wire.endUse()
        turns.leave()
        return try outcome.get()
    }

    /// Most commands in one pipeline: their answers are held in memory until the last has come.
    package static let pipelineLimit = 10_000
}
