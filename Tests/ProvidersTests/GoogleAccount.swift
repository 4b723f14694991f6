import Credentials
import FCM
import FakeProviders
import Foundation
import HTTP2
import OutboxCore

/// A service account at the stand-in for Google's token endpoint, and the source of its access tokens. All tests share
/// it, as lanes of one account do.
@ProviderLoop final class GoogleAccount {
    static let shared = Task { @ProviderLoop in try await GoogleAccount() }

    let source: AccessTokenSource
    private let endpoint: FakeTokenEndpoint

    private init() async throws {
        // The source reads the account's file again with each token: it stays for as long as the tests run.
        let directory = FileManager.default.temporaryDirectory.appending(path: "postbell-\(UUID().uuidString)").path
        let identity = try ServerIdentity.generated()
        try IdentityFiles.write(identity, to: directory)
        var configuration = FakeTokenEndpointConfiguration(identity: identity)
        configuration.accounts = [
            try ServiceAccountFile.make(at: directory + "/account.json", projectID: "postbell-demo")
        ]
        configuration.accessTokens = FakeAccessTokens()
        endpoint = try FakeTokenEndpoint(configuration, on: ProviderLoop.loop)
        var transport = HTTP2ClientConfiguration(host: "localhost", port: try await endpoint.start())
        transport.caFile = directory + "/ca.pem"
        source = try AccessTokenSource(
            KeyFile(path: directory + "/account.json", credentialsDirectory: nil), transport: transport,
            on: ProviderLoop.loop, reportsFault: { _ in })
    }

    /// A provider that has access.
    func provider() async throws -> FCMProvider {
        let (changes, continuation) = AsyncStream.makeStream(of: Void.self)
        var provider = FCMProvider(try FCMConfiguration(project: "postbell-demo"), source: source) { _ in
            continuation.yield()
        }
        var waiting = changes.makeAsyncIterator()
        while provider.authorize(now: ConformingProvider.now, isProbe: false) == .awaited { await waiting.next() }
        return provider
    }
}
