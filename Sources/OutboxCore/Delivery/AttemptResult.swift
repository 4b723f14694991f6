/// An answer or a fault of one target, with its times on the database's clock.
package struct AttemptResult: Equatable, Sendable {
    /// Which target.
    package let tag: AttemptTag
    /// What came, or why nothing came.
    package let result: Result

    /// The two shapes of an end.
    package enum Result: Equatable, Sendable {
        case outcome(Outcome)
        case fault(SendFault)
    }

    /// First byte sent; the instant of the decision when no request was made.
    package let attemptedAt: Timestamp
    /// Answer complete; nil when none came.
    package let answeredAt: Timestamp?
    /// The end of an attempt.
    package init(tag: AttemptTag, result: Result, attemptedAt: Timestamp, answeredAt: Timestamp?) {
        self.tag = tag
        self.result = result
        self.attemptedAt = attemptedAt
        self.answeredAt = answeredAt
    }
}
