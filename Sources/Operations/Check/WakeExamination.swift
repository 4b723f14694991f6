import EventLoop
import Postgres

/// Whether a notification really arrives on a session that listens. A proxy that pools transactions accepts LISTEN and
/// delivers nothing.
struct WakeExamination {
    /// How long each step may take: a notification needs milliseconds.
    private static let patience = Duration.seconds(5)

    /// Whether the worker is configured to listen.
    let listens: Bool

    /// Listens on a session of its own on a channel that nobody else has, and notifies it by `connection`.
    func run(
        on session: PostgresConfiguration, notifyingBy connection: PostgresConnection, place: String
    ) async -> CheckItem {
        guard listens else { return .ok(.wake, "not used: POSTBELL_WAKE=poll") }
        let channelName = "postbell_check_" + String(UInt64.random(in: .min ... .max), radix: 16)
        let signal = WakeSignal(on: connection.loop)
        let channel = NotificationChannel([channelName], on: connection.loop) { event in
            switch event {
            case .listening: signal.ring(.listening)
            case .notified: signal.ring(.notified)
            case .lost(let error, _): signal.ring(.lost(error))
            }
        }
        await channel.start(session)
        let item = await roundTrip(channelName, signal, connection, place)
        await channel.stop()
        return item
    }

    private func roundTrip(
        _ channelName: String, _ signal: WakeSignal, _ connection: PostgresConnection, _ place: String
    ) async -> CheckItem {
        switch await signal.next(within: Self.patience) {
        case .listening: break
        case .lost(let error): return CheckItem.failure(.wake, CommandFailure(error, place: place))
        case .notified, nil: return Self.silence
        }
        let sentAt = ContinuousClock.now
        do throws(PostgresError) {
            try await connection.execute("NOTIFY \(channelName)", named: "notify")
        } catch {
            return CheckItem.failure(.wake, CommandFailure(error, place: place))
        }
        guard case .notified = await signal.next(within: Self.patience) else { return Self.silence }
        return .ok(.wake, "a notification came back after \(DurationText.milliseconds(sentAt.duration(to: .now)))")
    }

    private static let silence = CheckItem.failure(
        .wake, .bad, "no notification came back within \(DurationText.format(patience))",
        next: "connect to PostgreSQL without a proxy that pools transactions, or set POSTBELL_WAKE=poll")
}

/// What the channel told, in order, for one waiter. Confined to the loop.
private actor WakeSignal {
    enum Event: Sendable {
        case listening
        case notified
        case lost(PostgresError)
    }

    private nonisolated let loop: EventLoop
    private var events: [Event] = []
    private var waiter: UnsafeContinuation<Void, Never>?

    init(on loop: EventLoop) {
        self.loop = loop
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Called on the loop.
    nonisolated func ring(_ event: Event) {
        assumeIsolated { signal in
            signal.events.append(event)
            signal.wake()
        }
    }

    /// The next event; nil when none comes in time.
    func next(within limit: Duration) async -> Event? {
        if events.isEmpty {
            let timer = loop.arm(at: .now + limit) { [weak self] in self?.assumeIsolated { $0.wake() } }
            await withUnsafeContinuation { continuation in
                if events.isEmpty { waiter = continuation } else { continuation.resume() }
            }
            loop.cancel(timer)
        }
        return events.isEmpty ? nil : events.removeFirst()
    }

    private func wake() {
        waiter?.resume()
        waiter = nil
    }
}
