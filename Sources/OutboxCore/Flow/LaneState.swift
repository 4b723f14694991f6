/// What a lane may do right now.
///
/// ```
///            connection lost                     wrong configuration
///   up ────────────────────────► down    up ──────────────────────────► paused
///    ◄────────────────────────             ◄──────────────────────────
///            connected                     the pause has ended, or an answer that is no configuration error
/// ```
package struct LaneState: Equatable, Sendable {
    /// Configured name and pause.
    package let description: LaneDescription
    /// Routes whose rows it sends; grows as apps appear in the registry.
    package private(set) var routes: [RouteNumber] = []
    /// How many more requests the transport takes now.
    package private(set) var capacity = 0
    /// Requests handed to the transport and not answered.
    package private(set) var inFlight = 0
    /// Accepted pushes per second, smoothed: what a claim may take ahead.
    package private(set) var rate: Double = 0
    /// Until when the lane is paused; nil while it is not.
    package private(set) var pausedUntil: ContinuousClock.Instant?
    /// When each of the lane's routes was last accepted with the current credential.
    private var provenAt: [RouteNumber: ContinuousClock.Instant] = [:]
    private var reconnectAt: ContinuousClock.Instant?
    private var pauseCause = Cause()
    private var downCause = Cause()
    private var answersSince = 0
    private var rateFrom: ContinuousClock.Instant?

    /// Why a lane is not up, and since when.
    private struct Cause: Equatable {
        var reason = ""
        var since: ContinuousClock.Instant?
    }

    /// A lane that is up and has proven nothing yet.
    package init(_ description: LaneDescription) {
        self.description = description
    }

    /// Whether rows may be claimed and sent for this lane. A lane whose reconnect is due is: the connection is made
    /// when there is something to send.
    package func isOpen(at now: ContinuousClock.Instant) -> Bool {
        (pausedUntil.map { $0 <= now } ?? true) && (reconnectAt.map { $0 <= now } ?? true)
    }

    /// The registry has these routes for the lane.
    package mutating func setRoutes(_ routes: [RouteNumber]) {
        self.routes = routes
    }

    /// The transport takes `capacity` more requests.
    package mutating func setCapacity(_ capacity: Int) {
        self.capacity = max(0, capacity)
    }

    /// Requests were handed to the transport.
    package mutating func sent(_ count: Int) {
        inFlight += count
        capacity = max(0, capacity - count)
    }

    /// One request ended.
    package mutating func ended(at now: ContinuousClock.Instant) {
        inFlight -= 1
        answersSince += 1
        guard let from = rateFrom else {
            rateFrom = now
            return
        }
        let elapsed = from.duration(to: now)
        guard elapsed >= .milliseconds(100) else { return }
        let seconds = Double(elapsed.wholeMicroseconds) / 1_000_000
        // After a silence the old figure says nothing any more.
        let measured = Double(answersSince) / seconds
        rate = elapsed > .seconds(1) ? measured : 0.5 * rate + 0.5 * measured
        answersSince = 0
        rateFrom = now
    }

    /// A push of `route` was accepted: the credential, topic and environment are right, and a pause ends.
    package mutating func accepted(route: RouteNumber, at now: ContinuousClock.Instant) {
        provenAt[route] = now
    }

    /// Whether `route` was accepted within `window`.
    package func isProven(route: RouteNumber, within window: Duration, at now: ContinuousClock.Instant) -> Bool {
        guard let proven = provenAt[route] else { return false }
        return proven.duration(to: now) <= window
    }

    /// What a claim may take ahead of free slots: 100 ms of the measured rate.
    package var lookAhead: Int { Int(rate / 10) }

    /// Pauses the lane; false when it was paused already (one alarm per pause).
    package mutating func pause(
        for duration: Duration, because reason: String, at now: ContinuousClock.Instant
    ) -> Bool {
        if let pausedUntil, pausedUntil > now { return false }
        pausedUntil = now + duration
        pauseCause = Cause(reason: reason, since: now)
        return true
    }

    /// Ends a pause: an answer came that is no configuration error.
    package mutating func resume() {
        pausedUntil = nil
    }

    /// The transport has no connection and tries again at `retryAt`.
    package mutating func disconnected(
        retryAt: ContinuousClock.Instant, because reason: String, at now: ContinuousClock.Instant
    ) {
        downCause = Cause(reason: reason, since: isConnected ? now : downCause.since)
        reconnectAt = retryAt
    }

    /// The transport has a connection.
    package mutating func connected() {
        reconnectAt = nil
    }

    /// Whether the transport has a connection, or none was needed yet.
    package var isConnected: Bool { reconnectAt == nil }

    /// How long what was not sent waits before it is tried again.
    package func reconnectDelay(at now: ContinuousClock.Instant) -> Duration {
        guard let reconnectAt else { return .zero }
        return max(.zero, now.duration(to: reconnectAt))
    }

    /// Why the lane is not up, since when, and until when it waits; nil while it is up. A pause goes before a lost
    /// connection: it is what has to be mended.
    package func trouble(
        at now: ContinuousClock.Instant
    ) -> (
        condition: LaneReport.Condition, reason: String, since: ContinuousClock.Instant, until: ContinuousClock.Instant
    )? {
        if let pausedUntil, pausedUntil > now {
            return (.paused, pauseCause.reason, pauseCause.since ?? now, pausedUntil)
        }
        return reconnectAt.map { (.down, downCause.reason, downCause.since ?? now, $0) }
    }

    /// When a lane that is not open opens by itself; nil when it is open.
    package func opensAt(after now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        isOpen(at: now) ? nil : [pausedUntil, reconnectAt].compactMap { $0 }.filter { $0 > now }.max()
    }
}
