/// What the stand-in does about a request.
enum APNSAnswer: Equatable {
    /// 200.
    case accepted
    /// A status with its reason in the body; 410 adds a timestamp.
    case rejected(status: Int, reason: String)
    /// 200 after a while.
    case slow(Duration)
    /// GOAWAY that covers this stream, and 200.
    case acceptedThenGoneAway
    /// A status with a page of HTML.
    case page(status: Int)
    /// A status with nothing behind it.
    case empty(status: Int)
    /// No answer.
    case unanswered(ConnectionFault)

    /// The status as logged; 0 when there is none.
    var status: Int {
        switch self {
        case .accepted, .slow, .acceptedThenGoneAway: 200
        case .rejected(let status, _), .page(let status), .empty(let status): status
        case .unanswered: 0
        }
    }

    /// The reason as logged, or what is done instead of an answer.
    var note: String {
        switch self {
        case .accepted: ""
        case .rejected(_, let reason): reason
        case .slow: "slow"
        case .acceptedThenGoneAway: "goaway_after"
        case .page: "page"
        case .empty: "empty"
        case .unanswered(let fault): fault.rawValue
        }
    }
}
