import Credentials
import Foundation
import Testing

@Suite struct TokenScheduleTests {
    @Test func `refuses ages outside 20 to 55 minutes`() {
        #expect(TokenSchedule(refreshAge: .seconds(19 * 60 + 59)) == nil)
        #expect(TokenSchedule(refreshAge: .seconds(20 * 60)) != nil)
        #expect(TokenSchedule(refreshAge: .seconds(55 * 60)) != nil)
        #expect(TokenSchedule(refreshAge: .seconds(55 * 60 + 1)) == nil)
    }

    @Test(arguments: [(5, 0), (19, 0), (20, 20), (35, 20), (39, 20), (40, 40), (75, 60)])
    func `issue times lie on common points`(minute: Int64, expected: Int64) throws {
        let schedule = try #require(TokenSchedule(refreshAge: .seconds(2400)))
        #expect(schedule.issueTime(at: 2400 * 1000 + minute * 60) == 2400 * 1000 + expected * 60)
    }
}

@Suite struct TokenCacheTests {
    private let directory: TemporaryDirectory
    private let path: String
    /// A step of the grid of 40 minutes begins here.
    private static let start: Int64 = 2400 * 708_334
    private static let origin = ContinuousClock.now

    init() throws {
        directory = try TemporaryDirectory()
        path = try directory.file("key.p8", TestKeys.rfc7515)
    }

    private static func at(_ minutes: Int64, seconds: Int64 = 0) -> CredentialInstant {
        let elapsed = minutes * 60 + seconds
        return CredentialInstant(seconds: start + elapsed, monotonic: origin + .seconds(elapsed))
    }

    private func cache(minutes: Int64 = 40) throws -> TokenCache {
        let schedule = try #require(TokenSchedule(refreshAge: .seconds(minutes * 60)))
        let file = KeyFile(path: path, credentialsDirectory: nil)
        return TokenCache(file: file, keyID: "ABC123DEFG", teamID: "DEF123GHIJ", schedule: schedule)
    }

    @Test func `one token serves until its age is reached`() throws {
        let cache = try cache()
        let first = try cache.token(now: Self.at(5))
        #expect(first.issuedAt == Self.start)
        #expect(first.authorization.hasPrefix("bearer "))
        #expect(try cache.token(now: Self.at(39, seconds: 59)) == first)
        let second = try cache.token(now: Self.at(40))
        #expect(second.issuedAt == Self.start + 2400)
        #expect(second.authorization != first.authorization)
    }

    @Test(arguments: [20, 25, 30, 40, 50, 55] as [Int64])
    func `no process mints twice within 20 minutes, and none presents a token of an hour`(age: Int64) throws {
        for begin in stride(from: Int64(0), to: 60, by: 1) {
            let cache = try cache(minutes: age)
            var mints: [Int64] = []
            var last: ProviderToken?
            for minute in begin..<begin + 240 {
                let token = try cache.token(now: Self.at(minute))
                #expect(Self.at(minute).seconds - token.issuedAt <= max(age, 40) * 60)
                #expect(token.issuedAt <= Self.at(minute).seconds)
                if token != last { mints.append(minute) }
                last = token
            }
            #expect(zip(mints, mints.dropFirst()).allSatisfy { $1 - $0 >= 20 }, "began at minute \(begin)")
        }
    }

    @Test func `processes that start at any time agree on few tokens`() throws {
        let caches = try (0..<40).map { _ in try cache() }
        var issued: Set<Int64> = []
        for minute in Int64(0)..<160 {
            for (begin, cache) in caches.enumerated() where Int64(begin) <= minute {
                issued.insert(try cache.token(now: Self.at(minute)).issuedAt)
            }
        }
        #expect(issued.sorted() == [0, 20, 40, 80, 120].map { Self.start + $0 * 60 })
    }

    @Test func `a replacement is made once, with a time that processes share`() throws {
        let cache = try cache()
        let first = try cache.token(now: Self.at(5))
        guard case .replaced(let replacement) = try cache.replace(now: Self.at(7)) else {
            Issue.record("the first replacement is made")
            return
        }
        #expect(replacement.issuedAt == Self.at(5).seconds, "the last of the five-minute points")
        #expect(replacement != first)
        #expect(try cache.token(now: Self.at(8)) == replacement)
        #expect(try cache.replace(now: Self.at(8)) == .refused)
        #expect(try cache.replace(now: Self.at(46)) == .refused)
        #expect(try cache.replace(now: Self.at(47)) != .refused)
    }

