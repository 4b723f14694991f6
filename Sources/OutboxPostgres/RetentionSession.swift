import EventLoop
import OutboxCore
import Postgres

/// The session on which retention is applied, beside the two of the store: what takes long there must hold up neither a
/// settle nor the renewal of a lease. Opened when it is time, and closed when nothing more is to be removed.
actor RetentionSession {
    private let loop: EventLoop
    private let configuration: PostgresConfiguration
    private var connection: PostgresConnection?

    /// How many notifications one call looks at: some milliseconds of a transaction.
    private static let batch = 500
    /// Longest time for one statement.
    private static let limit = Duration.seconds(5)

    init(_ configuration: PostgresConfiguration, on loop: EventLoop) {
        var configuration = configuration
        configuration.applicationName = "postbell retention"
        configuration.connectTimeout = .seconds(5)
        self.configuration = configuration
        self.loop = loop
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        loop.asUnownedSerialExecutor()
    }

    /// Removes one batch of rows and one day of the ledger, each by itself: one that fails does not keep the other.
    /// Answers whether there is more to look at.
    func retain() async throws(PostgresError) -> Bool {
        let session = try await open()
        var isBehind = false
        var failure: PostgresError?
        for command in [RetainStatement.command(limit: Self.batch), PostgresCommand(RetainStatement.day)] {
            do throws(PostgresError) {
                let result = try await session.query(
                    command.statement, command.parameters, deadline: .now + Self.limit)
                if try result.bool(0, 0) { isBehind = true }
            } catch {
                failure = failure ?? error
            }
        }
        if !isBehind || failure != nil { await close() }
        if let failure { throw failure }
        return isBehind
    }

    /// Closes the session.
    func stop() async {
        await close()
    }

    private func open() async throws(PostgresError) -> PostgresConnection {
        if let connection { return connection }
        let opened = try await PostgresConnection.connect(configuration, on: loop)
        connection = opened
        return opened
    }

    private func close() async {
        let closing = connection
        connection = nil
        await closing?.close()
    }
}
