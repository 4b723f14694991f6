/// The words of scenario files and what they stand for.
enum ScenarioWords {
    /// Faults that every service has.
    static let faults: [String: ConnectionFault] = [
        "silence": .silence, "reset": .reset, "close": .closed, "refuse": .refused, "refuse-twice": .refusedTwice,
        "goaway": .goneAway,
    ]

    /// What `token answer` may be followed by.
    static let tokenAnswers: [(name: String, answer: TokenEndpointAnswer)] = [
        ("down", .down), ("failed", .failed), ("too-many-requests", .tooManyRequests(nil)),
        ("clock-off", .clockOff), ("invalid-signature", .invalidGrant("Invalid JWT Signature.")),
        ("account-not-found", .invalidGrant("Invalid grant: account not found")),
        (
            "invalid-scope",
            .refused(error: "invalid_scope", description: "Invalid OAuth scope or ID token audience provided.")
        ),
        (
            "unauthorized-client",
            .refused(
                error: "unauthorized_client",
                description: "Client is unauthorized to retrieve access tokens using this method.")
        ),
        ("invalid-client", .refused(error: "invalid_client", description: "The OAuth client was not found.")),
        ("cut-off", .cutOff),
    ]

    /// What may follow a service.
    static func actions(_ service: Scenario.Service) -> [String] {
        let common = ["answer", "accept", "slow", "page", "empty"] + faults.keys.sorted() + ["black-hole", "clock"]
        switch service {
        case .apns: return common + ["goaway-after", "streams", "throttle", "delay"]
        case .fcm: return common + ["goaway-after", "streams", "delay"]
        case .token: return common + ["lifetime", "expires-in-text"]
        }
    }

    /// The conditions of a rule.
    static func conditions(_ rule: Scenario.Rule) -> [String] {
        var allowed = ["from", "to", "requests", "credential", "rate", "times"]
        if rule.service != .token { allowed.append("prefix") }
        if rule.service == .apns { allowed.append("topic") }
        switch rule.action {
        case .fcmNamed, .token(.tooManyRequests): allowed += ["retry-after", "retry-date"]
        default: break
        }
        return allowed
    }
}

extension Scenario.Service {
    /// The service's way to accept.
    var accepted: Scenario.Action {
        switch self {
        case .apns: .apns(.accepted)
        case .fcm: .fcm(.accepted)
        case .token: .token(.granted)
        }
    }

    /// The service's way to accept after a while.
    func slow(_ delay: Duration) -> Scenario.Action {
        switch self {
        case .apns: .apns(.slow(delay))
        case .fcm: .fcm(.slow(delay))
        case .token: .token(.slow(delay))
        }
    }

    func page(_ status: Int) -> Scenario.Action {
        switch self {
        case .apns: .apns(.page(status: status))
        case .fcm: .fcm(.page(status: status))
        case .token: .token(.page(status: status))
        }
    }

    func empty(_ status: Int) -> Scenario.Action {
        switch self {
        case .apns: .apns(.empty(status: status))
        case .fcm: .fcm(.empty(status: status))
        case .token: .token(.empty(status: status))
        }
    }

    func unanswered(_ fault: ConnectionFault) -> Scenario.Action {
        switch self {
        case .apns: .apns(.unanswered(fault))
        case .fcm: .fcm(.unanswered(fault))
        case .token: .token(.unanswered(fault))
        }
    }
}
