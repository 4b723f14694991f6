import OutboxCore

/// The provider: what it received, in its own log, and what it answers.
final class ScriptedProvider {
    /// What the provider made of a request.
    enum Verdict: Equatable {
        /// Accepted, and said so unless the answer was lost.
        case accepted
        /// Not accepted.
        case refused(OutcomeKind)
    }

    /// One request that arrived.
    struct Entry {
        let request: Request
        let verdict: Verdict
        /// Whether the answer was sent.
        let isAnswered: Bool
        /// The database's time when it arrived.
        let at: Timestamp
        /// When it calls the token dead since; nil where it does not, or does not say.
        let deadSince: Timestamp?
    }

    private(set) var log: [Entry] = []
    /// Tokens whose app was removed.
    var deadSince: [String: Timestamp] = [:]
    private var serial = 0

    func nextSerial() -> Int {
        serial += 1
        return serial
    }

    /// A request arrives: it is judged, written down, and answered as the script says. `key` numbers its notification.
    func receive(_ request: Request, _ key: Int, _ simulation: Simulation) {
        let stream = -10 - key
        let occasion = request.serial
        var outcome = verdict(on: request, stream, simulation)
        var isAnswered = true
        if simulation.dice.strikes(.unansweredLost, stream, occasion) {
            (outcome, isAnswered) = (Outcome(.retry, status: 0, reason: "lost"), false)
        } else if simulation.dice.strikes(.unansweredAccepted, stream, occasion) {
            isAnswered = false
        }
        let verdict: Verdict = outcome.kind == .delivered ? .accepted : .refused(outcome.kind)
        log.append(
            Entry(
                request: request, verdict: verdict, isAnswered: isAnswered, at: simulation.databaseTime,
                deadSince: outcome.kind == .unregistered ? outcome.deadSince : nil))
        simulation.note(
            -1, "provider", request.serial, Int(outcome.kind.rawValue),
            "\(simulation.describe(request)) \(outcome.kind.name)\(isAnswered ? "" : ", no answer")")
        simulation.monitor.received(request, simulation)
        guard isAnswered else { return }
        var way = simulation.jitter(simulation.plan.answerWay, salt: 50)
        if simulation.dice.strikes(.slowAnswer, stream, occasion) {
            let limit = Int(simulation.plan.settings.requestTimeout.wholeMicroseconds)
            way += simulation.jitter(limit / 2...limit * 2, salt: 51)
        }
        let worker = simulation.workers[request.worker]
        guard worker.life == request.life else { return }
        simulation.schedule(after: way, worker: worker) { worker.answered(request, .outcome(outcome)) }
    }

    private func verdict(on request: Request, _ stream: Int, _ simulation: Simulation) -> Outcome {
        if let since = deadSince[request.token] {
            return Outcome(.unregistered, status: 410, reason: "Unregistered", deadSince: since, proof: .proven)
        }
        for (kind, outcome) in Self.script where simulation.dice.strikes(kind, stream, request.serial) {
            guard kind == .unregistered else { return outcome }
            // It knows of it since a while ago, perhaps from before the last registration.
            let ago = Duration.milliseconds(simulation.dice.draw(0...20_000, stream, request.serial, salt: 60))
            return Outcome(
                .unregistered, status: 410, reason: "Unregistered", deadSince: simulation.databaseTime + .zero - ago,
                proof: .proven)
        }
        return Outcome(.delivered, status: 200)
    }

    private static let script: [(FaultKind, Outcome)] = [
        (.unregistered, Outcome(.unregistered)),
        (.badToken, Outcome(.unregistered, status: 400, reason: "BadDeviceToken", proof: .needsProvenLane)),
        (.rejected, Outcome(.rejected, status: 413, reason: "PayloadTooLarge")),
        (.wrongKey, Outcome(.misconfigured, scope: .lane, status: 403, reason: "InvalidProviderToken")),
        (.wrongTopic, Outcome(.misconfigured, scope: .topic, status: 400, reason: "TopicDisallowed")),
        (.wrongSender, Outcome(.misconfigured, scope: .target, status: 403, reason: "SENDER_ID_MISMATCH")),
        (
            .oldAccessToken,
            Outcome(
                .misconfigured, scope: .lane, status: 403, reason: "ExpiredProviderToken", advice: .replaceToken)
        ),
        (.throttled, Outcome(.throttled, status: 429, reason: "TooManyRequests", retryFloor: .seconds(3))),
        (
            .throttledLane,
            Outcome(.throttled, scope: .lane, status: 429, reason: "QUOTA_EXCEEDED", retryFloor: .seconds(2))
        ),
        (.unavailable, Outcome(.retry, status: 503, reason: "ServiceUnavailable")),
    ]
}

extension Timestamp {
    static func - (instant: Timestamp, duration: Duration) -> Timestamp {
        Timestamp(microseconds: instant.microseconds - duration.wholeMicroseconds)
    }
}

extension Simulation {
    func describe(_ request: Request) -> String {
        "#\(request.serial) \(monitor.name(request.notification, store)) device \(request.device)"
    }
}
