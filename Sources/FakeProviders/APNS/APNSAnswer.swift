/// What the stand-in does about a request.
enum APNSAnswer: Equatable {
    /// 200.
    case accepted
    /// A status with its reason in the body; 410 adds a timestamp.
    case rejected(status: Int, reason: StaticString)
    /// 200 after a while.
    case slow
    /// No answer, ever.
    case silence
    /// The request is taken and the stream reset (INTERNAL_ERROR).
    case reset
    /// The stream is refused (REFUSED_STREAM): the request counts as not processed.
    case refused
    /// The same, and the stream is reset once more with STREAM_CLOSED, as the real service does when it throttles.
    case refusedThenClosed
    /// The connection is closed without an answer.
    case closed
    /// GOAWAY that leaves this stream out, so that it counts as not processed.
    case goneAway
    /// GOAWAY that covers this stream, and 200.
    case acceptedThenGoneAway
    /// 500 with a body that is no JSON.
    case unreadable

    static func == (left: APNSAnswer, right: APNSAnswer) -> Bool {
        left.status == right.status && left.note == right.note
    }

    /// The status as logged; 0 when there is none.
    var status: Int {
        switch self {
        case .accepted, .slow, .acceptedThenGoneAway: 200
        case .rejected(let status, _): status
        case .unreadable: 500
        case .silence, .reset, .refused, .refusedThenClosed, .closed, .goneAway: 0
        }
    }

    /// The reason as logged, or what is done instead of an answer.
    var note: String {
        switch self {
        case .accepted: ""
        case .rejected(_, let reason): reason.description
        case .slow: "slow"
        case .silence: "silence"
        case .reset: "reset"
        case .refused: "refused_stream"
        case .refusedThenClosed: "refused_stream_twice"
        case .closed: "closed"
        case .goneAway: "goaway"
        case .acceptedThenGoneAway: "goaway_after"
        case .unreadable: "unreadable"
        }
    }
}
