package import OutboxCore

/// What is known of one account's access: which token serves, when the next is asked for, and why there may be none.
/// Decides, and does no I/O.
///
/// A token serves until its own end whatever happens to its renewal. One request is under way at a time, however many
/// lanes wait for it.
package struct AccessState: Sendable {
    private enum Trouble: Equatable {
        case unavailable(reason: String)
        case refused(Outcome)
    }

    /// A request for a token.
    private struct Asking {
        /// The account it is made with.
        let account: Int
        /// Somebody looked after the account meanwhile.
        var isOutdated = false
    }

    /// The token handed out last; nil when it was refused, or there was none yet.
    private var lastToken: AccessToken?
    private var tokensGranted = 0
    /// The number of the account and key that were read last; 0 before any was.
    package private(set) var accountNumber = 0
    private var fingerprint: [UInt8] = []
    /// The request for a token that is under way.
    private var asking: Asking?
    private var trouble: Trouble?
    private var failures = 0
    /// After a request that brought nothing: no other before this.
    private var retryAt: ContinuousClock.Instant?
    private var replacedAt: ContinuousClock.Instant?

    /// Wait after a first failure; doubles with each further one.
    package static let retryFirst = Duration.seconds(1)
    /// Longest wait after a failure.
    package static let retryMax = Duration.seconds(60)
    /// While a token still serves, a refused account is tried again after this long.
    package static let refusedRetry = Duration.seconds(300)
    /// One replacement within this time has to do, where it is longer than half a token's life.
    package static let replacementInterval = Duration.seconds(1200)

    /// Nothing was asked for yet.
    package init() {}

    /// The token that requests sent at `now` can carry.
    package func token(at now: ContinuousClock.Instant) -> AccessToken? {
        lastToken.flatMap { now < $0.endsAt ? $0 : nil }
    }

    /// How access stands.
    package func access(at now: ContinuousClock.Instant) -> ProviderAccess {
        if token(at: now) != nil { return .granted }
        return switch trouble {
        case nil: .awaited
        case .unavailable(let reason): .unavailable(reason: reason, retryAt: retryAt ?? now)
        case .refused(let outcome): .refused(outcome)
        }
    }

    /// Whether a token is to be asked for.
    package func wantsToken(at now: ContinuousClock.Instant) -> Bool {
        asking == nil && (asksAt(now).map { $0 <= now } ?? false)
    }

    /// When something is to be done, or access ends, by itself; nil when nothing will.
    package func nextEvent(after now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        let asks = asking == nil ? asksAt(now) : nil
        return [asks, token(at: now)?.endsAt].compactMap { $0 }.min()
    }

    private func asksAt(_ now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        if let token = token(at: now) {
            let due = token.accountNumber == accountNumber ? token.refreshAt : now
            return retryAt.map { max(due, $0) } ?? due
        }
        // Without a token a refused account waits for the lane's probe.
        if case .refused = trouble { return nil }
        return retryAt ?? now
    }

    // MARK: Requests

    /// The account's file was read: whether it holds another account or key than before. If so it is used at once.
    @discardableResult
    package mutating func accountRead(_ fingerprint: [UInt8]) -> Bool {
        guard fingerprint != self.fingerprint else { return false }
        self.fingerprint = fingerprint
        accountNumber += 1
        retryAt = nil
        return accountNumber > 1
    }

    /// A token is asked for with the account that was read last.
    package mutating func asked() {
        asking = Asking(account: accountNumber)
    }

    /// An operator says that the account is right now, in its file or at Google: a refusal on its way is of before.
    package mutating func lookedAfter() {
        asking?.isOutdated = true
    }

    /// A token was handed out for a request of `askedAt`.
    package mutating func granted(authorization: String, life: Duration, askedAt: ContinuousClock.Instant) {
        tokensGranted += 1
        lastToken = AccessToken(
            authorization: authorization, number: tokensGranted, accountNumber: asking?.account ?? accountNumber,
            askedAt: askedAt, life: life)
        asking = nil
        trouble = nil
        failures = 0
        retryAt = nil
    }

    /// The request brought nothing, and the account is not to blame. `wait` is what the endpoint asks for; `jitter`
    /// is a draw from 0..<1.
    package mutating func failed(reason: String, wait: Duration, jitter: Double, at now: ContinuousClock.Instant) {
        guard isOfPresentAccount() else { return }
        let backoff = min(Self.retryMax, Self.retryFirst * (1 << min(failures, 10)))
        failures += 1
        retryAt = now + max(wait, Jitter.lengthen(backoff, by: jitter))
        trouble = .unavailable(reason: reason)
    }

    /// The account was refused, or cannot be used. It is asked with once more, at once, when somebody has looked after
    /// it since it was asked with.
    package mutating func refused(_ outcome: Outcome, at now: ContinuousClock.Instant) {
        let isOutdated = asking?.isOutdated ?? false
        guard isOfPresentAccount() else { return }
        guard !isOutdated else {
            retryAt = nil
            return
        }
        failures = 0
        retryAt = now + Self.refusedRetry
        trouble = .refused(outcome)
    }

    /// What is heard of an account that was exchanged meanwhile says nothing: the new one is asked with at once.
    private mutating func isOfPresentAccount() -> Bool {
        defer { asking = nil }
        guard let asking, asking.account != accountNumber else { return true }
        retryAt = nil
        return false
    }

    // MARK: What lanes want

    /// A lane wants to send, and finds no access: a refused account is tried again.
    package mutating func seek(at now: ContinuousClock.Instant) {
        guard token(at: now) == nil, case .refused = trouble else { return }
        trouble = nil
        retryAt = nil
    }

    /// A lane was refused with the present token, and the account's file holds another account by now: the token is
    /// that one's no more.
    package mutating func discardToken() {
        lastToken = nil
        trouble = nil
        retryAt = nil
    }

    /// FCM refused the token of this number: one is made in its place, once. A second such answer within half a token's
    /// life is no matter of the token.
    package mutating func replace(
        _ number: Int, because refusal: Outcome, at now: ContinuousClock.Instant
    ) -> TokenReplacement {
        guard let token = lastToken, token.number == number else { return .known }
        discardToken()
        if let replacedAt, now < replacedAt + max(Self.replacementInterval, token.life / 2) {
            trouble = .refused(refusal)
            return .refused
        }
        replacedAt = now
        return .requested
    }
}