    /// What two processes of one key present while the provider calls every token expired. Each replaces its token when
    /// it may, pauses for 40 minutes when it may not, and then probes.
    @Test(arguments: Array(stride(from: Int64(1), to: 80, by: 3)))
    func `two processes in a storm of refusals present three tokens an hour`(begin: Int64) throws {
        var presented: [(second: Int64, issuedAt: Int64)] = []
        // They meet their refusals a second apart.
        for (delay, cache) in zip([Int64(30), 31], [try cache(), try cache()]) {
            var pausedUntil: Int64?
            for minute in Int64(0)..<300 {
                let second = minute * 60 + delay
                let now = Self.at(minute, seconds: delay)
                if let until = pausedUntil, second < until { continue }
                let token = try pausedUntil == nil ? cache.token(now: now) : cache.probe(now: now)
                presented.append((second, token.issuedAt))
                guard minute >= begin else { continue }
                if case .replaced = try cache.replace(token, now: now), pausedUntil == nil { continue }
                pausedUntil = second + 2400
            }
        }
        for (end, _) in presented {
            let hour = presented.filter { $0.second > end - 3600 && $0.second <= end }
            #expect(Set(hour.map(\.issuedAt)).count <= 3, "the storm began at minute \(begin)")
        }
    }

    @Test func `a replacement is later than what it replaces`() throws {
        for second in Int64(0)..<400 {
            let cache = try cache()
            let first = try cache.token(now: Self.at(0, seconds: second))
            guard second > 0 else { continue }
            guard case .replaced(let token) = try cache.replace(first, now: Self.at(0, seconds: second)) else {
                Issue.record("the first token is replaced")
                return
            }
            #expect(token.issuedAt > first.issuedAt)
            #expect(token.issuedAt <= Self.at(0, seconds: second).seconds)
        }
    }

    @Test func `a token that followed another is not replaced in its first 25 minutes`() throws {
        let cache = try cache()
        _ = try cache.token(now: Self.at(5))
        let second = try cache.token(now: Self.at(40))
        #expect(try cache.replace(second, now: Self.at(64)) == .refused)
        #expect(try cache.replace(second, now: Self.at(65)) != .refused)
    }

    @Test func `a wall clock that leaps cannot make it mint within 20 minutes`() throws {
        let cache = try cache()
        let first = try cache.token(now: Self.at(5))
        let leapt = CredentialInstant(
            seconds: Self.start + 10 * 3600, monotonic: Self.origin + .seconds(6 * 60))
        #expect(try cache.token(now: leapt) == first)
        let later = CredentialInstant(
            seconds: Self.start + 10 * 3600, monotonic: Self.origin + .seconds(25 * 60))
        let second = try cache.token(now: later)
        #expect(second != first)
        // The clock is put right again: a token from the future is replaced as soon as it may be.
        #expect(try cache.token(now: Self.at(26)) == second)
        #expect(try cache.token(now: Self.at(45)).issuedAt == Self.start + 2400)
    }

    @Test func `the key file is read again at each mint`() throws {
        let cache = try cache()
        let first = try cache.token(now: Self.at(5))
        let key = try SigningKey.generated()
        let pem = key.privateKeyPEM().withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        _ = try directory.file("key.p8", pem)
        #expect(try cache.token(now: Self.at(6)) == first)
        let second = try cache.token(now: Self.at(41))
        let token = try #require(JSONWebToken(compact: second.authorization.utf8.dropFirst(7)))
        let verifier = try VerificationKey.of(key)
        let accepted = token.isSigned(by: verifier)
        #expect(accepted)
    }

    @Test func `the old token serves while the file cannot be read, but not beyond an hour`() throws {
        let cache = try cache()
        let first = try cache.token(now: Self.at(5))
        try FileManager.default.removeItem(atPath: path)
        #expect(try cache.token(now: Self.at(40)) == first)
        #expect(cache.renewalFault == .file(KeyFileError(path: path, problem: .missing)))
        #expect(throws: CredentialError.file(KeyFileError(path: path, problem: .missing))) {
            try cache.token(now: Self.at(59))
        }
        _ = try directory.file("key.p8", TestKeys.rfc7515)
        #expect(try cache.token(now: Self.at(60)).issuedAt == Self.start + 3600)
        #expect(cache.renewalFault == nil)
    }

    @Test func `a probe mints for a changed key or at the refresh age, not before`() throws {
        let cache = try cache()
        let first = try cache.token(now: Self.at(5))
        #expect(try cache.probe(now: Self.at(6)) == first)
        let key = try SigningKey.generated()
        let pem = key.privateKeyPEM().withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        _ = try directory.file("key.p8", pem)
        let second = try cache.probe(now: Self.at(7))
        #expect(second.issuedAt == Self.at(7).seconds)
        #expect(try cache.probe(now: Self.at(46)) == second)
        #expect(try cache.probe(now: Self.at(47)) != second)
    }

    @Test func `a token is never printed`() throws {
        let token = try cache().token(now: Self.at(5))
        let secret = token.authorization.dropFirst(7).prefix(20)
        var dumped = ""
        dump(token, to: &dumped)
        for text in ["\(token)", String(reflecting: token), dumped] {
            #expect(!text.contains(secret))
        }
    }
}
