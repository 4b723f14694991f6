package import OutboxCore

/// One answer of FCM and what it means to Postbell: a row of the table in `FCMReasonTable.swift`.
package struct FCMReason: Equatable, Sendable {
    /// No repetition sooner than this. Where the answer has a `retry-after` that is longer, that counts.
    package enum Floor: Equatable, Sendable {
        /// The kind's retry policy alone.
        case none
        /// The configured wait after a 429 (Google: one minute).
        case throttle
        /// A wait of its own.
        case fixed(Duration)
    }

    /// Where the code has to stand in the answer.
    package enum Origin: Equatable, Sendable {
        /// In FCM's own detail (`FcmError.errorCode`): the message reached FCM and it speaks of message or target.
        case detail
        /// In `error.status` of an answer without such a detail: Google's front speaks of the request as a whole.
        case status
        /// Either.
        case any
    }

    /// The HTTP status; 0 for any of an error (400–599).
    package let status: Int16
    /// Google's word for it.
    package let code: String
    /// Where the word stands.
    package let origin: Origin
    /// What else the answer has to show.
    package let evidence: FCMErrorBody.Evidence?
    /// What it comes to.
    package let kind: OutcomeKind
    /// Whom it concerns.
    package let scope: FaultScope
    /// What it proves about the token.
    package let proof: TokenProof
    /// How long a repetition waits at least.
    package let floor: Floor
    /// What the lane has to do.
    package let advice: LaneAdvice
    /// What it means, for the documentation.
    package let meaning: String
    /// What an operator is to do about it, for the documentation; empty for nothing.
    package let remedy: String

    /// A row. `kind` first: it says most.
    init(
        _ status: Int16, _ code: String, _ kind: OutcomeKind, _ scope: FaultScope = .target, origin: Origin = .any,
        evidence: FCMErrorBody.Evidence? = nil, proof: TokenProof = .none, floor: Floor = .none,
        advice: LaneAdvice = .none, meaning: String, remedy: String = ""
    ) {
        self.status = status
        self.code = code
        self.origin = origin
        self.evidence = evidence
        self.kind = kind
        self.scope = scope
        self.proof = proof
        self.floor = floor
        self.advice = advice
        self.meaning = meaning
        self.remedy = remedy
    }

    /// The word for ledger, logs and alarms: Google's, and the evidence where that makes the difference.
    package var reason: String {
        evidence.map { "\(code).\($0)" } ?? code
    }

    /// The row for an answer, or for its status class when what it says is in no table.
    package static func row(status: Int, body: FCMErrorBody) -> FCMReason {
        for row in table where row.matches(status, body) { return row }
        return unknown(status: status, hasDetail: body.code != nil)
    }

    private func matches(_ status: Int, _ body: FCMErrorBody) -> Bool {
        guard self.status == 0 ? (400...599).contains(status) : Int(self.status) == status else { return false }
        switch origin {
        case .detail: guard body.code == code else { return false }
        case .status: guard body.code == nil, body.status == code else { return false }
        case .any: guard (body.code ?? body.status) == code else { return false }
        }
        return evidence == nil || evidence == body.evidence
    }

    /// What a status means when its code is missing or in no table. A code of FCM's own speaks of one message or
    /// target: then the credential was good, and the lane goes on.
    package static func unknown(status: Int, hasDetail: Bool = false) -> FCMReason {
        let number = Int16(clamping: status)
        let scope: FaultScope = hasDetail ? .target : .lane
        switch status {
        case 401:
            return FCMReason(
                number, "", .misconfigured, scope, advice: hasDetail ? .none : .replaceToken,
                meaning: "the access token is refused", remedy: "check the service account")
        case 403, 404:
            return FCMReason(
                number, "", .misconfigured, scope, meaning: "refused for the whole project",
                remedy: "check project id, API and rights of the service account")
        case 429:
            return FCMReason(
                number, "", .throttled, scope, floor: .throttle, meaning: "too many requests")
        case 500...599:
            return FCMReason(number, "", .retry, floor: .fixed(serverErrorFloor), meaning: "a fault of the service")
        default:
            return FCMReason(number, "", .rejected, meaning: "our request is at fault", remedy: "report a defect")
        }
    }

    /// The floor after a 5xx (Firebase, best practices when sending at scale: at least ten seconds).
    package static let serverErrorFloor = Duration.seconds(10)
}
