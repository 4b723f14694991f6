import EventLoop
import Foundation
import HTTP2

/// A result with its bytes, as tests look at it.
struct Ended: Sendable {
    let tag: UInt64
    let outcome: Result<HTTPResponse, HTTPFault>
    let body: [UInt8]
    let captured: [String]
    let wasSent: Bool

    var status: Int? { (try? outcome.get())?.status }

    var fault: HTTPFault? {
        if case .failure(let fault) = outcome { fault } else { nil }
    }
}

/// A client on a loop of its own, with everything it has told.
actor ClientHarness {
    nonisolated let loop: EventLoop
    private struct Waiter {
        let number: Int
        let condition: @Sendable (isolated ClientHarness) -> Bool
        let continuation: UnsafeContinuation<Bool, Never>
    }

    private(set) var results: [Ended] = []
    private(set) var states: [HTTP2ClientState] = []
    private var client: HTTP2Client?
    private var waiters: [Waiter] = []
    private var waitersMade = 0

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(on loop: EventLoop) {
        self.loop = loop
    }

    /// Runs `body` with a client of a server at `port` and closes it afterwards.
    static func run(
        port: UInt16, _ change: (inout HTTP2ClientConfiguration) throws -> Void = { _ in },
        lookUp: @escaping HTTP2Client.AddressLookUp = { try await Resolver.addresses(of: $0, port: $1, on: $2) },
        _ body: @Sendable (ClientHarness) async throws -> Void
    ) async throws {
        await Turnstile.shared.enter()
        defer { Turnstile.shared.leave() }
        var configuration = HTTP2ClientConfiguration(host: "127.0.0.1", port: port)
        configuration.caFile = TestCertificates.shared.caFile
        configuration.capturedHeaders = ["apns-id", "apns-unique-id"]
        try change(&configuration)
        let loop = EventLoop.startThread(name: "http2-test")
        let harness = ClientHarness(on: loop)
        await harness.begin(configuration, lookUp)
        do {
            try await body(harness)
        } catch {
            await harness.close()
            loop.stop()
            throw error
        }
        await harness.close()
        loop.stop()
    }

    private func begin(_ configuration: HTTP2ClientConfiguration, _ lookUp: @escaping HTTP2Client.AddressLookUp) {
        client = HTTP2Client(configuration, on: loop, lookUp: lookUp) { [weak self] results in
            self?.assumeIsolated { $0.take(results) }
        } stateChanged: { [weak self] state in
            self?.assumeIsolated {
                $0.states.append(state)
                if case .down(_, let retryAt) = state { $0.downWaits.append(retryAt - .now) }
                $0.check()
            }
        }
    }

    private func take(_ batch: HTTPResultBatch) {
        for result in batch.results {
            var body: [UInt8] = []
            var captured = [String](repeating: "", count: 4)
            if case .success(let response) = result.outcome {
                body = Array(batch[response.body])
                captured = (0..<4).map { String(decoding: batch[response.captured[$0]], as: UTF8.self) }
            }
            results.append(
                Ended(
                    tag: result.tag, outcome: result.outcome, body: body, captured: captured,
                    wasSent: result.sentAt != nil))
        }
        check()
    }

    private func check() {
        let met = waiters.filter { $0.condition(self) }
        waiters.removeAll { waiter in met.contains { $0.number == waiter.number } }
        for waiter in met { waiter.continuation.resume(returning: true) }
    }

    /// Waits until `condition` holds; checked whenever the client tells something, and in short steps. Fails after 20
    /// seconds.
    func wait(
        _ what: String, until condition: @escaping @Sendable (isolated ClientHarness) -> Bool
    ) async throws {
        waitersMade += 1
        let number = waitersMade
        let timer = loop.arm(at: .now + .seconds(20)) { [weak self] in self?.assumeIsolated { $0.giveUp(number) } }
        let isMet = await withUnsafeContinuation {
            waiters.append(Waiter(number: number, condition: condition, continuation: $0))
            look()
        }
        loop.cancel(timer)
        guard isMet else { throw HarnessError(what: what, states: states, results: results.map { "\($0.outcome)" }) }
    }

    /// Checks now and, for what is not told, again and again while anybody waits.
    private func look() {
        check()
        guard !waiters.isEmpty else { return }
        loop.arm(at: .now + .milliseconds(5)) { [weak self] in self?.assumeIsolated { $0.look() } }
    }

    private func giveUp(_ number: Int) {
        guard let index = waiters.firstIndex(where: { $0.number == number }) else { return }
        waiters.remove(at: index).continuation.resume(returning: false)
    }

    /// Waits for `count` results in all.
    func results(_ count: Int) async throws -> [Ended] {
        try await wait("\(count) results") { $0.results.count >= count }
        return results
    }

    var statistics: HTTP2Statistics { client.map { client in client.assumeIsolated { $0.statistics } } ?? .init() }
    var capacity: Int { client.map { client in client.assumeIsolated { $0.capacity } } ?? 0 }

    /// The limits that were told, in order.
    var streamsTold: [Int] {
        states.compactMap { if case .up(let streams) = $0 { streams } else { nil } }
    }

    /// Why there was no connection, the last time.
    var downError: HTTP2ConnectionError? {
        states.compactMap { if case .down(let error, _) = $0 { error } else { nil } }.last
    }

    /// Its code.
    var downCode: HTTP2ConnectionError.Code? { downError?.code }

    /// Why there was no connection, each time, as people read it.
    var downReasons: [String] {
        states.compactMap { if case .down(let error, _) = $0 { error.description } else { nil } }
    }

    /// How long the client said it would wait, each time, at most.
    private(set) var downWaits: [Duration] = []

    /// Why connections were replaced, in order.
    var replacedReasons: [String] {
        states.compactMap { if case .replacing(let error) = $0 { error.reason } else { nil } }
    }

    /// Sends requests without a body until one is answered, so that a test's deadlines do not run while a busy machine
    /// still makes the connection. Exactly one reaches the server, and its result is forgotten.
    func warmUp() async throws {
        repeat {
            results = []
            submit(1, first: 1000, body: [])
            _ = try await results(1)
        } while results[0].status != 200
        results = []
    }

    func replaceConnections() { client?.assumeIsolated { $0.replaceConnections() } }

    func cancelQueued() { client?.assumeIsolated { $0.cancelQueued() } }

    func close(within limit: Duration = .zero) async {
        await client?.close(within: limit)
    }

    /// Submits `count` requests like those to APNs, tagged from `first`; `sendBy` is the end of the right to send them.
    func submit(
        _ count: Int = 1, first: UInt64 = 1, body: [UInt8] = Array("{}".utf8),
        sendBy: ContinuousClock.Instant? = nil
    ) {
        var batch = HTTPRequestBatch()
        batch.sendBy = sendBy
        let shared = batch.addSharedHeaders([
            HTTPHeader("authorization", "bearer secret", isSensitive: true),
            HTTPHeader("apns-topic", "com.example.app"),
        ])
        let content = batch.append { $0 += body }
        for tag in first..<first + UInt64(count) {
            let path = batch.append { $0 += Array("/3/device/\(tag)".utf8) }
            let identifier = batch.append { $0 += Array("id-\(tag)".utf8) }
            batch.add(
                tag: tag, shared: shared, path: path,
                fields: [HTTPRequestField(HTTPFieldName("apns-id"), identifier)], body: content)
        }
        client?.assumeIsolated { $0.submit(batch) }
    }
}

