import Credentials

/// Checks the signed assertion by which a service account asks for an access token (RFC 7523), as Google's token
/// endpoint does, and answers in its words.
struct AssertionCheck {
    /// What an assertion claims, and what is wrong with it.
    struct Finding {
        /// The header's `kid`, if it could be read.
        var keyID: String?
        /// The claim `iat`, if it could be read.
        var issuedAt: Int64?
        /// The account, once it is known and has signed.
        var account: FakeServiceAccount?
        /// Nil when there is nothing against it.
        var fault: TokenEndpointAnswer?
    }

    private let accounts: [FakeServiceAccount]
    private let audiences: Set<String>

    /// Google's longest life of an assertion, in seconds.
    private static let longestLife: Int64 = 3600
    /// How far `iat` may lie ahead of the server's clock, in seconds. Google names no number.
    private static let aheadLimit: Int64 = 300
    /// The scopes that allow to send (the reference of messages:send names both).
    private static let scopes: Set<Substring> = [
        "https://www.googleapis.com/auth/firebase.messaging", "https://www.googleapis.com/auth/cloud-platform",
    ]

    /// Throws when an account's key is no RSA key.
    init(accounts: [FakeServiceAccount], audiences: Set<String>) throws(FakeServerError) {
        for account in accounts where RSAKey(pem: account.publicKeyPEM) == nil {
            throw .providerKey(keyID: account.keyID)
        }
        self.accounts = accounts
        self.audiences = audiences
    }

    /// The finding on `assertion` at `now`, in seconds since the Unix epoch.
    func examine(_ assertion: String, now: Int64) -> Finding {
        let parts = assertion.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Base64URL.decode(parts[0]).flatMap({ JSONValue($0) }),
            let claims = Base64URL.decode(parts[1]).flatMap({ JSONValue($0) }),
            let signature = Base64URL.decode(parts[2])
        else { return Finding(fault: .invalidGrant("Bad Request")) }
        var finding = Finding(keyID: header["kid"]?.text, issuedAt: claims["iat"]?.integer)
        guard header["alg"]?.text == "RS256" else {
            finding.fault = .invalidGrant("Invalid JWT: unsupported algorithm")
            return finding
        }
        guard let account = accounts.first(where: { $0.clientEmail == claims["iss"]?.text }) else {
            finding.fault = .invalidGrant("Invalid grant: account not found")
            return finding
        }
        let signed = Array(parts[0]) + [UInt8(ascii: ".")] + Array(parts[1])
        guard account.keyID == finding.keyID, let key = RSAKey(pem: account.publicKeyPEM),
            key.accepts(signature: signature, of: signed)
        else {
            finding.fault = .invalidGrant("Invalid JWT Signature.")
            return finding
        }
        finding.account = account
        finding.fault = faultOfTime(claims, now) ?? faultOfAudience(claims) ?? Self.faultOfScope(claims)
        return finding
    }

    private func faultOfTime(_ claims: JSONValue, _ now: Int64) -> TokenEndpointAnswer? {
        let fault = TokenEndpointAnswer.invalidGrant(Self.clockComplaint)
        guard let issuedAt = claims["iat"]?.integer, let expiry = claims["exp"]?.integer else { return fault }
        let isReasonable = issuedAt <= now + Self.aheadLimit && expiry > now && issuedAt < expiry
        return isReasonable && expiry - issuedAt <= Self.longestLife ? nil : fault
    }

    private func faultOfAudience(_ claims: JSONValue) -> TokenEndpointAnswer? {
        if let audience = claims["aud"]?.text, audiences.contains(audience) { return nil }
        let right = audiences.sorted().first ?? ServiceAccountFile.tokenURI
        return .invalidGrant("Invalid JWT: Failed audience check. The right audience is \(right)")
    }

    private static func faultOfScope(_ claims: JSONValue) -> TokenEndpointAnswer? {
        guard let text = claims["scope"]?.text, !text.isEmpty else {
            return .refused(error: "invalid_scope", description: "Empty or missing scope not allowed.")
        }
        if text.split(separator: " ").contains(where: scopes.contains) { return nil }
        return .refused(
            error: "invalid_scope", description: "Invalid OAuth scope or ID token audience provided.")
    }

    static let clockComplaint = """
        Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. \
        Check your iat and exp values in the JWT claim.
        """
}
