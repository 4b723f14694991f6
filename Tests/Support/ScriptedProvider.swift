package import HTTP2
package import OutboxCore

/// The smallest provider that keeps the contract of `PushProvider`: what a service without rules of its own would be.
/// Answers are outcomes by name.
package struct ScriptedProvider: PushProvider {
    /// What the body of an answer is read as, under any status but 200.
    package var script: [String: Outcome]
    /// What a request for access is answered.
    package var access = ProviderAccess.granted(byAnotherCredential: false)
    package private(set) var tokenMark: UInt8 = 0
    private let payloadLimit: Int
    private var shared: (headers: Int32, identifier: ByteSlice, collapse: ByteSlice, body: ByteSlice)?

    /// A provider that takes payloads of up to `payloadLimit` bytes.
    package init(script: [String: Outcome] = [:], payloadLimit: Int = 4096) {
        self.script = script
        self.payloadLimit = payloadLimit
    }

    package mutating func authorize(now: Int64, isProbe: Bool) -> ProviderAccess { access }

    package mutating func begin(
        _ push: OutgoingPush, text: [UInt8], into requests: inout HTTPRequestBatch
    ) -> Outcome? {
        let payload = text[Int(push.dispatch.payload.lowerBound)..<Int(push.dispatch.payload.upperBound)]
        guard payload.first == UInt8(ascii: "{") else { return Outcome(.rejected, reason: "payload_malformed") }
        guard payload.count <= payloadLimit else { return Outcome(.rejected, reason: "payload_too_large") }
        let collapse = text[Int(push.dispatch.collapseKey.lowerBound)..<Int(push.dispatch.collapseKey.upperBound)]
        shared = (
            requests.addSharedHeaders([
                HTTPHeader("authorization", "scripted access-canary-\(tokenMark)", isSensitive: true)
            ]),
            requests.append { push.dispatch.notification.append(to: &$0) },
            requests.append { $0.append(contentsOf: collapse) }, requests.append { $0.append(contentsOf: payload) }
        )
        return nil
    }

    package mutating func add(
        _ target: ClaimedTarget, tag: UInt64, text: [UInt8], into requests: inout HTTPRequestBatch
    ) -> Outcome? {
        guard let shared else { preconditionFailure("a target is added after its notification was begun") }
        let token = text[Int(target.token.lowerBound)..<Int(target.token.upperBound)]
        guard !token.isEmpty, token.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            return Outcome(.unregistered, reason: "token_malformed", proof: .proven)
        }
        requests.add(
            tag: tag, shared: shared.headers,
            path: requests.append { bytes in
                bytes.append(contentsOf: "/scripted/".utf8)
                bytes.append(contentsOf: token)
            },
            fields: [
                HTTPRequestField(HTTPFieldName("scripted-id"), shared.identifier),
                HTTPRequestField(HTTPFieldName("scripted-collapse"), shared.collapse),
            ], body: shared.body)
        return nil
    }

    package func decode(_ response: HTTPResponse, text: [UInt8]) -> Outcome {
        let status = Int16(clamping: response.status)
        if response.status == 200 { return Outcome(.delivered, status: status) }
        let word = String(decoding: text[response.body.indices], as: UTF8.self)
        guard let known = script[word] else {
            return Outcome(status >= 500 ? .retry : .rejected, status: status, reason: "no_reason")
        }
        return Outcome(
            known.kind, scope: known.scope, status: status, reason: word, proof: known.proof,
            retryFloor: known.retryFloor, advice: known.advice)
    }

    package mutating func replaceToken(_ mark: UInt8, because refusal: Outcome, now: Int64) -> TokenReplacement {
        guard mark == tokenMark else { return .known }
        tokenMark &+= 1
        return .replaced
    }

    package mutating func reloadCredential(now: Int64) -> Bool? { false }
}
