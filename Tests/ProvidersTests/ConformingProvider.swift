import APNS
import Credentials
import FCM
import Foundation
import HTTP2
import OutboxCore
import Support
import Testing

/// A provider as the conformance suite sees it: how to make one, and what its service says. Every type that conforms to
/// `PushProvider` in the sources is here (a test looks).
struct ConformingProvider: CustomTestStringConvertible, Sendable {
    typealias Provider = any PushProvider<HTTPRequestBatch, HTTPResponse>

    /// An answer by status and body.
    struct Answer: Sendable {
        let status: Int
        let body: String
    }

    /// The type's name.
    let name: String
    let route: (provider: String, environment: String)
    /// Tokens of the service's form.
    let tokens: [String]
    /// Texts that cannot be tokens of the service.
    let malformed: [String]
    /// Answers to a token that is dead for sure.
    let dead: Answer
    /// An answer that speaks against a token, and is proof only in a proven lane; nil where the service has none.
    let suspicious: Answer?
    /// Answers that say that the service is at fault or wants less: 5xx and 429 as it writes them.
    let passing: [Answer]
    /// Where a request carries the notification's id and its collapse key.
    let identity: @Sendable (MadePush.Encoded, Int) -> [String?]
    /// Makes one that has access.
    let make: @ProviderLoop @Sendable () async throws -> Provider

    var testDescription: String { name }

    static let all = [apns, fcm, scripted]

    /// A notification that the provider takes, for `tokens`.
    func push(to tokens: [String]) -> MadePush {
        var push = MadePush(kind: Kind(number: 1, name: "k", presentation: .template(Template(title: nil))))
        push.provider = route.provider
        push.environment = route.environment
        push.payload = #"{"canary":"payload-canary"}"#
        push.collapseKey = "approval:7"
        push.tokens = tokens
        return push
    }

    /// Encodes `push` with `provider`, which has granted access before.
    @ProviderLoop static func encode(
        _ push: MadePush, with provider: inout Provider, into encoded: inout MadePush.Encoded
    ) {
        var made = provider
        push.encode(into: &encoded) { push, text, batch in
            made.begin(push, text: text, into: &batch)
        } add: { target, tag, text, batch in
            made.add(target, tag: tag, text: text, into: &batch)
        }
        provider = made
    }

    /// Encodes `push` with a provider of its own.
    @ProviderLoop func encoded(_ push: MadePush) async throws -> MadePush.Encoded {
        var provider = try await make()
        var encoded = MadePush.Encoded()
        Self.encode(push, with: &provider, into: &encoded)
        return encoded
    }

    static let now: Int64 = 1_700_000_000

    private static let hostile = ["", "two words", "new\nline000", "ü0ü0ü0ü0", "nul\u{0}nul\u{0}0", "tab\t00000"]

    // MARK: The providers

    private static let apns = ConformingProvider(
        name: "APNSProvider", route: ("apns", "production"),
        tokens: [String(repeating: "0a", count: 32), String(repeating: "0b", count: 80)],
        malformed: hostile + ["0a0", "0g0a", "<0a0b 0c0d>", "../../3/device/0a", String(repeating: "0a", count: 201)],
        dead: Answer(status: 410, body: #"{"reason":"Unregistered","timestamp":1700000000000}"#),
        suspicious: Answer(status: 400, body: #"{"reason":"BadDeviceToken"}"#),
        passing: [
            Answer(status: 500, body: #"{"reason":"InternalServerError"}"#),
            Answer(status: 503, body: #"{"reason":"ServiceUnavailable"}"#),
            Answer(status: 429, body: #"{"reason":"TooManyRequests"}"#),
            Answer(status: 429, body: #"{"reason":"TooManyProviderTokenUpdates"}"#),
        ],
        identity: { encoded, index in
            let headers = encoded.headers(index)
            return [headers["apns-id"], headers["apns-collapse-id"]]
        },
        make: {
            let directory = FileManager.default.temporaryDirectory.appending(path: "postbell-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
            defer { try? FileManager.default.removeItem(at: directory) }
            let path = directory.appending(path: "key.p8").path
            let pem = try SigningKey.generated().privateKeyPEM().withUnsafeBytes { Data($0) }
            try pem.write(to: URL(filePath: path))
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
            let schedule = try #require(TokenSchedule(refreshAge: .seconds(2400)))
            let tokens = TokenCache(
                file: KeyFile(path: path, credentialsDirectory: nil), keyID: "ABC123DEFG", teamID: "DEF123GHIJ",
                schedule: schedule)
            let configuration = try APNSConfiguration(
                environment: .production, keyID: "ABC123DEFG", teamID: "DEF123GHIJ", topics: ["com.example.app"])
            var provider = APNSProvider(configuration, tokens: tokens)
            // The key file is needed for the first token only.
            _ = provider.authorize(now: now, isProbe: false)
            return provider
        })

    private static let fcm = ConformingProvider(
        name: "FCMProvider", route: ("fcm", ""),
        tokens: ["cXyzAbcdEFGhijKLmnopqr:APA91bGh-7_x", "fJ2k4n6p8r0t2v4x6z8B0d"],
        malformed: hostile + ["seven77", String(repeating: "a", count: 1025)],
        dead: Answer(
            status: 404,
            body: #"{"error":{"status":"NOT_FOUND","details":[{"@type":"type.googleapis.com/google.firebase.fcm.v1"#
                + #".FcmError","errorCode":"UNREGISTERED"}]}}"#),
        suspicious: Answer(
            status: 400,
            body: #"{"error":{"status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc"#
                + #".BadRequest","fieldViolations":[{"field":"message.token"}]}]}}"#),
        passing: [
            Answer(status: 500, body: #"{"error":{"status":"INTERNAL"}}"#), Answer(status: 502, body: "<html>"),
            Answer(status: 503, body: #"{"error":{"status":"UNAVAILABLE"}}"#),
            Answer(status: 429, body: #"{"error":{"status":"RESOURCE_EXHAUSTED"}}"#),
        ],
        identity: { encoded, index in
            let body = Data(encoded.text(encoded.batch.requests[index].body).utf8)
            let request = try? JSONSerialization.jsonObject(with: body) as? [String: [String: Any]]
            let data = request?["message"]?["data"] as? [String: String]
            return [data?["notification_id"], data?["tag"]]
        },
        make: { try await GoogleAccount.shared.value.provider() })

    private static let scripted = ConformingProvider(
        name: "ScriptedProvider", route: ("scripted", ""), tokens: ["scripted-token-1", "scripted-token-2"],
        malformed: hostile,
        dead: Answer(status: 404, body: "gone"), suspicious: nil,
        passing: [Answer(status: 500, body: ""), Answer(status: 429, body: "slower")],
        identity: { encoded, index in
            let headers = encoded.headers(index)
            return [headers["scripted-id"], headers["scripted-collapse"]]
        },
        make: {
            ScriptedProvider(script: [
                "gone": Outcome(.unregistered, proof: .proven), "slower": Outcome(.throttled, retryFloor: .seconds(1)),
            ])
        })
}
