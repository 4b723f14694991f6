import Synchronization

/// The one provider token of a team's key, shared by all its connections, topics and environments.
///
/// The key file is read again at each mint, so a key is rotated by replacing the file. Between mints no key material is
/// held. Safe to use from any thread; a mint takes some 50 µs and is done under the lock, so that two callers never
/// mint twice.
package final class TokenCache: Sendable {
    /// What a wish for a replacement came to.
    package enum Replacement: Equatable, Sendable {
        /// A new token was made; use it on new connections.
        case replaced(ProviderToken)
        /// There was one already within the refresh age: the fault lies elsewhere (our clock, the key, the team).
        case refused
    }

    private struct State {
        var token: ProviderToken?
        var mintedAt: ContinuousClock.Instant?
        /// Whether a token came before the present one.
        var isSuccessor = false
        var replacedAt: ContinuousClock.Instant?
        var keyMark: [UInt8] = []
        var keyNumber = 0
        var fault: CredentialError?
        var retryAt: ContinuousClock.Instant?
    }

    private let file: KeyFile
    private let keyID: String
    private let teamID: String
    private let schedule: TokenSchedule
    private let state = Mutex(State())

    /// After a failed renewal the file is left alone for this long; the old token serves meanwhile.
    package static let renewalRetryDelay = Duration.seconds(10)
    /// Age at which a token is not handed out any more whatever happens, in seconds; Apple refuses it at an hour.
    package static let ageLimit: Int64 = 59 * 60

    /// A cache that has made no token yet.
    package init(file: KeyFile, keyID: String, teamID: String, schedule: TokenSchedule) {
        self.file = file
        self.keyID = keyID
        self.teamID = teamID
        self.schedule = schedule
    }

    /// The token to present at `now`; made anew when it is due and the last mint lies 20 minutes back, or as long as
    /// the refresh age when that mint was a replacement.
    ///
    /// While a renewal fails the old token is answered until it is an hour old, and `renewalFault` says why.
    package func token(now: CredentialInstant) throws(CredentialError) -> ProviderToken {
        try state.withLock { state throws(CredentialError) in
            if let token = state.token, !schedule.isDue(issuedAt: token.issuedAt, now: now.seconds) { return token }
            if let fault = state.fault, let retryAt = state.retryAt, now.monotonic < retryAt {
                return try serve(state.token, despite: fault, now)
            }
            if let token = state.token, let mintedAt = state.mintedAt,
                now.monotonic < mintedAt + (mintedAt == state.replacedAt ? refreshAge : Self.shortestInterval)
            {
                return token
            }
            do throws(CredentialError) {
                return try mint(issuedAt: schedule.issueTime(at: now.seconds), now: now, &state)
            } catch {
                state.fault = error
                state.retryAt = now.monotonic + Self.renewalRetryDelay
                return try serve(state.token, despite: error, now)
            }
        }
    }

    /// Makes a token off the grid after the provider called `rejected` expired: once within the refresh age, and not
    /// when `rejected` is young and followed another, since what calls that one expired is no matter of age. When
    /// another lane has replaced it already, that one's token is the answer. Nil stands for the present token.
    ///
    /// With the intervals of `token` and `probe` a key has at most three tokens in any hour, however often they are
    /// refused. Processes that are refused at the same time share theirs, unless a common point lies between.
    package func replace(
        _ rejected: ProviderToken? = nil, now: CredentialInstant
    ) throws(CredentialError) -> Replacement {
        try state.withLock { state throws(CredentialError) in
            if let rejected, let token = state.token, token != rejected { return .replaced(token) }
            if let replacedAt = state.replacedAt, now.monotonic < replacedAt + .seconds(schedule.refreshAge) {
                return .refused
            }
            if state.isSuccessor, let mintedAt = state.mintedAt, now.monotonic < mintedAt + Self.youth {
                return .refused
            }
            let issuedAt = schedule.replacementTime(at: now.seconds, after: state.token?.issuedAt)
            let token = try mint(issuedAt: issuedAt, now: now, &state)
            state.replacedAt = now.monotonic
            return .replaced(token)
        }
    }

    /// The token for a probe after a pause: the key file is read again, and a token made only if it holds another key
    /// or the last mint lies as long back as the refresh age.
    package func probe(now: CredentialInstant) throws(CredentialError) -> ProviderToken {
        try state.withLock { state throws(CredentialError) in
            let key = try readKey()
            if let token = state.token, let mintedAt = state.mintedAt, Self.mark(of: key) == state.keyMark,
                now.monotonic < mintedAt + refreshAge
            {
                return token
            }
            let isOther = Self.mark(of: key) != state.keyMark
            return try sign(
                with: key, issuedAt: isOther ? now.seconds : schedule.issueTime(at: now.seconds), now: now, &state)
        }
    }

    /// The token after an operator said that the key file may hold another key: made anew only if it does.
    package func reload(now: CredentialInstant) throws(CredentialError) -> ProviderToken {
        try state.withLock { state throws(CredentialError) in
            let key = try readKey()
            if let token = state.token, Self.mark(of: key) == state.keyMark { return token }
            return try sign(with: key, issuedAt: now.seconds, now: now, &state)
        }
    }

    /// The number of the key that signed the present token; 0 before there is one.
    package var keyNumber: Int {
        state.withLock { $0.token?.keyNumber ?? 0 }
    }

    /// Why the last renewal failed while an older token still serves; nil when all is well.
    package var renewalFault: CredentialError? {
        state.withLock { $0.fault }
    }

    private static let shortestInterval = Duration.seconds(TokenSchedule.shortestInterval)
    /// Age below which a token that followed another cannot have expired: Apple takes a token for an hour, and two of
    /// them within the hour before are as many as leave room for a replacement.
    private static let youth = Duration.seconds(25 * 60)
    private var refreshAge: Duration { .seconds(schedule.refreshAge) }

    private func serve(
        _ token: ProviderToken?, despite fault: CredentialError, _ now: CredentialInstant
    ) throws(CredentialError) -> ProviderToken {
        guard let token, now.seconds - token.issuedAt < Self.ageLimit else { throw fault }
        return token
    }

    private func mint(
        issuedAt: Int64, now: CredentialInstant, _ state: inout State
    ) throws(CredentialError) -> ProviderToken {
        try sign(with: readKey(), issuedAt: issuedAt, now: now, &state)
    }

    private func readKey() throws(CredentialError) -> SigningKey {
        let bytes: SecretBytes
        do throws(KeyFileError) {
            bytes = try file.read()
        } catch {
            throw .file(error)
        }
        do throws(SigningKeyError) {
            return try SigningKey(pem: bytes)
        } catch {
            throw .key(path: file.path, error)
        }
    }

    private func sign(
        with key: borrowing SigningKey, issuedAt: Int64, now: CredentialInstant, _ state: inout State
    ) throws(CredentialError) -> ProviderToken {
        guard
            let text = JSONWebToken.compact(keyID: keyID, teamID: teamID, issuedAt: issuedAt, signedBy: key)
        else { throw .signing(path: file.path) }
        let mark = Self.mark(of: key)
        // Another key has an account of its own with Apple.
        state.isSuccessor = state.token != nil && mark == state.keyMark
        if mark != state.keyMark { state.keyNumber += 1 }
        state.keyMark = mark
        let token = ProviderToken(
            authorization: "bearer " + text, keyID: keyID, teamID: teamID, issuedAt: issuedAt,
            keyNumber: state.keyNumber)
        state.token = token
        state.mintedAt = now.monotonic
        state.fault = nil
        state.retryAt = nil
        return token
    }

    /// Tells one key from another: its public half.
    private static func mark(of key: borrowing SigningKey) -> [UInt8] {
        Array(key.publicKeyPEM().utf8)
    }
}
