/// What judging an attempt needs to know of its lane, read at once.
package struct LaneFacts: Equatable, Sendable {
    /// Whether a 400 may clear a token: the topic is proven, and not so many tokens seem dead that the configuration is
    /// to be doubted.
    package let tokensMayBeCleared: Bool
    /// Whether a failure says something about its device rather than about the provider.
    package let isHealthy: Bool
    /// How long what a wrong configuration stops waits.
    package let pause: Duration
    /// How long what was not sent waits before it is tried again.
    package let reconnectDelay: Duration
}

extension LaneState {
    /// What judging an attempt on `route` needs to know; `window` is how long an accepted push proves its topic.
    /// Changes nothing; a call that may is made in place, where reading from an array copies all tables of the lane.
    package mutating func facts(
        on route: RouteNumber, within window: Duration, at now: ContinuousClock.Instant
    ) -> LaneFacts {
        let isProven = isProven(route: route, within: window, at: now)
        return LaneFacts(
            tokensMayBeCleared: isProven && !isTokenStorm(on: route), isHealthy: isProven && isHealthy(route),
            pause: description.pause, reconnectDelay: reconnectDelay(at: now))
    }
}
