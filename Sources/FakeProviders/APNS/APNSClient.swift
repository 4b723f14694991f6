/// One connection and what APNs remembers about it.
final class APNSClient {
    let connection: ServerConnection
    /// The limit of streams that was announced last.
    var streamLimit: UInt32
    /// When the connection goes away and when its limit changes.
    var fate: ConnectionChance.Fate
    /// The newest stream whose request has arrived.
    var newestStream: Int32 = 0
    /// The last stream that a GOAWAY has left to be looked at.
    var lastStream = Int32.max
    /// Whether a valid provider token was presented.
    private(set) var isAdmitted = false
    private var keyID = ""
    private var teamID = ""
    private var tokenIssuedAt: Int64 = 0
    private var tokenSince: Int64 = 0
    private var isWedged = false

    init(_ connection: ServerConnection, streamLimit: UInt32, fate: ConnectionChance.Fate) {
        self.connection = connection
        self.streamLimit = streamLimit
        self.fate = fate
    }

    /// What is wrong with a provider token on this connection at `now` (seconds since the Unix epoch); nil binds the
    /// connection to its team and key.
    func fault(
        of finding: ProviderTokenCheck.Finding, at now: Int64, _ configuration: FakeAPNSConfiguration
    ) -> APNSAnswer? {
        if isWedged { return .rejected(status: 403, reason: "ExpiredProviderToken") }
        guard finding.isGenuine, let keyID = finding.keyID, let issuedAt = finding.issuedAt else {
            return .rejected(status: 403, reason: "InvalidProviderToken")
        }
        if abs(now - issuedAt) > ProviderTokenCheck.ageLimit {
            isWedged = configuration.wedgesAfterExpiredToken
            return .rejected(status: 403, reason: "ExpiredProviderToken")
        }
        if finding.isOfOtherEnvironment { return .rejected(status: 403, reason: "BadEnvironmentKeyInToken") }
        guard isAdmitted else {
            isAdmitted = true
            self.keyID = keyID
            teamID = finding.teamID ?? ""
            tokenIssuedAt = issuedAt
            tokenSince = now
            return nil
        }
        if teamID != finding.teamID ?? "" { return .rejected(status: 403, reason: "Forbidden") }
        if self.keyID != keyID { return .rejected(status: 403, reason: "UnrelatedKeyIdInToken") }
        // An older one is a request that was under way when the token changed.
        guard issuedAt > tokenIssuedAt else { return nil }
        if let interval = configuration.tokenUpdateInterval, now - tokenSince < interval.components.seconds {
            return .rejected(status: 429, reason: "TooManyProviderTokenUpdates")
        }
        tokenIssuedAt = issuedAt
        tokenSince = now
        return nil
    }
}
