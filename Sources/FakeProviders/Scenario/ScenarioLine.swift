/// Reads one line of a scenario: `SERVICE ACTION [ARGUMENT…] [CONDITION VALUE]…`, or `seed NUMBER`.
struct ScenarioLine {
    private let name: String
    private let number: Int
    private var words: ArraySlice<Substring>

    /// A line as it stands in the file; what follows a `#` is a comment.
    init(_ line: Substring, of name: String, number: Int) {
        self.name = name
        self.number = number
        words = line.prefix { $0 != "#" }.split { $0 == " " || $0 == "\t" || $0 == "\r" }[...]
    }

    /// Adds what the line says to `scenario`.
    mutating func add(to scenario: inout Scenario) throws(ScenarioError) {
        guard let first = words.popFirst() else { return }
        if first == "seed" {
            scenario.seed = UInt64(try whole("seed", 0...Int.max))
            return try end()
        }
        guard let service = Scenario.Service(rawValue: String(first)) else {
            throw wrong(
                "`\(first)` is no service; allowed: \(Self.list(Scenario.Service.allCases.map(\.rawValue))), seed")
        }
        guard let action = words.popFirst() else {
            throw wrong("\(service.rawValue) does what? allowed: \(Self.list(ScenarioWords.actions(service)))")
        }
        guard ScenarioWords.actions(service).contains(String(action)) else {
            throw wrong(
                "\(service.rawValue) cannot `\(action)`; allowed: \(Self.list(ScenarioWords.actions(service)))")
        }
        try take(String(action), service, into: &scenario)
    }

    private mutating func take(
        _ action: String, _ service: Scenario.Service, into scenario: inout Scenario
    ) throws(ScenarioError) {
        switch action {
        case "black-hole": try addEvent(.blackHole, service, to: &scenario)
        case "clock": try addEvent(.clock(shift()), service, to: &scenario)
        case "streams": try addStreams(service, to: &scenario)
        case "goaway" where words.first == "every":
            words.removeFirst()
            let after = try range("every", 1...1_000_000)
            scenario.change(service) { $0.goAwayAfter = after }
            try end()
        case "throttle":
            scenario.settings[service, default: .init()].throttles = true
            try end()
        case "delay":
            scenario.settings[service, default: .init()].delay = try duration("delay")
            try end()
        case "lifetime":
            scenario.settings[service, default: .init()].lifetime = try duration("lifetime").components.seconds
            try end()
        case "expires-in-text":
            scenario.settings[service, default: .init()].writesExpiryAsString = true
            try end()
        default:
            var rule = Scenario.Rule(service: service, action: try answer(action, service))
            try addConditions(to: &rule)
            scenario.rules.append(rule)
        }
    }

    // MARK: What happens

    private mutating func answer(
        _ action: String, _ service: Scenario.Service
    ) throws(ScenarioError) -> Scenario.Action {
        if let fault = ScenarioWords.faults[action] { return service.unanswered(fault) }
        switch action {
        case "accept": return service.accepted
        case "slow": return service.slow(try duration("slow"))
        case "page": return service.page(try whole("page", 200...599))
        case "empty": return service.empty(try whole("empty", 200...599))
        case "goaway-after": return service == .apns ? .apns(.acceptedThenGoneAway) : .fcm(.acceptedThenGoneAway)
        default: break
        }
        switch service {
        case .apns: return try reason()
        case .fcm:
            let names = FCMMisbehaviour.names("", slowness: .zero).map(\.name)
            return .fcmNamed(try word("answer", of: names))
        case .token:
            let word = try word("answer", of: ScenarioWords.tokenAnswers.map(\.name))
            guard let found = ScenarioWords.tokenAnswers.first(where: { $0.name == word }) else {
                throw wrong("`\(word)` is no answer")
            }
            return .token(found.answer)
        }
    }

    /// `STATUS [REASON]`: Apple's usual reason where none is given.
    private mutating func reason() throws(ScenarioError) -> Scenario.Action {
        let status = try whole("answer", 300...599)
        if let next = words.first, next.allSatisfy({ $0.isASCII && $0.isLetter }), next.first?.isUppercase == true {
            words.removeFirst()
            return .apns(.rejected(status: status, reason: String(next)))
        }
        guard let usual = APNSMisbehaviour.usualReason(of: status) else {
            throw wrong("status \(status) needs a reason behind it, for example `answer 403 BadEnvironmentKeyInToken`")
        }
        return .apns(.rejected(status: status, reason: usual))
    }

    private mutating func addStreams(
        _ service: Scenario.Service, to scenario: inout Scenario
    ) throws(ScenarioError) {
        let limits = try range("streams", 0...100_000)
        if words.first == "every" {
            words.removeFirst()
            let after = try range("every", 1...1_000_000)
            scenario.change(service) {
                $0.limits = UInt32(limits.lowerBound)...UInt32(limits.upperBound)
                $0.limitChangesAfter = after
            }
            return try end()
        }
        guard limits.count == 1 else {
            throw wrong("streams \(limits.lowerBound)-\(limits.upperBound) needs `every N-M`, in requests")
        }
        try addEvent(.streams(UInt32(limits.lowerBound)), service, to: &scenario)
    }

