import Credentials
package import HTTP2
package import OutboxCore

/// Google's FCM behind one lane: one project, with the access tokens of one service account.
package struct FCMProvider: PushProvider {
    /// Response headers that the lane's transport has to keep.
    package static let capturedHeaders = FCMResponseDecoder.capturedHeaders

    private let source: AccessTokenSource
    private let decoder: FCMResponseDecoder
    private var encoder: FCMRequestEncoder
    private var token: AccessToken?
    /// The number of the account that the lane was last told to use.
    private var accountNumber: Int

    /// A provider that presents the tokens of `source`, which lanes of one account share. Made and used on its loop.
    /// `accessChanged` is called when access comes or goes by itself.
    package init(
        _ configuration: FCMConfiguration, source: AccessTokenSource,
        accessChanged: @escaping @Sendable (ProviderAccess) -> Void
    ) {
        self.source = source
        decoder = FCMResponseDecoder(throttleDelay: configuration.throttleDelay)
        encoder = FCMRequestEncoder(project: configuration.project)
        accountNumber = source.assumeIsolated { source in
            source.listen(accessChanged)
            return source.accountNumber
        }
    }

    package var tokenMark: UInt8 { UInt8(truncatingIfNeeded: token?.number ?? 0) }

    package mutating func authorize(now: Int64, isProbe: Bool) -> ProviderAccess {
        let (access, token) = source.assumeIsolated { (source) -> (ProviderAccess, AccessToken?) in
            // The way of every send, but for the first and for probes.
            if !isProbe, let token = source.token(at: .now) { return (.granted, token) }
            return (source.seek(isProbe: isProbe), source.token(at: .now))
        }
        guard access == .granted, let token else { return access }
        use(token)
        return .granted(byAnotherCredential: notesAnotherAccount(token.accountNumber))
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
        FCMBody.fault(of: kind)
    }

    package func decode(_ response: HTTPResponse, text: [UInt8]) -> Outcome {
        // The time matters to a `retry-after` alone, which no accepted message has.
        decoder.decode(response, text: text, now: response.status == 200 ? 0 : CredentialInstant.now.seconds)
    }

    package mutating func replaceToken(_ mark: UInt8, because refusal: Outcome, now: Int64) -> TokenReplacement {
        guard mark == tokenMark, let token else { return .known }
        return source.assumeIsolated { $0.replace(token.number, because: refusal) }
    }

    package mutating func reloadCredential(now: Int64) -> Bool? {
        source.assumeIsolated { $0.reload() }.map { notesAnotherAccount($0) }
    }

    private mutating func use(_ token: AccessToken) {
        guard token.number != self.token?.number else { return }
        self.token = token
        encoder.setAuthorization(token.authorization)
    }

    /// Whether the account is another than the lane was told of before; true once for each.
    private mutating func notesAnotherAccount(_ number: Int) -> Bool {
        guard number > accountNumber else { return false }
        accountNumber = number
        return true
    }
}
