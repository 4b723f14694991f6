/// Trouble that goes on: said at once, and again when its reason is another one or a minute has passed.
struct RepeatedTrouble {
    private var reason: String?
    private var saidAt = ContinuousClock.now

    private static let interval = Duration.seconds(60)

    /// Whether this is to be said now; if so, it counts as said.
    mutating func isNews(_ reason: String, at now: ContinuousClock.Instant) -> Bool {
        guard reason != self.reason || saidAt.duration(to: now) > Self.interval else { return false }
        self.reason = reason
        saidAt = now
        return true
    }

    /// The next one is news, whatever its reason.
    mutating func isOver() {
        reason = nil
    }
}
