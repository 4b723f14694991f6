/// How many of the answers of the last few minutes were bad, and in which way.
///
/// The window is divided into eight stretches that are forgotten one by one, so what is counted covers between seven
/// eighths of the window and all of it.
package struct AnswerWindow: Equatable, Sendable {
    /// What an answer says.
    package enum Answer: Equatable, Sendable {
        /// Nothing against anybody.
        case good
        /// A fault of the provider.
        case providerFault
        /// A token or target refused in a way that a wrong configuration would look like too.
        case tokenFault
        /// Too many requests for one target.
        case throttled
    }

    /// Counts of a stretch of time, or of the whole window.
    package struct Counts: Equatable, Sendable {
        /// All answers.
        package var answers = 0
        /// Faults of the provider.
        package var providerFaults = 0
        /// Tokens or targets that were refused.
        package var tokenFaults = 0
        /// Targets that were throttled.
        package var throttled = 0

        /// No answer yet.
        package init() {}
    }

    private static let stretches = 8

    private let stretch: Duration
    private var counts = [Counts](repeating: Counts(), count: stretches)
    private var current = 0
    private var endsAt: ContinuousClock.Instant?
    /// Sum of all stretches.
    package private(set) var total = Counts()

    /// A window of this length that has counted nothing.
    package init(_ length: Duration) {
        stretch = length / Self.stretches
    }

    /// Counts one answer.
    package mutating func count(_ answer: Answer, at now: ContinuousClock.Instant) {
        advance(to: now)
        counts[current].answers += 1
        total.answers += 1
        switch answer {
        case .good: break
        case .providerFault:
            counts[current].providerFaults += 1
            total.providerFaults += 1
        case .tokenFault:
            counts[current].tokenFaults += 1
            total.tokenFaults += 1
        case .throttled:
            counts[current].throttled += 1
            total.throttled += 1
        }
    }

    /// Forgets everything.
    package mutating func reset() {
        self = AnswerWindow(stretch * Self.stretches)
    }

    private mutating func advance(to now: ContinuousClock.Instant) {
        guard let ends = endsAt else {
            endsAt = now + stretch
            return
        }
        guard now >= ends else { return }
        guard now < ends + stretch * Self.stretches else {
            reset()
            endsAt = now + stretch
            return
        }
        var ending = ends
        while now >= ending {
            current = (current + 1) % Self.stretches
            total.answers -= counts[current].answers
            total.providerFaults -= counts[current].providerFaults
            total.tokenFaults -= counts[current].tokenFaults
            total.throttled -= counts[current].throttled
            counts[current] = Counts()
            ending += stretch
        }
        endsAt = ending
    }
}
