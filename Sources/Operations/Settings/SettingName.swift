/// Every setting by its environment variable. What each means is in `SettingsTable`.
package enum SettingName: String, CaseIterable, Sendable {
    case databaseURL = "DATABASE_URL"

    case apnsCredentials = "POSTBELL_APNS_CREDENTIALS"
    case keyFile = "APNS_KEY_FILE"
    case keyID = "APNS_KEY_ID"
    case teamID = "APNS_TEAM_ID"
    case topic = "APNS_TOPIC"
    case apnsEnvironment = "APNS_ENVIRONMENT"
    case tokenRefresh = "POSTBELL_APNS_JWT_REFRESH"
    case serverErrorDelay = "POSTBELL_APNS_5XX_DELAY"
    case apnsPause = "POSTBELL_PAUSE_APNS"
    case apnsEndpoint = "POSTBELL_APNS_ENDPOINT"

    case fcmCredentials = "POSTBELL_FCM_CREDENTIALS"
    case serviceAccountFile = "FCM_SERVICE_ACCOUNT_FILE"
    case fcmApp = "FCM_APP"
    case quotaDelay = "POSTBELL_FCM_429_DELAY"
    case fcmPause = "POSTBELL_PAUSE_FCM"
    case fcmEndpoint = "POSTBELL_FCM_ENDPOINT"
    case fcmTokenEndpoint = "POSTBELL_FCM_TOKEN_ENDPOINT"

    case providers = "POSTBELL_PROVIDERS"
    case wake = "POSTBELL_WAKE"
    case poll = "POSTBELL_POLL"
    case batch = "POSTBELL_BATCH"
    case lease = "POSTBELL_LEASE"
    case recheckAfter = "POSTBELL_RECHECK_AFTER"
    case targetsPerClaim = "POSTBELL_TARGETS_PER_CLAIM"
    case settleRows = "POSTBELL_SETTLE_ROWS"
    case settleDelay = "POSTBELL_SETTLE_DELAY"
    case stopTimeout = "POSTBELL_STOP_TIMEOUT"
    case retry = "POSTBELL_RETRY"
    case maxCrashes = "POSTBELL_MAX_CRASHES"
    case maxFailures = "POSTBELL_MAX_CONSECUTIVE_FAILURES"
    case retryBudget = "POSTBELL_RETRY_BUDGET"
    case proofWindow = "POSTBELL_PROOF_WINDOW"
    case stormShare = "POSTBELL_STORM_SHARE"
    case stormCount = "POSTBELL_STORM_COUNT"
    case stormWindow = "POSTBELL_STORM_WINDOW"
    case stuckAfter = "POSTBELL_STUCK_AFTER"

    case concurrency = "POSTBELL_CONCURRENCY"
    case connections = "POSTBELL_CONNECTIONS"
    case requestTimeout = "POSTBELL_REQUEST_TIMEOUT"
    case connectTimeout = "POSTBELL_CONNECT_TIMEOUT"
    case pingAfter = "POSTBELL_PING_AFTER"
    case pingTimeout = "POSTBELL_PING_TIMEOUT"
    case idleTimeout = "POSTBELL_IDLE_TIMEOUT"
    case certificateFile = "POSTBELL_CA_FILE"
    case proxy = "POSTBELL_PROXY"
    case httpsProxy = "https_proxy"
    case noProxy = "no_proxy"

    case logLevel = "POSTBELL_LOG_LEVEL"
    case logFormat = "POSTBELL_LOG_FORMAT"

    /// The prefix under which an unknown name is an error: it can only be meant for us.
    static let ownPrefix = "POSTBELL_"

    /// Another spelling that counts where this one is not set, as it does for other programs; nil for none.
    var otherSpelling: String? {
        switch self {
        case .httpsProxy, .noProxy: rawValue.uppercased()
        default: nil
        }
    }
}
