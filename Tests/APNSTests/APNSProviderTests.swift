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
            let access = provider.authorize(now: 1_700_000_000, isProbe: false)
            #expect(access == .refused(Outcome(.misconfigured, scope: .lane, reason: "key_file_refused")))
        }
        #expect(told.withLock { $0 } == [.file(KeyFileError(path: path, problem: .missing))])
    }

    @Test func `an expired token is replaced once, and a second refusal is another fault`() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        try writeKey()
        var provider = try provider(cache())
        provider.begin(at: 1_700_000_000)
        let first = provider.tokenMark
        let replaced = provider.replaceToken(first, because: expired, now: 1_700_000_010)
        #expect(replaced == .replaced)
        #expect(provider.tokenMark != first)
        let again = provider.replaceToken(provider.tokenMark, because: expired, now: 1_700_000_011)
        #expect(again == .refused, "the new token was refused too")
    }

    @Test(arguments: [0, 1, 3, 9] as [Int64])
    func `an answer that calls the old token expired is none about the new one`(later: Int64) throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        try writeKey()
        var provider = try provider(cache())
        provider.begin(at: 1_700_000_000)
        let first = provider.tokenMark
        let replaced = provider.replaceToken(first, because: expired, now: 1_700_000_010)
        #expect(replaced == .replaced)
        // Requests that were in flight with the old token are answered for as long as requests may take.
        let straggler = provider.replaceToken(first, because: expired, now: 1_700_000_010 + later)
        #expect(straggler == .known)
    }

    @Test func `the time of an answer is read where it finds fault with ours`() throws {
        let decoder = APNSResponseDecoder(serverErrorDelay: .seconds(900))
        var batch = HTTPResultBatch()
        var captured = InlineArray<4, ByteSlice>(repeating: .empty)
        captured[2] = batch.append(Array("Sun, 06 Nov 1994 08:49:37 GMT".utf8))
        let times: KeyValuePairs<String, Int64?> = ["ExpiredProviderToken": 784_111_777, "InvalidProviderToken": nil]
        for (reason, time) in times {
            let body = batch.append(Array("{\"reason\":\"\(reason)\"}".utf8))
            let response = HTTPResponse(
                status: 403, captured: captured, body: body, bodyWasCut: false, afterIdle: false)
            #expect(decoder.decode(response, text: batch.bytes).providerTime == time)
        }
        #expect(APNSProvider.capturedHeaders[2] == "date")
    }

    @Test func `lanes of one key share tokens and replacements`() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        try writeKey()
        let cache = cache()
        var first = try provider(cache)
        var second = try provider(cache)
        first.begin(at: 1_700_000_000)
        second.begin(at: 1_700_000_000)
        let replaced = first.replaceToken(first.tokenMark, because: expired, now: 1_700_000_010)
        #expect(replaced == .replaced)
        let taken = second.replaceToken(second.tokenMark, because: expired, now: 1_700_000_010)
        #expect(taken == .replaced, "the first lane has made it already")
        let again = second.replaceToken(second.tokenMark, because: expired, now: 1_700_000_020)
        #expect(again == .refused)
    }

    @Test func `a token made anew by another lane is no other credential`() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        try writeKey()
        let cache = cache()
        var first = try provider(cache)
        var second = try provider(cache)
        first.begin(at: 1_700_000_000)
        second.begin(at: 1_700_000_000)
        let replaced = first.replaceToken(first.tokenMark, because: expired, now: 1_700_000_010)
        #expect(replaced == .replaced)
        let isAnother = second.reloadCredential(now: 1_700_000_020)
        #expect(isAnother == false, "another token, but the same key")
    }

    @Test func `each lane learns of another key exactly once`() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        try writeKey()
        let cache = cache()
        var first = try provider(cache)
        var second = try provider(cache)
        first.begin(at: 1_700_000_000)
        second.begin(at: 1_700_000_000)
        try writeKey()
        let answers = [
            first.reloadCredential(now: 1_700_000_010), second.reloadCredential(now: 1_700_000_010),
            first.reloadCredential(now: 1_700_000_011), second.reloadCredential(now: 1_700_000_011),
        ]
        #expect(answers == [true, true, false, false])
    }

    @Test func `a key that is found at a mint is told with the token`() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        try writeKey()
        let cache = cache()
        var first = try provider(cache)
        var second = try provider(cache)
        first.begin(at: 1_700_000_000)
        second.begin(at: 1_700_000_000)
        try writeKey()
        // A probe reads the file, and the other lane is handed the token that came of it.
        let probe = first.authorize(now: 1_700_000_010, isProbe: true)
        #expect(probe == .granted(byAnotherCredential: true))
        let shared = second.authorize(now: 1_700_000_010, isProbe: false)
        #expect(shared == .granted(byAnotherCredential: true))
        first.begin(at: 1_700_000_011)
        second.begin(at: 1_700_000_011)
        let isAnother = second.reloadCredential(now: 1_700_000_020)
        #expect(isAnother == false, "it was told already")
    }
}

extension APNSProvider {
    /// Has a token, of the key that the lane knows.
    fileprivate mutating func begin(at now: Int64) {
        let access = authorize(now: now, isProbe: false)
        #expect(access == .granted)
    }
}
