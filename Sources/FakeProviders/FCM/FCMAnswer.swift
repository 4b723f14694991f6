/// What the stand-in for FCM does about a request.
package enum FCMAnswer: Equatable, Sendable {
    /// 200 with the message's name.
    case accepted
    /// 200 after this time.
    case slow(Duration)
    /// 200, after a GOAWAY that covers this stream.
    case acceptedThenGoneAway
    /// An error in Google's JSON.
    case fault(FCMFault)
    /// This status with a page of HTML, as from a front end.
    case page(status: Int)
    /// This status with nothing behind it.
    case empty(status: Int)
    /// No answer.
    case unanswered(ConnectionFault)

    /// The status as logged; 0 when there is none.
    var status: Int {
        switch self {
        case .accepted, .slow, .acceptedThenGoneAway: 200
        case .fault(let fault): fault.httpStatus
        case .page(let status), .empty(let status): status
        case .unanswered: 0
        }
    }

    /// The error as logged, FCM's own code before the general one, or what is done instead of an answer.
    var note: String {
        switch self {
        case .accepted: ""
        case .slow: "slow"
        case .acceptedThenGoneAway: "goaway_after"
        case .fault(let fault): fault.errorCode ?? fault.status
        case .page: "page"
        case .empty: "empty"
        case .unanswered(let fault): fault.rawValue
        }
    }
}
