package import OutboxCore

/// One answer of APNs and what it means to Postbell: a row of the table in `APNSReasonTable.swift`.
package struct APNSReason: Equatable, Sendable {
    /// No repetition sooner than this.
    package enum Floor: Equatable, Sendable {
        /// The kind's retry policy alone.
        case none
        /// The configured wait after a 5xx (Apple: 15 minutes).
        case serverError
        /// A wait of its own.
        case fixed(Duration)
    }

    /// The HTTP status.
    package let status: Int16
    /// Apple's word for it.
    package let reason: String
    /// What it comes to.
    package let kind: OutcomeKind
    /// Whom it concerns.
    package let scope: FaultScope
    /// What it proves about the device token.
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
        _ status: Int16, _ reason: String, _ kind: OutcomeKind, _ scope: FaultScope = .target,
        proof: TokenProof = .none, floor: Floor = .none, advice: LaneAdvice = .none, meaning: String,
        remedy: String = ""
    ) {
        self.status = status
        self.reason = reason
        self.kind = kind
        self.scope = scope
        self.proof = proof
        self.floor = floor
        self.advice = advice
        self.meaning = meaning
        self.remedy = remedy
    }

    /// The row for this status and reason, or for the status class when the reason is not Apple's (any more).
    package static func row(status: Int, reason: some Collection<UInt8>) -> APNSReason {
        for row in table where Int(row.status) == status && row.reason.utf8.elementsEqual(reason) { return row }
        return unknown(status: status)
    }

    /// What a status means when its reason is missing or in no table.
    package static func unknown(status: Int) -> APNSReason {
        let number = Int16(clamping: status)
        switch status {
        case 403:
            return APNSReason(
                number, "", .misconfigured, .lane, meaning: "refused for the whole credential",
                remedy: "check key, team and environment")
        case 410: return APNSReason(number, "", .unregistered, proof: .proven, meaning: "the token is dead")
        case 429: return APNSReason(number, "", .throttled, floor: .fixed(throttleFloor), meaning: "too many requests")
        case 500...599: return APNSReason(number, "", .retry, floor: .serverError, meaning: "a fault of the service")
        default: return APNSReason(number, "", .rejected, meaning: "our request is at fault", remedy: defect)
        }
    }

    /// What to do about what only we can have caused.
    static let defect = "report a defect"

    /// The floor after a 429: Apple publishes no number, and 30 s are the least that has been seen to help.
    package static let throttleFloor = Duration.seconds(30)
    /// The floor after tokens were changed too often: minutes, during which nothing is minted.
    package static let tokenUpdateFloor = Duration.seconds(300)
}
