/// How many requests a lane has in flight at most, as the provider's answers allow: halved when it asks for less, one
/// more for each full window of accepted pushes (additive increase, multiplicative decrease).
///
/// 1000 in flight, throttled: 500; throttled again a second later: 250; 250 accepted: 251.
package struct ConcurrencyLimit: Equatable, Sendable {
    /// Nil while the provider has asked for nothing: the transport's own limit holds.
    package private(set) var value: Int?
    private var ceiling = 0
    private var acceptedInWindow = 0
    private var loweredAt: ContinuousClock.Instant?

    /// The answers of one burst were all asked for at the same pace: they lower the limit once.
    private static let burst = Duration.seconds(1)

    /// No limit.
    package init() {}

    /// The provider throttles the lane, which has `inFlight` requests open, this one included.
    package mutating func throttled(inFlight: Int, at now: ContinuousClock.Instant) {
        if let loweredAt, loweredAt.duration(to: now) < Self.burst { return }
        loweredAt = now
        let present = value ?? inFlight
        ceiling = max(ceiling, present)
        value = max(1, present / 2)
        acceptedInWindow = 0
    }

    /// A push was accepted.
    package mutating func accepted() {
        guard let value else { return }
        acceptedInWindow += 1
        guard acceptedInWindow >= value else { return }
        acceptedInWindow = 0
        self.value = value + 1 < ceiling ? value + 1 : nil
        if self.value == nil { ceiling = 0 }
    }

    /// How many more may be sent beside `inFlight`.
    package func room(beside inFlight: Int) -> Int {
        value.map { max(0, $0 - inFlight) } ?? .max
    }
}
