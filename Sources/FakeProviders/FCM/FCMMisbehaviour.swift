/// Misbehaviour on request: by the registration token's beginning.
///
/// `fa` and three digits, as for APNs, or `fa-` and a name; both perhaps with a number of tries from 1 to 9, after
/// which requests with that token are accepted: `fa5031…` and `fa-unavailable-1…` are a 503 once, `fa404x…` and
/// `fa-unregistered…` an UNREGISTERED each time.
struct FCMMisbehaviour {
    private var tries: [String: Int] = [:]
    private let slowness: Duration

    /// Tokens whose tries are remembered; beyond that the memory begins anew.
    private static let rememberedTokens = 100_000
    /// `retry-after` of the named quota answers, in seconds; Google's advice for an answer without one is a minute.
    static let retryAfterSeconds: Int64 = 2

    /// Slow answers come after `slowness`.
    init(slowness: Duration) {
        self.slowness = slowness
    }

    /// The answer that `token` asks for; nil when it asks for none, or its tries are used up.
    mutating func answer(to token: String, project: String) -> FCMAnswer? {
        guard let (answer, limit) = wish(of: token, project: project) else { return nil }
        guard limit > 0 else { return answer }
        if tries.count >= Self.rememberedTokens { tries.removeAll() }
        let spent = tries[token, default: 0]
        guard spent < limit else { return nil }
        tries[token] = spent + 1
        return answer
    }

    /// The answer and how often it is given; 0 is for ever.
    private func wish(of token: String, project: String) -> (answer: FCMAnswer, limit: Int)? {
        guard token.hasPrefix("fa") else { return nil }
        let rest = token.dropFirst(2)
        if rest.first == "-" {
            // The longest name wins: one may begin another.
            let found = Self.names(project, slowness: slowness).filter { rest.dropFirst().hasPrefix($0.name) }
                .max { $0.name.count < $1.name.count }
            guard let found else { return nil }
            let behind = rest.dropFirst(1 + found.name.count)
            let digit = behind.first == "-" ? behind.dropFirst().first : nil
            return (found.answer, Self.tries(digit))
        }
        guard rest.count >= 3, let code = Int(rest.prefix(3)), let answer = numbered(code) else { return nil }
        return (answer, Self.tries(rest.dropFirst(3).first))
    }

    private static func tries(_ digit: Character?) -> Int {
        guard let digit, digit.isASCII else { return 0 }
        return digit.wholeNumberValue ?? 0
    }

    /// What each code stands for; the table of docs/fake-providers.md.
    private func numbered(_ code: Int) -> FCMAnswer? {
        switch code {
        case 0: .unanswered(.silence)
        case 1: .unanswered(.reset)
        case 2: .unanswered(.closed)
        case 3: .slow(slowness)
        case 4: .unanswered(.goneAway)
        case 5: .acceptedThenGoneAway
        case 6: .unanswered(.refusedTwice)
        case 7: .unanswered(.refused)
        case 9: .page(status: 500)
        case 200: .accepted
        case 400: .fault(.badToken)
        case 401: .fault(.badCredential)
        case 403: .fault(.senderIDMismatch)
        case 404: .fault(.unregistered)
        case 429: .fault(.deviceQuota)
        case 500: .fault(.internalError)
        case 503: .fault(.unavailable(retryAfter: nil))
        case 300...599: .fault(FCMFault(httpStatus: code, status: "IMAGINED", message: "Imagined."))
        default: nil
        }
    }

    /// The answer of that name, with `retryAfter` where one is given.
    static func named(_ name: String, project: String, retryAfter: RetryAfter?) -> FCMAnswer? {
        guard let answer = names(project, slowness: .zero).first(where: { $0.name == name })?.answer else { return nil }
        guard let retryAfter, case .fault(var fault) = answer else { return answer }
        fault.retryAfter = retryAfter
        return .fault(fault)
    }

    /// What each name stands for; the table of docs/fake-providers.md.
    static func names(_ project: String, slowness: Duration) -> [(name: String, answer: FCMAnswer)] {
        let seconds = RetryAfter.seconds(retryAfterSeconds)
        let date = RetryAfter.date(secondsAhead: retryAfterSeconds)
        return [
            ("ok", .accepted), ("slow", .slow(slowness)),
            ("unregistered", .fault(.unregistered)),
            ("sender-mismatch", .fault(.senderIDMismatch)),
            ("third-party-auth", .fault(.thirdPartyAuthError)),
            ("third-party-auth-frontend", .fault(.thirdPartyAuthErrorOfFrontEnd)),
            ("bad-token", .fault(.badToken)), ("bad-token-field", .fault(.badTokenField)),
            (
                "bad-payload",
                .fault(
                    .badRequest(
                        "message.data[0].value", "Invalid value at 'message.data[0].value' (TYPE_STRING), 12"))
            ),
            ("bad-argument", .fault(.invalidArgument("Request contains an invalid argument."))),
            ("device-quota", .fault(.deviceQuota)),
            ("project-quota", .fault(.projectQuota(retryAfter: seconds))),
            ("project-quota-date", .fault(.projectQuota(retryAfter: date))),
            ("project-quota-silent", .fault(.projectQuota(retryAfter: nil))),
            ("project-quota-fcm", .fault(.projectQuotaOfFCM(retryAfter: seconds))),
            ("unauthenticated", .fault(.badCredential)),
            ("permission-denied", .fault(.permissionDenied(project: project))),
            ("service-disabled", .fault(.serviceDisabled(project: project))),
            ("not-found", .fault(.notFound)),
            ("unavailable", .fault(.unavailable(retryAfter: nil))),
            ("unavailable-after", .fault(.unavailable(retryAfter: seconds))),
            ("unavailable-date", .fault(.unavailable(retryAfter: date))),
            ("internal", .fault(.internalError)), ("unspecified", .fault(.unspecified)),
            ("page", .page(status: 502)), ("page-401", .page(status: 401)), ("page-404", .page(status: 404)),
            ("empty", .empty(status: 500)), ("empty-400", .empty(status: 400)), ("empty-404", .empty(status: 404)),
            ("silence", .unanswered(.silence)), ("reset", .unanswered(.reset)), ("closed", .unanswered(.closed)),
            ("goaway", .unanswered(.goneAway)), ("goaway-after", .acceptedThenGoneAway),
            ("refused", .unanswered(.refused)), ("refused-twice", .unanswered(.refusedTwice)),
        ]
    }
}
