import Credentials
import Glibc

/// Checks provider tokens as APNs does: signature, key and team, age. Remembers the last ones, because clients present
/// one token a million times.
struct ProviderTokenCheck {
    /// What a token claims, and whether it may.
    struct Finding {
        /// The claim `kid`, if it could be read.
        var keyID: String?
        /// The claim `iss`, if it could be read.
        var teamID: String?
        /// The claim `iat`, if it could be read.
        var issuedAt: Int64?
        /// Whether signature, key and team are right; age not looked at.
        var isGenuine = false
        /// Whether the key is for the other environment.
        var isOfOtherEnvironment = false
    }

    private struct Remembered {
        var authorization: [UInt8]
        var finding: Finding
    }

    private let keys: [FakeAPNSKey]
    private var remembered: [Remembered] = []
    private var distinct: Set<String> = []
    /// When distinct tokens of each key were first seen within the last hour, in seconds since the Unix epoch.
    private var recent: [String: [Int64]] = [:]

    /// Tokens remembered; clients that use more are verified each time.
    private static let memory = 16
    /// Age, and distance into the future, beyond which a token is refused, in seconds.
    static let ageLimit: Int64 = 3600
    private static let scheme = Array("bearer ".utf8)

    init(keys: [FakeAPNSKey]) throws(FakeServerError) {
        for key in keys where VerificationKey(publicPEM: key.publicKeyPEM) == nil {
            throw .providerKey(keyID: key.keyID)
        }
        self.keys = keys
    }

    /// How many distinct pairs of `kid` and `iat` were genuine.
    var distinctTokens: Int { distinct.count }

    /// The most distinct tokens of one key that were first seen within an hour.
    private(set) var mostInAnHour = 0

    /// The finding on the value of an `authorization` header at `now`, in seconds since the Unix epoch.
    mutating func examine(_ authorization: ArraySlice<UInt8>, now: Int64) -> Finding {
        for entry in remembered where Self.isSame(entry.authorization, authorization) { return entry.finding }
        let finding = verify(authorization)
        if finding.isGenuine, let keyID = finding.keyID, let issuedAt = finding.issuedAt {
            if distinct.insert("\(keyID) \(issuedAt)").inserted { count(keyID, now) }
        }
        if remembered.count == Self.memory { remembered.removeFirst() }
        remembered.append(Remembered(authorization: Array(authorization), finding: finding))
        return finding
    }

    private mutating func count(_ keyID: String, _ now: Int64) {
        let kept = recent[keyID, default: []].filter { $0 > now - 3600 } + [now]
        recent[keyID] = kept
        mostInAnHour = max(mostInAnHour, kept.count)
    }

    /// Compared as memory: this runs for every request.
    private static func isSame(_ known: [UInt8], _ given: ArraySlice<UInt8>) -> Bool {
        guard known.count == given.count else { return false }
        return known.withUnsafeBytes { left in
            given.withUnsafeBytes { right in
                guard let left = left.baseAddress, let right = right.baseAddress else { return true }
                return memcmp(left, right, known.count) == 0
            }
        }
    }

    private func verify(_ authorization: ArraySlice<UInt8>) -> Finding {
        let scheme = authorization.prefix(Self.scheme.count)
        guard scheme.map({ $0 | 0x20 }).elementsEqual(Self.scheme),
            let token = JSONWebToken(compact: authorization.dropFirst(Self.scheme.count))
        else { return Finding() }
        var finding = Finding(keyID: token.keyID, teamID: token.issuer, issuedAt: token.issuedAt)
        guard token.issuedAt != nil, token.keyID != nil else { return finding }
        if keys.isEmpty {
            finding.isGenuine = token.algorithm == "ES256"
            return finding
        }
        for key in keys where key.keyID == token.keyID && key.teamID == token.issuer {
            guard let verifier = VerificationKey(publicPEM: key.publicKeyPEM) else { continue }
            guard token.isSigned(by: verifier) else { continue }
            finding.isGenuine = true
            finding.isOfOtherEnvironment = key.isOfOtherEnvironment
        }
        return finding
    }
}
