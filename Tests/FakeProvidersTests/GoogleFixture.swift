import EventLoop
import FakeProviders
import Foundation
import Testing

/// A running token endpoint and a running FCM that share an account; assertions are signed by `openssl`.
struct GoogleFixture {
    let endpoint: FakeTokenEndpoint
    let fcm: FakeFCM
    let endpointPort: UInt16
    let fcmPort: UInt16
    let directory: String
    let account: FakeServiceAccount
    let tokens: FakeAccessTokens

    static let project = "demo-project"
    static let token = "cN9q:APA91bHun4MxP5egoKMwt2KZFBaFUH-1RYqx"
    /// Made once: an RSA key takes a while.
    private static let made = Result {
        let path = NSTemporaryDirectory() + "postbell-\(UUID().uuidString).json"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let account = try ServiceAccountFile.make(at: path, projectID: project)
        return (account, try Data(contentsOf: URL(fileURLWithPath: path)))
    }
    private static let loop = EventLoop.startThread(name: "fake-google")

    /// What differs from the defaults.
    struct Settings {
        var lifetime: Int64 = 3599
        var writesExpiryAsString = false
        var checksAccessTokens = true
        var projects: Set<String> = []
        var isStrict = true
        var log = RequestLogTarget.none
        var endpointLog = RequestLogTarget.none

        /// FCM takes any bearer.
        static let open = Settings(checksAccessTokens: false)
    }

    /// Starts both, lets `body` use them, stops them.
    static func run(
        _ settings: Settings = Settings(), _ body: (GoogleFixture) async throws -> Void
    ) async throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("postbell-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        let identity = try ServerIdentity.generated()
        try IdentityFiles.write(identity, to: directory.path)
        let (account, file) = try made.get()
        try file.write(to: directory.appendingPathComponent("account.json"))
        var endpointConfiguration = FakeTokenEndpointConfiguration(identity: identity)
        endpointConfiguration.accounts = [account]
        endpointConfiguration.lifetime = settings.lifetime
        endpointConfiguration.writesExpiryAsString = settings.writesExpiryAsString
        var fcmConfiguration = FakeFCMConfiguration(identity: identity)
        fcmConfiguration.accessTokens = settings.checksAccessTokens ? endpointConfiguration.accessTokens : nil
        fcmConfiguration.projects = settings.projects
        endpointConfiguration.log = settings.endpointLog
        fcmConfiguration.log = settings.log
        fcmConfiguration.isStrict = settings.isStrict
        let endpoint = try FakeTokenEndpoint(endpointConfiguration, on: loop)
        let fcm = try FakeFCM(fcmConfiguration, on: loop)
        let fixture = GoogleFixture(
            endpoint: endpoint, fcm: fcm, endpointPort: try await endpoint.start(), fcmPort: try await fcm.start(),
            directory: directory.path, account: account, tokens: endpointConfiguration.accessTokens)
        do {
            try await body(fixture)
        } catch {
            await endpoint.stop()
            await fcm.stop()
            throw error
        }
        await endpoint.stop()
        await fcm.stop()
    }

    // MARK: Assertions

    /// An assertion that the endpoint accepts, unless told otherwise.
    func assertion(
        keyID: String? = nil, claims changes: [String: Any] = [:], account file: String = "account.json"
    ) throws -> String {
        let now = Int(Date().timeIntervalSince1970)
        var claims: [String: Any] = [
            "iss": account.clientEmail, "scope": "https://www.googleapis.com/auth/firebase.messaging",
            "aud": ServiceAccountFile.tokenURI, "iat": now - 10, "exp": now - 10 + 3600,
        ]
        for (name, value) in changes { claims[name] = value }
        let header: [String: Any] = ["alg": "RS256", "typ": "JWT", "kid": keyID ?? account.keyID]
        let signed = try Self.part(header) + "." + Self.part(claims)
        let whole = try JSONSerialization.jsonObject(with: Data(contentsOf: url(file))) as? [String: Any]
        try (try #require(whole?["private_key"] as? String)).write(
            to: url("key.pem"), atomically: true, encoding: .utf8)
        try signed.write(to: url("signed"), atomically: true, encoding: .utf8)
        let result = try Curl.run(
            "openssl",
            ["dgst", "-sha256", "-sign", url("key.pem").path, "-out", url("signature").path, url("signed").path])
        try #require(result.0 == 0, "\(result.problem)")
        return signed + "." + Self.base64URL(try Data(contentsOf: url("signature")))
    }

    /// Asks for an access token.
    func ask(
        _ assertion: String, grantType: String? = "urn:ietf:params:oauth:grant-type:jwt-bearer",
        path: String = "/token", extra: [String] = []
    ) throws -> Curl.Answer {
        var body = "assertion=" + assertion
        if let grantType {
            let escaped = grantType.replacingOccurrences(of: ":", with: "%3A")
            body = "grant_type=" + escaped + "&" + body
        }
        return try Curl.send(
            to: "https://localhost:\(endpointPort)" + path, authority: directory,
            headers: ["content-type": "application/x-www-form-urlencoded"], body: body, extra: extra)
    }

    /// A fresh access token.
    func accessToken() throws -> String {
        try #require(try ask(assertion()).object["access_token"] as? String)
    }

    // MARK: Messages

    /// Sends `body` to FCM.
    func send(
        _ body: String, bearer: String?, project: String = project, headers: [String: String] = [:],
        extra: [String] = []
    ) throws -> Curl.Answer {
        var all = ["content-type": "application/json"]
        all["authorization"] = bearer.map { "Bearer " + $0 }
        for (name, value) in headers { all[name] = value }
        return try Curl.send(
            to: "https://localhost:\(fcmPort)/v1/projects/\(project)/messages:send", authority: directory,
            headers: all, body: body, extra: extra)
    }

    /// A message that nothing is wrong with.
    static func message(to token: String = token) -> String {
        """
        {"message":{"token":"\(token)","data":{"id":"7","kind":"hello"},"android":{"priority":"HIGH","ttl":"3600s"}}}
        """
    }

    private func url(_ name: String) -> URL { URL(fileURLWithPath: directory + "/" + name) }

    private static func part(_ object: [String: Any]) throws -> String {
        base64URL(try JSONSerialization.data(withJSONObject: object))
    }

    private static func base64URL(_ data: Data) -> String {
        data.base64EncodedString().replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
            .replacingOccurrences(of: "=", with: "")
    }
}

extension Curl.Answer {
    /// The body as a JSON object; empty when it is none.
    var object: [String: Any] {
        (try? JSONSerialization.jsonObject(with: Data(body.utf8))) as? [String: Any] ?? [:]
    }

    /// Google's `error` object.
    var error: [String: Any] { object["error"] as? [String: Any] ?? [:] }

    /// `errorCode` of the detail FcmError.
    var errorCode: String? {
        details.first { ($0["@type"] as? String)?.hasSuffix("fcm.v1.FcmError") == true }?["errorCode"] as? String
    }

    /// The error's details.
    var details: [[String: Any]] { error["details"] as? [[String: Any]] ?? [] }
}
