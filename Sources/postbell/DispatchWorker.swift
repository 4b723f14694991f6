import DispatchRuntime
import EventLoop
import Glibc
import Operations
import OutboxCore
import OutboxPostgres
import Postgres
import Telemetry

/// The worker process: signals, sessions and the dispatcher, brought up in order and taken down in the reverse one.
actor DispatchWorker {
    private let environment: DispatchEnvironment
    private let database: PostgresConfiguration
    private let lanes: [LaneConfiguration]
    private let stopSignal: StopSignal
    private var dispatcher: Dispatcher?
    private var store: PostgresOutboxStore?
    private var signals: [SignalSource] = []
    /// Why sessions of the store were down, and that of LISTEN, as far as the log has been told.
    private var sessionTrouble = RepeatedTrouble()
    private var listenTrouble = RepeatedTrouble()

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        environment.loop.asUnownedSerialExecutor()
    }

    /// A worker that has not reached for anything yet. Throws what is wrong with its credentials.
    init(_ environment: DispatchEnvironment) throws(CommandFailure) {
        self.environment = environment
        stopSignal = StopSignal(on: environment.loop)
        lanes = try WorkerLanes(environment.configuration, log: environment.log).make(on: environment.loop)
        do throws(PostgresError) {
            var database = try PostgresConfiguration(environment.configuration.database.connectionString)
            database.applicationName = "postbell dispatch"
            database.statementDeadline = Self.statementDeadline
            database.cancelGrace = Self.cancelGrace
            // Behind a proxy that pools transactions, the next statement may meet another session, which knows no name.
            database.preparesStatements = environment.configuration.dispatch.listens
            self.database = database
        } catch {
            throw CommandFailure(error, place: environment.databasePlace)
        }
    }

    /// As long as the server itself lets a statement run; then a session that is half-open is found within fifteen
    /// seconds: one until it is used, these, and the grace.
    private static let statementDeadline = Duration.seconds(10)
    private static let cancelGrace = Duration.seconds(3)

    /// Runs until it is told to stop. Throws when the schema is not the one this program knows.
    func run() async throws(CommandFailure) -> ExitCode {
        // Until the process exits: a signal that came a moment too late would be its death.
        handleSignals()
        let gate = DatabaseGate(database: database, environment: environment, stopSignal: stopSignal)
        guard try await gate.schemaIsCurrent() else { return .done }
        let store = PostgresOutboxStore(
            database, on: environment.loop, owner: freshIdentifier(), name: DispatchIdentity.workerName(),
            observe: { [weak self] event in self?.assumeIsolated { $0.tell(event) } })
        self.store = store
        await store.start()
        if let now = await gate.time(of: store) { await dispatch(from: store, now: now) }
        environment.notifier.stopping()
        await store.stop()
        return .done
    }

    private func dispatch(from store: PostgresOutboxStore, now: Timestamp) async {
        let dispatcher = Dispatcher(
            on: environment.loop, store: store, observer: DispatchLog(environment.log),
            settings: DispatcherSettings(environment.configuration), lanes: lanes, now: now,
            seed: UInt64.random(in: .min ... .max))
        self.dispatcher = dispatcher
        let channel = await listen(for: dispatcher)
        environment.notifier.ready()
        environment.notifier.status("dispatching, \(lanes.count) lanes")
        let watchdog = feedWatchdog()
        if stopSignal.count > 0 { await dispatcher.stop() }
        await dispatcher.run()
        watchdog?.cancel()
        await channel?.stop()
    }

    /// LISTEN on a session of its own; nil when the worker is to find its work by the poll alone.
    private func listen(for dispatcher: Dispatcher) async -> NotificationChannel? {
        guard environment.configuration.dispatch.listens else { return nil }
        var database = database
        database.applicationName = "postbell listen"
        let channel = NotificationChannel(["postbell"], on: environment.loop) { [weak self, weak dispatcher] event in
            switch event {
            case .listening:
                self?.assumeIsolated { $0.listenTrouble.isOver() }
                dispatcher?.assumeIsolated { $0.wake() }
            case .notified:
                dispatcher?.assumeIsolated { $0.wake() }
            case .lost(let error, let wait):
                self?.assumeIsolated { $0.tellOfLoss(error, wait) }
            }
        }
        await channel.start(database)
        return channel
    }

    // MARK: Signals and the service manager

    private func handleSignals() {
        for number in [SIGTERM, SIGINT] {
            signals.append(
                SignalSource(number, on: environment.loop) { [weak self] count in
                    self?.assumeIsolated { $0.stopRequested(count) }
                })
        }
        signals.append(
            SignalSource(SIGHUP, on: environment.loop) { [weak self] _ in
                self?.assumeIsolated { $0.reloadRequested() }
            })
    }

    private func reloadRequested() {
        environment.log.notice("credentials are read again", [.signal: "SIGHUP"])
        // Before there is a dispatcher there is no credential in use.
        dispatcher?.assumeIsolated { $0.reloadCredentials() }
    }

    private func stopRequested(_ count: Int) {
        for _ in 0..<count {
            let isFirst = stopSignal.count == 0
            stopSignal.ring()
            closeStore(after: (isFirst ? environment.configuration.dispatch.stopTimeout : .zero) + Self.lastWrites)
            if let dispatcher {
                // Twice aborts: whoever asks again does not want to wait.
                Task(executorPreference: environment.loop) { await dispatcher.stop() }
            }
        }
    }

    /// What is left for writing after requests were aborted; the dispatcher gives up within it.
    private static let lastWrites = Duration.seconds(3)

    /// Ends what still waits for a database that is away, so that the worker ends when it is told to.
    private func closeStore(after limit: Duration) {
        guard let store else { return }
        Task(executorPreference: environment.loop) { [loop = environment.loop] in
            try? await loop.sleep(for: limit)
            await store.stop()
        }
    }

    /// Says to the service manager that the loop turns, twice as often as it wants to hear it.
    private func feedWatchdog() -> Task<Void, Never>? {
        guard let interval = environment.notifier.watchdogInterval else { return nil }
        let (loop, notifier) = (environment.loop, environment.notifier)
        return Task(executorPreference: loop) {
            while !Task.isCancelled {
                notifier.watchdog()
                try? await loop.sleep(for: interval / 2)
            }
        }
    }

    // MARK: What is said of sessions

    /// One line per change of a session; attempts that go on failing for the same reason are for debugging.
    private func tell(_ event: PostgresSessionEvent) {
        switch event {
        case .connected:
            sessionTrouble.isOver()
            environment.log.info("database session is up")
        case .disconnected(let error, let wait):
            let isNews = sessionTrouble.isNews(error.message, at: .now)
            environment.log.write(
                isNews ? .warning : .debug, "database session is down",
                [
                    .cause: .text(error.message), .sqlstate: .text(error.sqlState?.code ?? ""),
                    .delay: .duration(wait),
                ])
        }
    }

    private func tellOfLoss(_ error: PostgresError, _ wait: Duration) {
        let isNews = listenTrouble.isNews(error.message, at: .now)
        environment.log.write(
            isNews ? .warning : .debug, "notifications are lost until the session is back; the poll finds new rows",
            [.cause: .text(error.message), .delay: .duration(wait)])
    }
}

/// A name that never repeats, from the system's randomness.
func freshIdentifier() -> Identifier {
    var generator = SystemRandomNumberGenerator()
    return .random(using: &generator)
}
