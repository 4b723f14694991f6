package import EventLoop

/// What a notification channel tells its owner; reported on the loop.
package enum NotificationEvent: Sendable {
    /// LISTEN stands, for the first time or again. What was notified before is lost, so look for work now.
    case listening
    /// Somebody notified the channel, once or many times.
    case notified(channel: String)
    /// The session was lost; it is made again after the wait.
    case lost(because: PostgresError, retryAfter: Duration)
}

/// LISTEN on a session of its own, which never opens a transaction and is made again whenever it breaks.
///
/// Every `heartbeat` the session must answer, within `heartbeatDeadline`, that it still listens: so a half-open
/// connection, a backend that hangs, and a proxy that passed us to another session are noticed within about
/// `heartbeat + heartbeatDeadline + cancelGrace`, beside what TCP keep-alive notices. A notification's payload is
/// ignored: any role may send one. It must be stopped: until then its tasks keep it alive.
package actor NotificationChannel {
    private let loop: EventLoop
    private let channels: [String]
    private let heartbeat: Duration
    private let heartbeatDeadline: Duration
    private let handle: @Sendable (NotificationEvent) -> Void
    private var session: PostgresSession?
    private var listener: PostgresConnection?
    private var pulse: Task<Void, Never>?

    /// A channel that does nothing before `start(_:backoff:)`. `handle` is called on the loop.
    package init(
        _ channels: [String], on loop: EventLoop, heartbeat: Duration = .seconds(5),
        heartbeatDeadline: Duration = .seconds(3), handle: @escaping @Sendable (NotificationEvent) -> Void
    ) {
        precondition(
            !channels.isEmpty && Set(channels).count == channels.count
                && channels.allSatisfy { !$0.isEmpty && $0.utf8.count <= 63 },
            "channels are different names of 1–63 bytes, at least one")
        self.loop = loop
        self.channels = channels
        self.heartbeat = heartbeat
        self.heartbeatDeadline = heartbeatDeadline
        self.handle = handle
    }

    package nonisolated var unownedExecutor: UnownedSerialExecutor {
        loop.asUnownedSerialExecutor()
    }

    /// Since when LISTEN stands; nil while it does not.
    package var listeningSince: ContinuousClock.Instant? {
        get async { await session?.healthySince }
    }

    /// Begins to listen; a second call changes nothing.
    package func start(_ configuration: PostgresConfiguration, backoff: ReconnectBackoff = ReconnectBackoff()) async {
        guard session == nil else { return }
        let session = PostgresSession(
            configuration, on: loop, backoff: backoff,
            prepare: { [weak self] (connection) async throws(PostgresError) in try await self?.listen(on: connection) },
            observe: { [handle] event in
                switch event {
                case .connected: handle(.listening)
                case .disconnected(let reason, let wait): handle(.lost(because: reason, retryAfter: wait))
                }
            })
        self.session = session
        pulse = Task(executorPreference: loop) { await self.beat() }
        await session.start()
    }

    /// Closes the session for good.
    package func stop() async {
        pulse?.cancel()
        await session?.stop()
        await pulse?.value
        listener = nil
    }

    private func listen(on connection: PostgresConnection) async throws(PostgresError) {
        await connection.whenNotified { [handle] channel in handle(.notified(channel: channel)) }
        let statements = channels.map { "LISTEN " + quoted(identifier: $0) }
        try await connection.execute(statements.joined(separator: ";"), named: "listen")
        listener = connection
    }

    // MARK: Heartbeat

    private static let check = PostgresStatement(
        "heartbeat",
        "SELECT count(*) FROM pg_catalog.pg_listening_channels() AS channel WHERE channel = ANY ($1)",
        parameterTypes: [.text.array])

    private func beat() async {
        while !Task.isCancelled {
            try? await loop.sleep(for: heartbeat)
            guard !Task.isCancelled, let listener else { continue }
            if let fault = await fault(of: listener) { await listener.drop(fault) }
        }
    }

    /// Why `listener` is of no use any more; nil while it answers that it listens.
    private func fault(of listener: PostgresConnection) async -> PostgresError? {
        guard await listener.isOpen else { return nil }
        var parameters = PostgresParameters()
        parameters.append(PostgresArray(channels))
        do throws(PostgresError) {
            let result = try await listener.query(Self.check, parameters, deadline: .now + heartbeatDeadline)
            guard try result.int8(0, 0) < Int64(channels.count) else { return nil }
            return PostgresError(.connection, operation: "heartbeat", message: "the session does not listen any more")
        } catch {
            return error
        }
    }
}

/// `identifier` as SQL takes it literally.
private func quoted(identifier: String) -> String {
    "\"" + identifier.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"") + "\""
}
