import EventLoop

/// A scenario as one stand-in plays it: finds the rule for each request, and arranges what happens by time. Loop only.
final class ScenarioPlay {
    /// What a rule's conditions look at.
    struct Request {
        /// The device's token.
        var token: String = ""
        /// The topic, where there is one.
        var topic: String = ""
        /// The names of the credential behind the request.
        var credentials: [String] = []
    }

    let settings: Scenario.Settings
    private let rules: [Scenario.Rule]
    private let events: [Scenario.Event]
    private let loop: EventLoop
    private let start = ContinuousClock.now
    private var uses: [Int]
    private var requests = 0
    private var draws: SeededDraws
    private var timers: [TimerID] = []

    /// The part of `scenario` that is for `service`.
    init(_ scenario: Scenario, for service: Scenario.Service, on loop: EventLoop) {
        self.loop = loop
        rules = scenario.rules.filter { $0.service == service }
        events = scenario.events.filter { $0.service == service }
        settings = scenario.settings[service] ?? Scenario.Settings()
        uses = Array(repeating: 0, count: rules.count)
        draws = SeededDraws(seed: scenario.seed)
    }

    /// The rule for the next request; nil when none is for it.
    func rule(for request: @autoclosure () -> Request) -> Scenario.Rule? {
        guard !rules.isEmpty else { return nil }
        requests += 1
        let request = request()
        let time = ContinuousClock.now - start
        for (index, rule) in rules.enumerated() where fits(rule, request, time) {
            if let limit = rule.times, uses[index] >= limit { continue }
            if let rate = rule.rate, Int.random(in: 0..<1_000_000, using: &draws) >= rate { continue }
            uses[index] += 1
            return rule
        }
        return nil
    }

    /// Calls `change` at the beginning of each event and at its end, on the loop.
    func begin(_ change: @escaping (Scenario.Event.Kind, _ begins: Bool) -> Void) {
        for event in events {
            if event.span.from == .zero {
                change(event.kind, true)
            } else {
                timers.append(loop.arm(at: start + event.span.from) { change(event.kind, true) })
            }
            if let end = event.span.to { timers.append(loop.arm(at: start + end) { change(event.kind, false) }) }
        }
    }

    /// Ends it: nothing happens by time any more.
    func end() {
        for timer in timers { loop.cancel(timer) }
        timers.removeAll()
    }

    private func fits(_ rule: Scenario.Rule, _ request: Request, _ time: Duration) -> Bool {
        guard rule.span.contains(time) else { return false }
        if let range = rule.requests, !range.contains(requests) { return false }
        if let prefix = rule.prefix, !request.token.hasPrefix(prefix) { return false }
        if let topic = rule.topic, topic != request.topic { return false }
        if let credential = rule.credential, !request.credentials.contains(credential) { return false }
        return true
    }
}
