import EventLoop
import OutboxCore
import Postgres

/// The sessions on which hooks of kinds are asked, beside the two of the store: opened when there is a question, as
/// many as there are questions at one time (`DispatchState.hookCallLimit`), and closed when they were idle for a while.
actor HookSessions {
    private let loop: EventLoop
    private let configuration: PostgresConfiguration
    private var idle: [(connection: PostgresConnection, since: ContinuousClock.Instant)] = []
    private var isStopped = false

    /// How long an idle session is kept.
    private static let idleLimit = Duration.seconds(60)
    /// What a call may take longer than its hooks, before the server is asked to cancel it: the server's own limit
    /// comes first unless a function has changed that.
    private static let patience = Duration.seconds(1)

    init(_ configuration: PostgresConfiguration, on loop: EventLoop) {
        var configuration = configuration
        // The function's tables are the app's: the server's planner as it is.
        let pins = Set(PostgresOutboxStore.sessionSettings.map(\.name))
        if !configuration.settings.isEmpty {
            configuration.settings = configuration.settings.filter { !pins.contains($0.name) } + Self.settings
        }
        configuration.applicationName = "postbell hooks"
        configuration.connectTimeout = .seconds(5)
        // A function that does not heed a cancel request costs the session.
        configuration.cancelGrace = .seconds(1)
        self.configuration = configuration
        self.loop = loop
    }

    /// `client_connection_check_interval`: the server ends a function whose session was given up, though it heeds
    /// nothing else.
    private static let settings: [(name: String, value: String)] = [
        ("TimeZone", "UTC"), ("idle_in_transaction_session_timeout", "10s"),
        ("client_connection_check_interval", "1s"),
    ]

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        loop.asUnownedSerialExecutor()
    }

    /// Asks hooks of one kind, one after the other.
    func ask(_ hooks: [KindHook], about notifications: [Identifier]) async throws(HookFault) -> [HookReply] {
        let first = hooks.first?.purpose
        let connection: PostgresConnection
        do { connection = try await take() } catch {
            throw HookFault(first, .unreachable, sqlState: error.sqlState?.code ?? "")
        }
        let limit = hooks.reduce(Self.patience) { $0 + $1.timeout }
        let results: [Result<PostgresResult, PostgresError>]
        do {
            results = try await connection.pipeline(
                HookStatement.commands(hooks, about: notifications), deadline: .now + limit)
        } catch {
            await connection.close()
            throw HookFault(first, error)
        }
        guard case .success? = results.last, !isStopped else {
            // The transaction did not end as it must: the session is not to be used again.
            await connection.close()
            return try HookStatement.replies(results, to: hooks)
        }
        idle.append((connection, .now))
        return try HookStatement.replies(results, to: hooks)
    }

    private func take() async throws(PostgresError) -> PostgresConnection {
        guard !isStopped else { throw PostgresError(.closed, operation: "hook", message: "the store was stopped") }
        if let kept = idle.popLast() { return kept.connection }
        return try await PostgresConnection.connect(configuration, on: loop)
    }

    /// Closes what was idle for long.
    func tidy() async {
        let old = idle.filter { $0.since + Self.idleLimit <= .now }
        idle.removeAll { $0.since + Self.idleLimit <= .now }
        for (connection, _) in old { await connection.close() }
    }

    /// Closes all that is idle, and what is in use when its answer has come.
    func stop() async {
        isStopped = true
        let all = idle
        idle = []
        for (connection, _) in all { await connection.close() }
    }
}
