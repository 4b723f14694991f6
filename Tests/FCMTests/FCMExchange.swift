import Credentials
import EventLoop
import FCM
import FakeProviders
import Foundation
import HTTP2
import OutboxCore
import Support
import Synchronization
import Testing

/// The provider, its access tokens, the HTTP/2 client and the stand-ins for Google, put together as in the worker.
actor FCMExchange {
    /// What became of one target.
    enum End: Equatable {
        case outcome(Outcome)
        case fault(HTTPFault)
    }

    private static let loop = EventLoop.startThread(name: "fcm-exchange")

    nonisolated let endpoint: FakeTokenEndpoint
    nonisolated let service: FakeFCM
    nonisolated let tokens = FakeAccessTokens()
    nonisolated let accountFile: String
    private let directory: String
    private let faults = Mutex<[String]>([])
    private var source: AccessTokenSource?
    private var provider: FCMProvider?
    private var client: HTTP2Client?
    private var ends: [UInt64: End] = [:]
    private var marks: [UInt64: UInt8] = [:]
    private var awaited = 0
    private var waiter: UnsafeContinuation<Void, Never>?
    private var told: [ProviderAccess] = []
    private var accessWaiter: UnsafeContinuation<Void, Never>?

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        Self.loop.asUnownedSerialExecutor()
    }

    /// Everything is up; nothing was asked for.
    static func with(_ body: (FCMExchange) async throws -> Void) async throws {
        let exchange = try FCMExchange()
        try await exchange.start()
        do {
            try await body(exchange)
        } catch {
            await exchange.stop()
            throw error
        }
        await exchange.stop()
    }

    private init() throws {
        directory = FileManager.default.temporaryDirectory.appendingPathComponent("postbell-\(UUID().uuidString)").path
        let identity = try ServerIdentity.generated()
        try IdentityFiles.write(identity, to: directory)
        accountFile = directory + "/account.json"
        var tokenConfiguration = FakeTokenEndpointConfiguration(identity: identity)
        tokenConfiguration.accounts = [try ServiceAccountFile.make(at: accountFile, projectID: "example-1")]
        tokenConfiguration.accessTokens = tokens
        endpoint = try FakeTokenEndpoint(tokenConfiguration, on: Self.loop)
        var configuration = FakeFCMConfiguration(identity: identity)
        configuration.accessTokens = tokens
        service = try FakeFCM(configuration, on: Self.loop)
    }

    private func start() async throws {
        let (port, tokenPort) = (try await service.start(), try await endpoint.start())
        var transport = transport(to: port)
        transport.capturedHeaders = FCMProvider.capturedHeaders
        client = HTTP2Client(transport, on: Self.loop) { [weak self] batch in
            self?.assumeIsolated { $0.take(&batch) }
        } stateChanged: { _ in
        }
        let source = try AccessTokenSource(
            KeyFile(path: accountFile, credentialsDirectory: nil), transport: self.transport(to: tokenPort),
            on: Self.loop,
            reportsFault: { [weak self] fault in self?.faults.withLock { $0.append(fault.description) } })
        self.source = source
        provider = try anotherLane { [weak self] access in self?.assumeIsolated { $0.heard(access) } }
    }

    private func transport(to port: UInt16) -> HTTP2ClientConfiguration {
        var transport = HTTP2ClientConfiguration(host: "localhost", port: port)
        transport.caFile = directory + "/ca.pem"
        transport.requestTimeout = .seconds(60)
        transport.connectTimeout = .seconds(60)
        return transport
    }

    /// A provider of another lane with the same account.
    func anotherLane(
        accessChanged: @escaping @Sendable (ProviderAccess) -> Void = { _ in }
    ) throws -> FCMProvider {
        let source = try #require(source)
        return FCMProvider(
            try FCMConfiguration(project: source.projectID), source: source, accessChanged: accessChanged)
    }

    private func stop() async {
        await client?.close(within: .zero)
        await service.stop()
        await endpoint.stop()
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// Faults that were reported so far, as the log has them.
    nonisolated var reported: [String] { faults.withLock { $0 } }

    /// What was told of access so far.
    var accesses: [ProviderAccess] { told }

    private func heard(_ access: ProviderAccess) {
        told.append(access)
        accessWaiter?.resume()
        accessWaiter = nil
    }

    /// Returns what is told of access next.
    func nextAccess(after count: Int) async -> ProviderAccess {
        while told.count <= count {
            await withUnsafeContinuation { if told.count <= count { accessWaiter = $0 } else { $0.resume() } }
        }
        return told[count]
    }

    // MARK: The lane

    /// What the lane hears when it asks for access.
    func authorize(isProbe: Bool = false) -> ProviderAccess {
        provider?.authorize(now: 0, isProbe: isProbe) ?? .awaited
    }

    /// Asks for access and waits for it.
    func begin() async -> ProviderAccess {
        let count = told.count
        let access = authorize()
        guard access == .awaited else { return access }
        return await nextAccess(after: count)
    }

    /// Asks for access, has the account read again before an answer can be there, and waits for access.
    func beginAndReload() async -> ProviderAccess {
        let count = told.count
        _ = (authorize(), reload())
        return await nextAccess(after: count)
    }

    func replaceToken(after end: End?) -> TokenReplacement? {
        guard case .outcome(let outcome) = end, outcome.advice == .replaceToken else { return nil }
        return provider?.replaceToken(marks[0] ?? 0, because: outcome, now: 0)
    }

    func reload() -> Bool? { provider?.reloadCredential(now: 0) }

    /// Puts another account, or another key of the same, into the file.
    func replaceAccount(project: String = "example-1") async throws {
        let known = try ServiceAccountFile.account(at: accountFile)
        let made = try ServiceAccountFile.make(at: accountFile, projectID: project)
        try await endpoint.setAccounts([made, known].filter { $0.projectID == "example-1" })
    }

    func breakAccount() throws {
        try Data("{".utf8).write(to: URL(fileURLWithPath: accountFile))
    }

    /// Sends to one device and answers what became of it.
    func send(_ token: String = "c-good-token-of-a-device") async -> End? {
        guard submit(token) else { return nil }
        await withUnsafeContinuation { if ends.count < awaited { waiter = $0 } else { $0.resume() } }
        return ends[0]
    }

    /// Whether there was access.
    private func submit(_ token: String) -> Bool {
        ends.removeAll()
        guard authorize() == .granted else { return false }
        var push = MadePush.android()
        push.tokens = [token]
        var result = MadePush.Encoded()
        push.encode(into: &result) { push, text, batch in
            provider?.begin(push, text: text, into: &batch)
        } add: { target, tag, text, batch in
            provider?.add(target, tag: tag, text: text, into: &batch)
        }
        marks[0] = provider?.tokenMark
        awaited = result.batch.requests.count
        client?.assumeIsolated { [batch = result.batch] in $0.submit(batch) }
        return true
    }

    private func take(_ batch: inout HTTPResultBatch) {
        for result in batch.results {
            switch result.outcome {
            case .success(let response):
                ends[result.tag] = provider.map { .outcome($0.decode(response, text: batch.bytes)) }
            case .failure(let fault):
                ends[result.tag] = .fault(fault)
            }
        }
        guard ends.count >= awaited else { return }
        waiter?.resume()
        waiter = nil
    }
}

extension Optional where Wrapped == FCMExchange.End {
    /// The kind of outcome, when it is one.
    var kind: OutcomeKind? {
        if case .outcome(let outcome) = self { outcome.kind } else { nil }
    }
}
