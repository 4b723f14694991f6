import APNS
import Credentials
import Foundation
import HTTP2
import OutboxCore
import Synchronization
import Testing

@Suite struct APNSProviderTests {
    private let directory: URL
    private let path: String
    private let schedule: TokenSchedule

    init() throws {
        directory = FileManager.default.temporaryDirectory.appendingPathComponent("postbell-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
        path = directory.path + "/key.p8"
        schedule = try #require(TokenSchedule(refreshAge: .seconds(2400)))
    }

    private func writeKey() throws {
        let pem = try SigningKey.generated().privateKeyPEM().withUnsafeBytes { Data($0) }
        try pem.write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    }

    private func cache() -> TokenCache {
        TokenCache(
            file: KeyFile(path: path, credentialsDirectory: nil), keyID: "ABC123DEFG", teamID: "DEF123GHIJ",
            schedule: schedule)
    }

    private func provider(
        _ cache: TokenCache, _ reports: @escaping @Sendable (CredentialError) -> Void = { _ in }
    ) throws -> APNSProvider {
        let configuration = try APNSConfiguration(
            environment: .sandbox, keyID: "ABC123DEFG", teamID: "DEF123GHIJ", topics: ["com.example.app"])
        return APNSProvider(configuration, tokens: cache, reportsFault: reports)
    }

    @Test func `without a usable key the lane is held and the reason told once`() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let told = Mutex<[CredentialError]>([])
        var provider = try provider(cache()) { error in told.withLock { $0.append(error) } }
        for _ in 0..<3 {
            let outcome = provider.authorize(now: 1_700_000_000, isProbe: false)
            #expect(outcome?.kind == .misconfigured && outcome?.scope == .lane)
            #expect(outcome?.reason == "key_file_refused")
        }
        #expect(told.withLock { $0 } == [.file(KeyFileError(path: path, problem: .missing))])
    }

    @Test func `an expired token is replaced once, however many answers call it expired`() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        try writeKey()
        var provider = try provider(cache())
        let answer1 = provider.authorize(now: 1_700_000_000, isProbe: false)
        #expect(answer1 == nil)
        let answer2 = provider.replaceToken(now: 1_700_000_010)
        #expect(answer2)
        let answer3 = provider.replaceToken(now: 1_700_000_010)
        #expect(answer3)
        let answer4 = provider.replaceToken(now: 1_700_000_011)
        #expect(answer4)
        let answer5 = provider.replaceToken(now: 1_700_000_013)
        #expect(!answer5)
    }

    @Test func `lanes of one key share tokens and replacements`() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        try writeKey()
        let cache = cache()
        var first = try provider(cache)
        var second = try provider(cache)
        let answer6 = first.authorize(now: 1_700_000_000, isProbe: false)
        #expect(answer6 == nil)
        let answer7 = second.authorize(now: 1_700_000_000, isProbe: false)
        #expect(answer7 == nil)
        let answer8 = first.replaceToken(now: 1_700_000_010)
        #expect(answer8)
        let answer9 = second.replaceToken(now: 1_700_000_010)
        #expect(answer9, "the first lane has replaced it already")
        let answer10 = second.replaceToken(now: 1_700_000_020)
        #expect(!answer10)
    }
}