extension ClientHarness {
    /// Submits requests and keeps the client's loop from everything else, also from sending them, while `body` runs.
    func submit(_ count: Int, then body: @Sendable () -> Void) {
        submit(count)
        body()
    }

    /// Keeps the client's loop from everything else while `body` runs, and then submits a request: it is written before
    /// anything is read that has come meanwhile.
    func submitUnheard(_ count: Int = 1, first: UInt64, after body: @Sendable () -> Void) {
        body()
        submit(count, first: first)
    }
}

/// What a harness waited for in vain.
struct HarnessError: Error {
    let what: String
    let states: [HTTP2ClientState]
    let results: [String]
}

/// Lets a few tests through at a time. Their deadlines are real time, and a hundred handshakes at once would eat it up.
final class Turnstile: Sendable {
    static let shared = Turnstile(places: 3)

    private struct State {
        var free: Int
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state: Guarded<State>

    init(places: Int) {
        state = Guarded(State(free: places))
    }

    func enter() async {
        await withCheckedContinuation { continuation in
            let goes = state.withLock { state in
                guard state.free == 0 else {
                    state.free -= 1
                    return true
                }
                state.waiting.append(continuation)
                return false
            }
            if goes { continuation.resume() }
        }
    }

    func leave() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
            state.free += 1
            return nil
        }
        next?.resume()
    }
}
