import FakeProviders
import Foundation
import Support
import Testing

/// A fake Google beside a stage: FCM, the token endpoint, and a service account of the project `phone-project`.
struct GoogleStage {
    static let project = "phone-project"

    let fcm: FakeFCM
    let tokens: FakeTokenEndpoint
    /// The access tokens that the endpoint has handed out.
    let issued = FakeAccessTokens()
    /// The service account's file.
    let file: String
    /// What a worker of the stage needs besides to send to FCM as well.
    let environment: [String: String]

    /// Runs `body` on a stage with a fake Google, and takes both down afterwards. Further projects have accounts in
    /// files named after them.
    static func on(
        _ projects: [String] = [], _ body: (Stage, GoogleStage) async throws -> Void
    ) async throws {
        try await Stage.on(.postgres15) { stage in
            let google = try await GoogleStage(stage, projects)
            let outcome: Result<Void, any Error>
            do { outcome = .success(try await body(stage, google)) } catch { outcome = .failure(error) }
            await google.fcm.stop()
            await google.tokens.stop()
            try outcome.get()
        }
    }

    private init(_ stage: Stage, _ projects: [String]) async throws {
        let directory = stage.directory.appending(path: "google")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let identity = try ServerIdentity.generated()
        try IdentityFiles.write(identity, to: directory.path)
        var accounts: [FakeServiceAccount] = []
        for project in [Self.project] + projects {
            accounts.append(
                try ServiceAccountFile.make(at: Self.file(of: project, in: stage), projectID: project))
        }
        file = Self.file(of: Self.project, in: stage)
        var endpoint = FakeTokenEndpointConfiguration(identity: identity)
        endpoint.accounts = accounts
        endpoint.accessTokens = issued
        tokens = try FakeTokenEndpoint(endpoint, on: DatabaseServer.loop)
        var service = FakeFCMConfiguration(identity: identity)
        service.accessTokens = issued
        service.projects = Set([Self.project] + projects)
        fcm = try FakeFCM(service, on: DatabaseServer.loop)
        // One file of CAs for both providers.
        let authorities = directory.appending(path: "both.pem")
        let certificates = try [stage.directory, directory].map {
            try String(contentsOf: $0.appending(path: "ca.pem"), encoding: .utf8)
        }
        try certificates.joined(separator: "\n").write(to: authorities, atomically: true, encoding: .utf8)
        environment = [
            "FCM_SERVICE_ACCOUNT_FILE": file, "POSTBELL_CA_FILE": authorities.path,
            "POSTBELL_FCM_ENDPOINT": "https://localhost:\(try await fcm.start())",
            "POSTBELL_FCM_TOKEN_ENDPOINT": "https://localhost:\(try await tokens.start())",
        ]
    }

    /// Where the account of `project` is.
    static func file(of project: String, in stage: Stage) -> String {
        stage.directory.appending(path: "google/\(project).json").path
    }

    /// Registers a device for FCM and enqueues one notification for it, under the key `name`. The token is one of its
    /// own unless given.
    func enqueue(_ name: String, app: String = Stage.topic, token: String? = nil, on stage: Stage) async throws {
        let token = token ?? "token-of-\(name):0123456789"
        try await stage.run("SELECT postbell.device_register('\(name)', 'phone', 'fcm', '\(app)', '\(token)')")
        try await stage.enqueue(name, key: name)
    }
}
