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
    private var replacedAt: Int64?

    /// Answers that call the old token expired keep coming for a moment after it was replaced; in seconds.
    private static let replacementEcho: Int64 = 2

    /// A provider that presents the tokens of `tokens`, which lanes of one key share. `reportsFault` hears once of each
    /// new reason why no token can be had.
    package init(
        _ configuration: APNSConfiguration, tokens: TokenCache,
        reportsFault: @escaping @Sendable (CredentialError) -> Void = { _ in }
    ) {
        self.tokens = tokens
        self.reportsFault = reportsFault
        decoder = APNSResponseDecoder(serverErrorDelay: configuration.serverErrorDelay)
        encoder = APNSRequestEncoder(topics: configuration.topics)
    }

    package mutating func authorize(now: Int64, isProbe: Bool) -> Outcome? {
        do throws(CredentialError) {
            let instant = CredentialInstant(seconds: now, monotonic: .now)
            let token = try isProbe ? tokens.probe(now: instant) : tokens.token(now: instant)
            use(token)
            report(tokens.renewalFault)
            return nil
        } catch {
            report(error)
            return Outcome(.misconfigured, scope: .lane, reason: Self.reason(for: error))
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

    package func decode(_ response: HTTPResponse, text: [UInt8]) -> Outcome {
        decoder.decode(response, text: text)
    }

    package mutating func replaceToken(now: Int64) -> Bool {
        if let replacedAt, abs(now - replacedAt) <= Self.replacementEcho { return true }
        do throws(CredentialError) {
            let instant = CredentialInstant(seconds: now, monotonic: .now)
            guard case .replaced(let fresh) = try tokens.replace(token, now: instant) else { return false }
            use(fresh)
            replacedAt = now
            return true
        } catch {
            report(error)
            return false
        }
    }

    package mutating func reloadCredential(now: Int64) -> Bool? {
        do throws(CredentialError) {
            let token = try tokens.reload(now: CredentialInstant(seconds: now, monotonic: .now))
            report(nil)
            defer { use(token) }
            return token != self.token
        } catch {
            reportedFault = nil
            report(error)
            return nil
        }
    }

    private mutating func use(_ token: ProviderToken) {
        guard token != self.token else { return }
        self.token = token
        encoder.setAuthorization(token.authorization)
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
