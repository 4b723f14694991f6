/// What a lane needs from outside before it can send, and what of it is missing.
struct LaneReach: Equatable, Sendable {
    /// The things needed.
    enum Need: Equatable, Sendable {
        /// A connection to the provider, or leave to make one.
        case connection
        /// A token to authorise requests with.
        case access
    }

    private struct Lack: Equatable, Sendable {
        let reason: String
        let since: ContinuousClock.Instant
        let retryAt: ContinuousClock.Instant
    }

    private var connection: Lack?
    private var access: Lack?

    /// When all that is missing will have been tried again; nil while nothing is.
    var retryAt: ContinuousClock.Instant? {
        guard let access = access?.retryAt else { return connection?.retryAt }
        return max(access, connection?.retryAt ?? access)
    }

    /// Why nothing can be sent; nil while nothing is missing. Access goes first: who has none makes no connection.
    var trouble: LaneState.Trouble? {
        guard let lack = access ?? connection, let retryAt else { return nil }
        return LaneState.Trouble(condition: .down, reason: lack.reason, since: lack.since, until: retryAt)
    }

    /// `need` is missing and will be tried for again at `retryAt`. A lack that lasts keeps its beginning.
    mutating func lost(
        _ need: Need, because reason: String, retryAt: ContinuousClock.Instant, at now: ContinuousClock.Instant
    ) {
        switch need {
        case .connection:
            connection = Lack(reason: reason, since: connection?.since ?? now, retryAt: retryAt)
        case .access:
            access = Lack(reason: reason, since: access?.since ?? now, retryAt: retryAt)
        }
    }

    /// `need` is there.
    mutating func has(_ need: Need) {
        switch need {
        case .connection: connection = nil
        case .access: access = nil
        }
    }
}
