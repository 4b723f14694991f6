/// Misbehaviour over time, as a file of lines says (docs/fake-providers.md): what happens to which requests of which
/// stand-in, from when to when.
///
/// Given to each stand-in, which plays what is its own. Time begins when it is given; a new one replaces it.
package struct Scenario: Equatable, Sendable {
    /// The stand-ins, by the word that begins a line.
    enum Service: String, CaseIterable, Sendable {
        case apns
        case fcm
        case token
    }

    /// What happens to the requests that a rule is for.
    enum Action: Equatable, Sendable {
        case apns(APNSAnswer)
        /// A name of FCM's table of misbehaviour.
        case fcmNamed(String)
        case fcm(FCMAnswer)
        case token(TokenEndpointAnswer)
    }

    /// A line about single requests. Of several that fit, the first counts.
    struct Rule: Equatable, Sendable {
        let service: Service
        var action: Action
        /// When it begins and when it ends, from the scenario's beginning.
        var span = Span()
        /// Which requests of the service, counted from 1.
        var requests: ClosedRange<Int>?
        /// How the device's token begins.
        var prefix: String?
        /// The topic, whole.
        var topic: String?
        /// The key id (APNs), project or client e-mail (FCM), client e-mail (token endpoint).
        var credential: String?
        /// Of a million requests that fit, how many.
        var rate: Int?
        /// For how many requests at most.
        var times: Int?
        var retryAfter: RetryAfter?
    }

    /// From when to when, counted from the scenario's beginning.
    struct Span: Equatable, Sendable {
        var from = Duration.zero
        /// Nil for ever.
        var to: Duration?

        func contains(_ time: Duration) -> Bool {
            time >= from && to.map { time < $0 } ?? true
        }

        func divided(by factor: Int) -> Span {
            Span(from: from / factor, to: to.map { $0 / factor })
        }
    }

    /// A line about the service as a whole, for some time.
    struct Event: Equatable, Sendable {
        enum Kind: Equatable, Sendable {
            /// Nothing is read, written or accepted, as where packets are dropped.
            case blackHole
            /// The service's clock is ahead by so many seconds.
            case clock(Int64)
            /// The stream limit of connections.
            case streams(UInt32)
        }

        let service: Service
        let kind: Kind
        var span = Span()
    }

    /// A line that changes a setting as long as the scenario lasts.
    struct Settings: Equatable, Sendable {
        var rates: MisbehaviourRates?
        var throttles = false
        var delay: Duration?
        var lifetime: Int64?
        var writesExpiryAsString = false
    }

    var rules: [Rule] = []
    var events: [Event] = []
    var settings: [Service: Settings] = [:]
    /// Where the draws begin.
    var seed: UInt64 = 1

    /// A scenario in which nothing goes wrong.
    package init() {}

    /// The scenario that `text` describes. `name` is the file's, for complaints. Throws at the first line that is
    /// wrong.
    package init(_ text: String, name: String = "scenario") throws(ScenarioError) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() {
            var parser = ScenarioLine(line, of: name, number: index + 1)
            try parser.add(to: &self)
        }
    }

    /// The same scenario with all its times divided by `factor`: an hour's events in a minute.
    package func faster(by factor: Int) -> Scenario {
        precondition(factor > 0, "time can be made shorter only")
        var scenario = self
        for index in rules.indices { scenario.rules[index].span = rules[index].span.divided(by: factor) }
        for index in events.indices { scenario.events[index].span = events[index].span.divided(by: factor) }
        return scenario
    }

    /// The scenario in the file at `path`, which has 64 KiB at most.
    package static func read(_ path: String) throws -> Scenario {
        try Scenario(try IdentityFiles.read(path, limit: 64 * 1024), name: path)
    }
}

/// A line of a scenario file is wrong.
package struct ScenarioError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The file's name as given.
    package let name: String
    /// The line, from 1.
    package let line: Int
    /// What is wrong, and what would be right.
    package let complaint: String

    package var description: String { "\(name):\(line): \(complaint)" }
}
