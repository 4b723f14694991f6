import Synchronization

/// The access tokens that a token endpoint has issued, as far as FCM must know them: shared by the two stand-ins.
package final class FakeAccessTokens: Sendable {
    /// What FCM knows about a token.
    struct Grant: Sendable {
        /// The account that it was issued to.
        let account: FakeServiceAccount
        /// When it ends, in seconds since the Unix epoch.
        let expiry: Int64
        /// `kid` and `iat` of the assertion that it was issued for.
        let keyID: String?
        let issuedAt: Int64?
    }

    private let grants = Mutex<[String: Grant]>([:])

    /// Tokens remembered; beyond that the memory begins anew, as if all had been revoked.
    private static let limit = 100_000

    /// None issued yet.
    package init() {}

    /// How many are remembered, expired ones among them.
    package var count: Int { grants.withLock { $0.count } }

    /// The tokens themselves, for tests that look for them where they must not be.
    package var tokens: [String] { grants.withLock { Array($0.keys) } }

    /// Forgets every token: FCM answers 401 to them from now on, whatever their age.
    package func revokeAll() {
        grants.withLock { $0.removeAll() }
    }

    /// Lets `account` send with `token` for an hour from now, without a token endpoint: for tests of FCM alone.
    package func admit(_ token: String, for account: FakeServiceAccount) {
        record(
            token, Grant(account: account, expiry: WallClock().seconds + 3600, keyID: account.keyID, issuedAt: nil))
    }

    func record(_ token: String, _ grant: Grant) {
        grants.withLock { grants in
            if grants.count >= Self.limit { grants.removeAll() }
            grants[token] = grant
        }
    }

    func grant(of token: String) -> Grant? {
        grants.withLock { $0[token] }
    }
}
