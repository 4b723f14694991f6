/// What the stand-in for Google's token endpoint answers, or does instead of answering.
package enum TokenEndpointAnswer: Equatable, Sendable {
    /// 200 with an access token.
    case granted
    /// 200 with an access token, after this time.
    case slow(Duration)
    /// 400 with an error of RFC 6749 5.2 and a description.
    case refused(error: String, description: String)
    /// 503 with Google's `internal_failure`, the service being down.
    case down
    /// 500 with Google's `internal_failure`.
    case failed
    /// 429, with `retry-after` where given.
    case tooManyRequests(RetryAfter?)
    /// This status with a page of HTML, as from a front end.
    case page(status: Int)
    /// This status with nothing behind it.
    case empty(status: Int)
    /// 200 with a body that is cut off in the middle.
    case cutOff
    /// No answer.
    case unanswered(ConnectionFault)

    /// 400 `invalid_grant`.
    package static func invalidGrant(_ description: String) -> TokenEndpointAnswer {
        .refused(error: "invalid_grant", description: description)
    }

    /// 400 `invalid_grant` with the words for a clock that is off.
    package static let clockOff = invalidGrant(AssertionCheck.clockComplaint)

    /// The status as logged; 0 when there is none.
    var status: Int {
        switch self {
        case .granted, .slow, .cutOff: 200
        case .refused: 400
        case .down: 503
        case .failed: 500
        case .tooManyRequests: 429
        case .page(let status), .empty(let status): status
        case .unanswered: 0
        }
    }

    /// The error as logged, or what is done instead of an answer.
    var note: String {
        switch self {
        case .granted: ""
        case .slow: "slow"
        case .refused(let error, _): error
        case .down, .failed: "internal_failure"
        case .tooManyRequests: "rate_limit_exceeded"
        case .page: "page"
        case .empty: "empty"
        case .cutOff: "cut_off"
        case .unanswered(let fault): fault.rawValue
        }
    }

    /// The body's error and description; nil for an answer without them.
    var complaint: (error: String, description: String)? {
        switch self {
        case .refused(let error, let description): (error, description)
        case .down: ("internal_failure", "The service is currently unavailable.")
        case .failed: ("internal_failure", "Internal error encountered.")
        case .tooManyRequests: ("rate_limit_exceeded", "Rate Limit Exceeded")
        default: nil
        }
    }
}
