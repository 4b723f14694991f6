/// One answer of Google's token endpoint that is no token, and what it means to Postbell: a row of the table in
/// `TokenEndpointReasonTable.swift`.
package struct TokenEndpointReason: Equatable, Sendable {
    /// What it comes to.
    package enum Effect: String, Equatable, Sendable {
        /// The account is refused: the lane pauses (`misconfigured`).
        case refused
        /// The endpoint is at fault or wants less: nothing is sent, and it is asked again (*not sent*).
        case unavailable
    }

    /// Which of two readings an answer has that says nothing more.
    package enum Reading: Equatable, Sendable {
        /// Our clock differs from the endpoint's by more than a minute, or it complains of times.
        case clock
        /// The clocks agree.
        case account
    }

    /// The HTTP status; nil for any, 500 for any from 500 to 599 that has no row of its own.
    package let status: Int?
    /// The member `error` (RFC 6749 5.2); nil for any, or none.
    package let error: String?
    /// The reading, where the same words mean two things.
    package let reading: Reading?
    /// What it comes to.
    package let effect: Effect
    /// What it means, for the documentation and the log.
    package let meaning: String
    /// What an operator is to do about it; empty for nothing.
    package let remedy: String

    /// A row.
    init(
        _ status: Int?, _ error: String?, _ effect: Effect, reading: Reading? = nil, meaning: String,
        remedy: String = ""
    ) {
        self.status = status
        self.error = error
        self.reading = reading
        self.effect = effect
        self.meaning = meaning
        self.remedy = remedy
    }

    /// The row for an answer; for its status class when what it says is in no table. Google's word goes before the
    /// status.
    package static func row(status: Int, error: String?, reading: Reading) -> TokenEndpointReason {
        for row in table where row.matches(status, error, reading) { return row }
        return unknown(status: status)
    }

    private func matches(_ status: Int, _ error: String?, _ reading: Reading) -> Bool {
        if let row = self.error, row != error { return false }
        if let row = self.status, row != (row == 500 && (500...599).contains(status) ? 500 : status) { return false }
        return self.reading == nil || self.reading == reading
    }

    /// What a status means whose words are in no table.
    private static func unknown(status: Int) -> TokenEndpointReason {
        if (400...499).contains(status) {
            return TokenEndpointReason(
                nil, nil, .refused, meaning: "the request for a token is refused",
                remedy: "check the service account, and whether the address is the token endpoint's")
        }
        return TokenEndpointReason(nil, nil, .unavailable, meaning: "the answer is none of a token endpoint")
    }
}