    private mutating func addEvent(
        _ kind: Scenario.Event.Kind, _ service: Scenario.Service, to scenario: inout Scenario
    ) throws(ScenarioError) {
        var event = Scenario.Event(service: service, kind: kind)
        while let condition = words.popFirst() {
            switch condition {
            case "from": event.span.from = try duration("from")
            case "to": event.span.to = try duration("to")
            default: throw wrong("`\(condition)` cannot stand here; allowed: from, to")
            }
        }
        try check(event.span)
        scenario.events.append(event)
    }

    // MARK: To which requests

    private mutating func addConditions(to rule: inout Scenario.Rule) throws(ScenarioError) {
        let allowed = ScenarioWords.conditions(rule)
        while let condition = words.popFirst() {
            guard allowed.contains(String(condition)) else {
                throw wrong("`\(condition)` cannot stand here; allowed: \(Self.list(allowed))")
            }
            switch condition {
            case "from": rule.span.from = try duration("from")
            case "to": rule.span.to = try duration("to")
            case "requests": rule.requests = try range("requests", 1...Int.max)
            case "prefix": rule.prefix = String(try value("prefix", "text"))
            case "topic": rule.topic = String(try value("topic", "text"))
            case "credential": rule.credential = String(try value("credential", "text"))
            case "times": rule.times = try whole("times", 1...Int.max)
            case "rate": rule.rate = try rate()
            case "retry-after": rule.retryAfter = .seconds(try duration("retry-after").components.seconds)
            default: rule.retryAfter = .date(secondsAhead: try duration("retry-date").components.seconds)
            }
        }
        try check(rule.span)
    }

    private func check(_ span: Scenario.Span) throws(ScenarioError) {
        if let end = span.to, end <= span.from { throw wrong("`to` is not after `from`") }
    }

    // MARK: Values

    private mutating func value(_ what: String, _ wanted: String) throws(ScenarioError) -> Substring {
        guard let word = words.popFirst() else { throw wrong("\(what) needs a value: \(wanted)") }
        return word
    }

    private mutating func duration(_ what: String) throws(ScenarioError) -> Duration {
        let text = try value(what, DurationText.forms)
        guard let duration = DurationText.parse(text) else {
            throw wrong("\(what): `\(text)` is no duration; allowed: \(DurationText.forms)")
        }
        return duration
    }

    private mutating func whole(_ what: String, _ bounds: ClosedRange<Int>) throws(ScenarioError) -> Int {
        let text = try value(what, "a number")
        guard let number = Int(text), bounds.contains(number) else {
            throw wrong("\(what): `\(text)` is no number\(Self.between(bounds))")
        }
        return number
    }

    private mutating func range(_ what: String, _ bounds: ClosedRange<Int>) throws(ScenarioError) -> ClosedRange<Int> {
        let text = try value(what, "N or N-M")
        let ends = text.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
        guard ends.count <= 2, let first = ends.first ?? nil, let last = ends.last ?? nil, first <= last,
            bounds.contains(first), bounds.contains(last)
        else { throw wrong("\(what): `\(text)` is not N or N-M\(Self.between(bounds))") }
        return first...last
    }

    /// A share as a percentage with at most four decimals, in millionths.
    private mutating func rate() throws(ScenarioError) -> Int {
        let text = try value("rate", "a percentage such as 2%")
        guard text.hasSuffix("%"), let percent = Double(text.dropLast()), percent > 0, percent <= 100 else {
            throw wrong("rate: `\(text)` is no percentage above 0%, at most 100%; for example 2% or 0.5%")
        }
        return Int((percent * 10_000).rounded())
    }

    private mutating func shift() throws(ScenarioError) -> Int64 {
        let text = try value("clock", "+5m or -2h")
        guard let sign = text.first, sign == "+" || sign == "-", let size = DurationText.parse(text.dropFirst()) else {
            throw wrong("clock: `\(text)` is no shift; allowed: + or - and a duration, for example +5m or -2h")
        }
        return sign == "+" ? size.components.seconds : -size.components.seconds
    }

    private mutating func word(_ what: String, of allowed: [String]) throws(ScenarioError) -> String {
        let text = try value(what, Self.list(allowed))
        guard allowed.contains(String(text)) else {
            throw wrong("\(what): `\(text)` is unknown; allowed: \(Self.list(allowed))")
        }
        return String(text)
    }

    private mutating func end() throws(ScenarioError) {
        if let word = words.first { throw wrong("`\(word)` is too much here") }
    }

    private func wrong(_ complaint: String) -> ScenarioError {
        ScenarioError(name: name, line: number, complaint: complaint)
    }

    private static func list(_ words: [String]) -> String { words.joined(separator: ", ") }

    private static func between(_ bounds: ClosedRange<Int>) -> String {
        bounds.upperBound == .max
            ? " of at least \(bounds.lowerBound)" : " from \(bounds.lowerBound) to \(bounds.upperBound)"
    }
}

extension Scenario {
    fileprivate mutating func change(_ service: Service, _ set: (inout MisbehaviourRates) -> Void) {
        var rates = settings[service]?.rates ?? MisbehaviourRates()
        set(&rates)
        settings[service, default: Settings()].rates = rates
    }
}
