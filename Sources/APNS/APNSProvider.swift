package import Credentials
package import HTTP2
package import OutboxCore

/// Apple's push service behind one lane: one credential in one environment.
package struct APNSProvider: PushProvider {
    /// Response headers that the lane's transport has to keep.
    package static let capturedHeaders = APNSResponseDecoder.capturedHeaders

    private let tokens: TokenCache
    private let reportsFault: @Sendable (CredentialError) -> Void
    private let decoder: APNSResponseDecoder
    private var encoder: APNSRequestEncoder
    private var token: ProviderToken?
    private var reportedFault: CredentialError?
    /// The number of the key that the lane was last told to use.
    private var keyNumber: Int
    /// Names the token of the requests encoded now.
    package private(set) var tokenMark: UInt8 = 0

    /// A provider that presents the tokens of `tokens`, which lanes of one key share. `reportsFault` hears once of each
    /// new reason why no token can be had.
    package init(
        _ configuration: APNSConfiguration, tokens: TokenCache,
        reportsFault: @escaping @Sendable (CredentialError) -> Void = { _ in }
    ) {
        self.tokens = tokens
        self.reportsFault = reportsFault
        keyNumber = tokens.keyNumber
        decoder = APNSResponseDecoder(serverErrorDelay: configuration.serverErrorDelay)
        encoder = APNSRequestEncoder(topics: configuration.topics)
    }

    package mutating func authorize(now: Int64, isProbe: Bool) -> ProviderAccess {
        do throws(CredentialError) {
            let instant = CredentialInstant(seconds: now, monotonic: .now)
            let token = try isProbe ? tokens.probe(now: instant) : tokens.token(now: instant)
            use(token)
            report(tokens.renewalFault)
            return .granted(byAnotherCredential: notesAnotherKey(token))
        } catch {
            report(error)
            return .refused(Outcome(.misconfigured, scope: .lane, reason: Self.reason(for: error)))
        }
    }

    package mutating func begin(
        _ push: OutgoingPush, text: [UInt8], into requests: inout HTTPRequestBatch
    ) -> Outcome? {
        encoder.begin(push, text: text, into: &requests)
    }

    package mutating func add(
        _ target: ClaimedTarget, tag: UInt64, text: [UInt8], into requests: inout HTTPRequestBatch
    ) -> Outcome? {
        encoder.add(target, tag: tag, text: text, into: &requests)
    }

    package func fault(of kind: Kind) -> String? {
        APNSPushType.fault(of: kind)
    }

    package func decode(_ response: HTTPResponse, text: [UInt8]) -> Outcome {
        decoder.decode(response, text: text)
    }

    package mutating func replaceToken(_ mark: UInt8, because refusal: Outcome, now: Int64) -> TokenReplacement {
        // Answers to requests that carried the old token keep coming for as long as requests may take.
        guard mark == tokenMark else { return .known }
        do throws(CredentialError) {
            let instant = CredentialInstant(seconds: now, monotonic: .now)
            guard case .replaced(let fresh) = try tokens.replace(token, now: instant) else { return .refused }
            use(fresh)
            return .replaced
        } catch {
            report(error)
            return .refused
        }
    }

    package mutating func reloadCredential(now: Int64) -> Bool? {
        do throws(CredentialError) {
            let token = try tokens.reload(now: CredentialInstant(seconds: now, monotonic: .now))
            report(nil)
            use(token)
            return notesAnotherKey(token)
        } catch {
            reportedFault = nil
            report(error)
            return nil
        }
    }

    private mutating func use(_ token: ProviderToken) {
        guard token != self.token else { return }
        self.token = token
        tokenMark &+= 1
        encoder.setAuthorization(token.authorization)
    }

    /// Whether `token` is of another key than the lane was told of before; true once for each.
    private mutating func notesAnotherKey(_ token: ProviderToken) -> Bool {
        guard token.keyNumber != keyNumber else { return false }
        defer { keyNumber = token.keyNumber }
        return keyNumber != 0
    }

    private mutating func report(_ fault: CredentialError?) {
        guard fault != reportedFault else { return }
        reportedFault = fault
        if let fault { reportsFault(fault) }
    }

    /// The word for the ledger and the alarm; the whole sentence goes to `reportsFault`.
    private static func reason(for error: CredentialError) -> String {
        switch error {
        case .file: "key_file_refused"
        case .key: "key_refused"
        case .signing: "signing_failed"
        }
    }
}
