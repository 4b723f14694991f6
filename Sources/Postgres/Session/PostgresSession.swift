package import EventLoop

/// What happens to a session; reported on the loop.
package enum PostgresSessionEvent: Sendable {
    /// A connection is up and prepared.
    case connected
    /// The connection ended, or an attempt failed; the next attempt comes after the wait.
    case disconnected(because: PostgresError, retryAfter: Duration)
}

/// A session that is made again whenever it breaks.
///
/// Statements issued while it is down wait until it is up or their deadline has passed; none is ever repeated that may
/// have run. It must be stopped: until then its task keeps it alive.
///
/// States: idle (→ down at `start()`), down (→ up when a connection stands), up (→ down when it ends); any (→ stopped).
package actor PostgresSession {
    /// Prepares a new connection before the session counts as up; if it throws, the connection is closed.
    package typealias Preparation = @Sendable (PostgresConnection) async throws(PostgresError) -> Void

    private let loop: EventLoop
    private let configuration: PostgresConfiguration
    private let backoff: ReconnectBackoff
    private let random: @Sendable () -> Double
    private let prepare: Preparation?
    private let observe: @Sendable (PostgresSessionEvent) -> Void
    private var connection: PostgresConnection?
    private var since: ContinuousClock.Instant?
    private var lastFailure: PostgresError?
    private var waiting: [Latch] = []
    private var life: Task<Void, Never>?
    private var isStopped = false
    private var end: UnsafeContinuation<Void, Never>?
    private var endReason: PostgresError?

    /// A session that does nothing before `start()`. `random` (0..<1) places each wait within its range; `observe` is
    /// called on the loop.
    package init(
        _ configuration: PostgresConfiguration, on loop: EventLoop, backoff: ReconnectBackoff = ReconnectBackoff(),
        random: @escaping @Sendable () -> Double = { Double.random(in: 0..<1) }, prepare: Preparation? = nil,
        observe: @escaping @Sendable (PostgresSessionEvent) -> Void = { _ in }
    ) {
        self.configuration = configuration
        self.loop = loop
        self.backoff = backoff
        self.random = random
        self.prepare = prepare
        self.observe = observe
    }

    package nonisolated var unownedExecutor: UnownedSerialExecutor {
        loop.asUnownedSerialExecutor()
    }

    /// Since when the present connection stands; nil while there is none.
    package var healthySince: ContinuousClock.Instant? { since }

    /// Begins to connect; a second call changes nothing.
    package func start() {
        guard life == nil, !isStopped else { return }
        life = Task(executorPreference: loop) { await self.run() }
    }

    /// Closes the connection for good. Waiting statements throw an error of kind `closed`.
    package func stop() async {
        isStopped = true
        life?.cancel()
        await connection?.close()
        resumeWaiters()
        await life?.value
    }

    /// See `PostgresConnection.query`; waits for a connection first, until `deadline`.
    package func query(
        _ statement: PostgresStatement, _ parameters: PostgresParameters = PostgresParameters(),
        deadline: ContinuousClock.Instant? = nil
    ) async throws(PostgresError) -> PostgresResult {
        try await use(statement.name, deadline) { (connection, deadline) async throws(PostgresError) in
            try await connection.query(statement, parameters, deadline: deadline)
        }
    }

    /// See `PostgresConnection.execute`; waits for a connection first, until `deadline`.
    @discardableResult
    package func execute(
        _ sql: String, named name: String = "script", deadline: ContinuousClock.Instant? = nil
    ) async throws(PostgresError) -> PostgresResult {
        try await use(name, deadline) { (connection, deadline) async throws(PostgresError) in
            try await connection.execute(sql, named: name, deadline: deadline)
        }
    }

    /// See `PostgresConnection.pipeline`; waits for a connection first, until `deadline`.
    package func pipeline(
        _ commands: [PostgresCommand], commit: PipelineCommit = .each, deadline: ContinuousClock.Instant? = nil
    ) async throws(PostgresError) -> [Result<PostgresResult, PostgresError>] {
        let name = commands.first?.statement.name ?? "pipeline"
        return try await use(name, deadline) { (connection, deadline) async throws(PostgresError) in
            let results = try await connection.pipeline(commands, commit: commit, deadline: deadline)
            // A fault in the middle must end the session as a thrown one does.
            for case .failure(let error) in results where error.isConnectionFault { await connection.drop(error) }
            return results
        }
    }

    // MARK: Using a connection

    private func use<Value: Sendable>(
        _ name: String, _ deadline: ContinuousClock.Instant?,
        _ body: (PostgresConnection, ContinuousClock.Instant) async throws(PostgresError) -> Value
    ) async throws(PostgresError) -> Value {
        let deadline = deadline ?? .now + configuration.statementDeadline
        while true {
            let connection = try await connected(name, until: deadline)
            do { return try await body(connection, deadline) } catch {
                // A server that has become read-only answers politely; the session has to look for another all the
                // same.
                if error.isConnectionFault { await connection.drop(error) }
                guard error.kind == .closed, !error.mayHaveRun, !isStopped else { throw error }
            }
            // It had ended before the statement was sent, so the next one may have it.
            if self.connection === connection { self.connection = nil }
        }
    }

    private func connected(
        _ name: String, until deadline: ContinuousClock.Instant
    ) async throws(PostgresError) -> PostgresConnection {
        while true {
            if let connection { return connection }
            guard !isStopped else {
                throw PostgresError(.closed, operation: name, message: "the session was stopped")
            }
            guard ContinuousClock.now < deadline else { throw noConnection(name) }
            guard waiting.count < configuration.queueLimit else {
                throw PostgresError(.overloaded, operation: name, message: "too many statements wait for a connection")
            }
            let waiter = Latch()
            waiting.append(waiter)
            let timer = loop.arm(at: deadline) { waiter.open() }
            await waiter.wait()
            loop.cancel(timer)
            waiting.removeAll { $0 === waiter }
        }
    }

    private func noConnection(_ name: String) -> PostgresError {
        let reason = lastFailure.map { ": \($0.message)" } ?? ""
        return PostgresError(.connection, operation: name, message: "no connection by the deadline\(reason)")
    }

    private func resumeWaiters() {
        for waiter in waiting { waiter.open() }
    }

    // MARK: Keeping it alive

    private func run() async {
        var failures = 0
        while !isStopped {
            let reason: PostgresError
            var lived = Duration.zero
            do {
                let opened = try await open()
                let begin = ContinuousClock.now
                reason = await live(opened, since: begin)
                lived = begin.duration(to: .now)
            } catch {
                reason = error
            }
            if isStopped { return }
            failures = lived >= backoff.stableAfter ? 1 : failures + 1
            lastFailure = reason
            let wait = backoff.delay(afterFailures: failures, random: random())
            observe(.disconnected(because: reason, retryAfter: wait))
            try? await loop.sleep(for: wait)
        }
    }

    private func open() async throws(PostgresError) -> PostgresConnection {
        let opened = try await PostgresConnection.connect(configuration, on: loop)
        do { try await prepare?(opened) } catch {
            await opened.drop(error)
            throw error
        }
        return opened
    }

    /// Returns when the connection has ended, with the reason.
    private func live(_ opened: PostgresConnection, since begin: ContinuousClock.Instant) async -> PostgresError {
        guard !isStopped else {
            await opened.close()
            return PostgresError(.closed, operation: "connection", message: "the session was stopped")
        }
        connection = opened
        since = begin
        observe(.connected)
        resumeWaiters()
        await opened.whenEnded { [weak self] reason in self?.assumeIsolated { $0.ended(opened, reason) } }
        await withUnsafeContinuation { if endReason == nil { end = $0 } else { $0.resume() } }
        guard let reason = endReason else { preconditionFailure("a session was resumed before its connection ended") }
        endReason = nil
        return reason
    }

    private func ended(_ ended: PostgresConnection, _ reason: PostgresError) {
        if connection === ended { connection = nil }
        since = nil
        endReason = reason
        end?.resume()
        end = nil
    }
}
