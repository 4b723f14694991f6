/// What a lane may do right now: whether it has a connection and access, which gates are closed, and how much may be in
/// flight.
///
/// ```
///        connection or access lost
///   up ────────────────────────────► down        the gates: see `LaneGate`
///    ◄──────────────────────────────
///          both are there again
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
    /// Closed while the credential, team or project is refused, or the provider wants less of all of it.
    package private(set) var gate = LaneGate()
    /// What is known of each topic, in the routes' order: they differ in their app, and with it in the topic.
    package private(set) var topics: [TopicState] = []
    /// How much may be in flight after the provider asked for less.
    package private(set) var limit = ConcurrencyLimit()
    /// What may be spent on retries.
    private var budget: RetryBudget
    private var heldNotes: [HeldNote] = []
    private let guardSettings: StormGuard
    private var reach = LaneReach()
    private var answersSince = 0
    private var rateFrom: ContinuousClock.Instant?

    /// A lane that is up and has proven nothing yet.
    package init(_ description: LaneDescription, settings: DispatchSettings) {
        self.description = description
        budget = RetryBudget(percent: settings.retryBudget)
        guardSettings = settings.stormGuard
    }

    /// Whether rows may be claimed and sent for this lane. A lane whose reconnect is due is: the connection is made
    /// when there is something to send.
    package func isOpen(at now: ContinuousClock.Instant) -> Bool {
        gate.allowance(at: now) > 0 && (reach.retryAt.map { $0 <= now } ?? true)
    }

    /// Whether rows of `route` may be claimed and sent: lane and topic are open.
    package func isOpen(_ route: RouteNumber, at now: ContinuousClock.Instant) -> Bool {
        guard let index = index(of: route) else { return false }
        return isOpen(at: now) && topics[index].gate.allowance(at: now) > 0
    }

    /// Whether what is sent now is to find out whether a pause can end that the credential may be the cause of.
    package func probesCredential(_ route: RouteNumber) -> Bool {
        guard !doubtsCredential, let index = index(of: route) else { return doubtsCredential }
        return topics[index].gate.pause?.doubtsCredential == true
    }

    /// Whether the whole lane is paused, perhaps because of its credential.
    package var doubtsCredential: Bool { gate.pause?.doubtsCredential == true }

    /// Routes whose rows may be claimed.
    package func openRoutes(at now: ContinuousClock.Instant) -> [RouteNumber] {
        guard isOpen(at: now) else { return [] }
        return topics.filter { $0.gate.allowance(at: now) > 0 }.map(\.route)
    }

    /// How many more requests of `route` may be handed to the transport.
    package func room(for route: RouteNumber, at now: ContinuousClock.Instant) -> Int {
        guard let index = index(of: route) else { return 0 }
        return min(room(at: now), topics[index].gate.allowance(at: now))
    }

    /// How many more requests may be handed to the transport, whatever their topic.
    package func room(at now: ContinuousClock.Instant) -> Int {
        min(capacity, gate.allowance(at: now), limit.room(beside: inFlight))
    }

    /// The registry has these routes for the lane.
    package mutating func setRoutes(_ routes: [RouteNumber]) {
        guard routes != self.routes else { return }
        topics = routes.map { topic($0) ?? TopicState(route: $0, window: guardSettings.window) }
        self.routes = routes
    }

    /// What is known of a route's topic; nil when the lane does not serve it.
    package func topic(_ route: RouteNumber) -> TopicState? {
        index(of: route).map { topics[$0] }
    }

    /// Where a route's topic is. Routes are two bytes each and few: a search costs less than a hash.
    private func index(of route: RouteNumber) -> Int? {
        routes.firstIndex(of: route)
    }

    private mutating func updateTopic(_ route: RouteNumber, _ change: (inout TopicState) -> Void) {
        guard let index = index(of: route) else { return }
        change(&topics[index])
    }

    /// The transport takes `capacity` more requests.
    package mutating func setCapacity(_ capacity: Int) {
        self.capacity = max(0, capacity)
    }

    /// Requests of `route` were handed to the transport.
    package mutating func sent(_ count: Int, route: RouteNumber) {
        inFlight += count
        capacity = max(0, capacity - count)
        gate.passed(count)
        updateTopic(route) { $0.gate.passed(count) }
    }

    /// One request of `route` ended.
    package mutating func ended(route: RouteNumber, at now: ContinuousClock.Instant) {
        inFlight -= 1
        gate.ended()
        updateTopic(route) { $0.gate.ended() }
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

    // MARK: Retries

    /// First attempts go out.
    package mutating func sendsFirst(_ count: Int) {
        budget.earned(count)
    }

    /// Whether the budget lets one retry out.
    package mutating func maySendRetry(at now: ContinuousClock.Instant) -> Bool {
        budget.take(at: now)
    }

    /// A retry ended.
    package mutating func retryEnded(_ end: RetryBudget.End) {
        budget.ended(end)
    }

    /// How long a retry waits that the budget refused.
    package func retryWait(at now: ContinuousClock.Instant) -> Duration {
        budget.wait(at: now)
    }

    // MARK: What answers say

    /// Whether a held target is news: told once per topic, reason and pause.
    package mutating func notesHeldTarget(
        route: RouteNumber, reason: String, at now: ContinuousClock.Instant
    ) -> Bool {
        heldNotes.removeAll { $0.forgetAt <= now }
        guard heldNotes.count < Self.heldNotesLimit,
            !heldNotes.contains(where: { $0.route == route && $0.reason == reason })
        else { return false }
        heldNotes.append(HeldNote(route: route, reason: reason, forgetAt: now + description.pause))
        return true
    }

    /// Whether a held target of `route` was news for this reason, within the pause before `now`.
    package func hasNotedHeldTarget(route: RouteNumber, reason: String, at now: ContinuousClock.Instant) -> Bool {
        heldNotes.contains { $0.route == route && $0.reason == reason && $0.forgetAt > now }
    }

    private struct HeldNote: Equatable, Sendable {
        let route: RouteNumber
        let reason: String
        let forgetAt: ContinuousClock.Instant
    }

    /// Beyond this many kinds of trouble at once, one more is no news.
    private static let heldNotesLimit = 64

    /// Whether `route` was accepted within `window`.
    package func isProven(route: RouteNumber, within window: Duration, at now: ContinuousClock.Instant) -> Bool {
        guard let index = index(of: route), let proven = topics[index].provenAt else { return false }
        return proven.duration(to: now) <= window
    }

    /// Whether one more answer against a token of `route` would look like a wrong configuration.
    package func isTokenStorm(on route: RouteNumber) -> Bool {
        guard let index = index(of: route) else { return false }
        return guardSettings.tripsByTokens(topics[index].window.total)
    }

    /// Whether one more throttled target of `route` means that the provider wants less of the whole lane.
    package func isThrottleStorm(on route: RouteNumber) -> Bool {
        guard let index = index(of: route) else { return false }
        return guardSettings.tripsByThrottling(topics[index].window.total)
    }

    /// Whether a failure says something about its device rather than about the provider.
    package func isHealthy(_ route: RouteNumber) -> Bool {
        guard let index = index(of: route) else { return false }
        return guardSettings.isHealthy(topics[index].window.total)
    }

    /// A push of `route` was accepted: the credential, topic and environment are right.
    package mutating func accepted(route: RouteNumber, at now: ContinuousClock.Instant) {
        updateTopic(route) { $0.provenAt = now }
        limit.accepted()
    }

    /// Somebody looked after the configuration: what is paused is tried at once.
    package mutating func probeSoon(at now: ContinuousClock.Instant) {
        gate.probeSoon(at: now)
        for index in topics.indices { topics[index].gate.probeSoon(at: now) }
    }

    /// The credential was read anew and is another: nothing is proven with it yet, and what was refused may be right.
    package mutating func credentialChanged(at now: ContinuousClock.Instant) {
        probeSoon(at: now)
        for index in topics.indices {
            topics[index].provenAt = nil
            topics[index].window.reset()
        }
        heldNotes.removeAll()
    }

    /// An answer is counted for the storm guard.
    package mutating func count(
        _ answer: AnswerWindow.Answer, route: RouteNumber, at now: ContinuousClock.Instant
    ) {
        updateTopic(route) { $0.window.count(answer, at: now) }
    }

    /// The provider wants fewer requests at a time.
    package mutating func throttled(at now: ContinuousClock.Instant) {
        limit.throttled(inFlight: inFlight + 1, at: now)
    }

    /// Closes the lane, or one topic of it.
    package mutating func pause(
        route: RouteNumber?, _ pause: LanePause, at now: ContinuousClock.Instant
    ) -> LaneGate.Closing {
        guard let route else { return gate.close(pause, at: now) }
        var closing = LaneGate.Closing.known
        updateTopic(route) { closing = $0.gate.close(pause, at: now) }
        return closing
    }

    /// An answer that speaks for no fault of lane or topic: which pauses end with it.
    package mutating func answeredWell(
        route: RouteNumber?, at now: ContinuousClock.Instant
    ) -> (lane: Bool, topic: Bool) {
        let lane = gate.answered(at: now)
        var topic = false
        guard let route else { return (lane, topic) }
        updateTopic(route) { state in
            topic = state.gate.answered(at: now)
            // What was counted before the pause led to it: it must not lead to the next one.
            if topic { state.window.reset() }
        }
        return (lane, topic)
    }

    /// What a claim may take ahead of free slots: 100 ms of the measured rate.
    package var lookAhead: Int { Int(rate / 10) }

    /// The transport has no connection and tries again at `retryAt`.
    package mutating func disconnected(
        retryAt: ContinuousClock.Instant, because reason: String, at now: ContinuousClock.Instant
    ) {
        reach.lost(.connection, because: reason, retryAt: retryAt, at: now)
    }

    /// The transport has a connection.
    package mutating func connected() {
        reach.has(.connection)
    }

    /// No access token can be had, and another try is made at `retryAt`.
    package mutating func accessLost(
        retryAt: ContinuousClock.Instant, because reason: String, at now: ContinuousClock.Instant
    ) {
        reach.lost(.access, because: "no access token: \(reason)", retryAt: retryAt, at: now)
    }

    /// There is an access token, or a pause says why there is none.
    package mutating func accessGranted() {
        reach.has(.access)
    }

    /// Whether the lane has a connection and access, or needed none yet.
    package var isConnected: Bool { reach.retryAt == nil }

    /// How long what was not sent waits before it is tried again.
    package func reconnectDelay(at now: ContinuousClock.Instant) -> Duration {
        guard let retryAt = reach.retryAt else { return .zero }
        return max(.zero, now.duration(to: retryAt))
    }

    /// Why the lane is not up, since when, and until when it waits; nil while it is up. A pause goes before a lost
    /// connection: it is what has to be mended.
    package var trouble: Trouble? {
        if let pause = gate.pause { return Trouble(pause) }
        return reach.trouble
    }

    /// What keeps a lane or one of its topics from sending.
    package struct Trouble: Equatable, Sendable {
        /// Paused or down.
        package let condition: LaneReport.Condition
        /// Why.
        package let reason: String
        /// Since when.
        package let since: ContinuousClock.Instant
        /// When it tries again.
        package let until: ContinuousClock.Instant

        init(
            condition: LaneReport.Condition, reason: String, since: ContinuousClock.Instant,
            until: ContinuousClock.Instant
        ) {
            self.condition = condition
            self.reason = reason
            self.since = since
            self.until = until
        }

        init(_ pause: LaneGate.Pause) {
            let reason = pause.status > 0 ? "\(pause.status) \(pause.reason)" : pause.reason
            self.init(condition: .paused, reason: reason, since: pause.since, until: pause.until)
        }
    }

    /// When the lane, or the first of its topics, opens by itself; nil when nothing is closed.
    package func opensAt(after now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        guard isOpen(at: now) else {
            return [gate.pause?.until, reach.retryAt].compactMap { $0 }.filter { $0 > now }.max()
        }
        return topics.compactMap { $0.gate.pause?.until }.filter { $0 > now }.min()
    }

    /// When rows of `route` may be sent again; nil when they may now.
    package func opensAt(_ route: RouteNumber, after now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        [gate.pause?.until, reach.retryAt, topic(route)?.gate.pause?.until].compactMap { $0 }.filter { $0 > now }.max()
    }
}
