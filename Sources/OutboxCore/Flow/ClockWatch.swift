/// Notices that the database's clock was set: a forward step makes leases look lapsed whose workers are well.
///
/// Each reading is known to lie between its question and its answer, so only a difference that these cannot explain is
/// a step.
package struct ClockWatch: Equatable, Sendable {
    private struct Reading: Equatable, Sendable {
        let time: Timestamp
        let askedAt: ContinuousClock.Instant
        let answeredAt: ContinuousClock.Instant
    }

    /// A step smaller than this is left to the length of the leases.
    package static let tolerance = Duration.seconds(1)

    private var last: Reading?
    private var quietUntil: ContinuousClock.Instant?

    /// A watch that has heard nothing yet.
    package init() {}

    /// The database answered `time` to a question. When its clock has stepped since the last answer, leases are left
    /// alone for one `lease` length; answers whether that is so.
    package mutating func heard(
        _ time: Timestamp, askedAt: ContinuousClock.Instant, answeredAt: ContinuousClock.Instant, lease: Duration
    ) -> Bool {
        let reading = Reading(time: time, askedAt: askedAt, answeredAt: answeredAt)
        defer { last = reading }
        guard let last else { return false }
        let passed = time - last.time
        let least = last.answeredAt.duration(to: askedAt) - Self.tolerance
        let most = last.askedAt.duration(to: answeredAt) + Self.tolerance
        guard passed < least || passed > most else { return false }
        quietUntil = answeredAt + lease
        return true
    }

    /// Whether a lease that looks lapsed at `now` may be taken for it.
    package func mayRecover(at now: ContinuousClock.Instant) -> Bool {
        quietUntil.map { $0 <= now } ?? true
    }
}
