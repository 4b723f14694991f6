import APNS
import Credentials
import EventLoop
import FakeProviders
import Foundation
import HTTP2
import OutboxCore
import Support
import Testing

/// The provider, the HTTP/2 client and the stand-in for APNs, put together as in the worker: one push goes in, what
/// became of its targets comes out.
actor APNSExchange {
    /// What became of one target.
    enum End: Equatable {
        case outcome(Outcome)
        case fault(HTTPFault)
    }

    private static let loop = EventLoop.startThread(name: "apns-exchange")

    nonisolated let service: FakeAPNS
    private let directory: URL
    private var provider: APNSProvider
    private var clockBehind: Int64 = 0
    private var client: HTTP2Client?
    private var ends: [UInt64: End] = [:]
    private var awaited = 0
    private var waiter: UnsafeContinuation<Void, Never>?

    private init(_ service: FakeAPNS, _ provider: APNSProvider, _ directory: URL) {
        self.service = service
        self.provider = provider
        self.directory = directory
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        Self.loop.asUnownedSerialExecutor()
    }

    /// A running exchange; `stop` ends it.
    static func start(sandbox: Bool = false, requestTimeout: Duration = .seconds(60)) async throws -> APNSExchange {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("postbell-\(UUID().uuidString)")
        let identity = try ServerIdentity.generated()
        try IdentityFiles.write(identity, to: directory.path)
        let keyFile = directory.path + "/apns.p8"
        try IdentityFiles.makeProviderKey(at: keyFile)
        var configuration = FakeAPNSConfiguration(identity: identity)
        configuration.keys = [
            try IdentityFiles.providerKey(at: keyFile, keyID: "ABC123DEFG", teamID: "DEF123GHIJ")
        ]
        configuration.topics = ["com.example.app"]
        configuration.isSandbox = sandbox
        let service = try FakeAPNS(configuration, on: loop)
        let port = try await service.start()
        let schedule = try #require(TokenSchedule(refreshAge: .seconds(2400)))
        let tokens = TokenCache(
            file: KeyFile(path: keyFile, credentialsDirectory: nil), keyID: "ABC123DEFG", teamID: "DEF123GHIJ",
            schedule: schedule)
        let provider = APNSProvider(
            try APNSConfiguration(
                environment: .production, keyID: "ABC123DEFG", teamID: "DEF123GHIJ", topics: ["com.example.app"]),
            tokens: tokens)
        let exchange = APNSExchange(service, provider, directory)
        await exchange.connect(port, caFile: directory.path + "/ca.pem", requestTimeout)
        return exchange
    }

    private func connect(_ port: UInt16, caFile: String, _ requestTimeout: Duration) {
        var transport = HTTP2ClientConfiguration(host: "localhost", port: port)
        transport.caFile = caFile
        transport.requestTimeout = requestTimeout
        transport.connectTimeout = .seconds(60)
        transport.capturedHeaders = APNSProvider.capturedHeaders
        client = HTTP2Client(transport, on: Self.loop) { [weak self] batch in
            self?.assumeIsolated { $0.take(&batch) }
        } stateChanged: { _ in
        }
    }

    func stop() async {
        await client?.close(within: .zero)
        await service.stop()
        try? FileManager.default.removeItem(at: directory)
    }

    /// Sends `push` and answers what became of each of its targets, in order.
    func send(_ push: MadePush) async throws -> [End] {
        if let refusal = submit(push) { return [.outcome(refusal)] }
        await withUnsafeContinuation { if ends.count < awaited { waiter = $0 } else { $0.resume() } }
        return ends.sorted { $0.key < $1.key }.map(\.value)
    }

    private func submit(_ push: MadePush) -> Outcome? {
        ends.removeAll()
        var result = MadePush.Encoded()
        if case .refused(let fault) = provider.authorize(now: now, isProbe: false) { return fault }
        push.encode(into: &result) { push, text, batch in
            provider.begin(push, text: text, into: &batch)
        } add: { target, tag, text, batch in
            provider.add(target, tag: tag, text: text, into: &batch)
        }
        awaited = result.batch.requests.count
        if result.refusal == nil { client?.assumeIsolated { $0.submit(result.batch) } }
        return result.refusal
    }

    /// Sets this side's wall clock back.
    func setClock(behind seconds: Int64) {
        clockBehind = seconds
    }

    private var now: Int64 { Int64(Date().timeIntervalSince1970) - clockBehind }

    /// Does what the lane does when the provider calls its token expired; false when it may not.
    func replaceToken() -> Bool {
        guard provider.replaceToken(provider.tokenMark, because: expired, now: now) == .replaced else { return false }
        client?.assumeIsolated { $0.replaceConnections() }
        return true
    }

    private func take(_ batch: inout HTTPResultBatch) {
        for result in batch.results {
            switch result.outcome {
            case .success(let response):
                ends[result.tag] = .outcome(provider.decode(response, text: batch.bytes))
            case .failure(let fault):
                ends[result.tag] = .fault(fault)
            }
        }
        guard ends.count >= awaited else { return }
        waiter?.resume()
        waiter = nil
    }
}

/// APNs' answer to a provider token that is older than an hour.
let expired = Outcome(
    .misconfigured, scope: .lane, status: 403, reason: "ExpiredProviderToken", advice: .replaceToken)
