/// What a lane knows of one topic: a route of its own, since a lane's routes differ in their app.
package struct TopicState: Equatable, Sendable {
    /// The route.
    package let route: RouteNumber
    /// Closed while the topic is refused, or while too many of its tokens seem dead.
    package internal(set) var gate = LaneGate()
    /// When a push was last accepted with the current credential.
    package internal(set) var provenAt: ContinuousClock.Instant?
    /// What was answered lately.
    package internal(set) var window: AnswerWindow

    /// A topic of which nothing is known.
    init(route: RouteNumber, window: Duration) {
        self.route = route
        self.window = AnswerWindow(window)
    }
}
