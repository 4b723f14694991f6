import OutboxCore

/// What happens to a notification next, and why, in plain words: one sentence per line. A pure function of its life.
struct WhatHappensNext {
    private let life: NotificationLife
    private var head: NotificationLife.Head { life.head }

    static func sentences(_ life: NotificationLife) -> [String] {
        let words = WhatHappensNext(life: life)
        return life.places.isEmpty ? words.ending() : words.pending()
    }

    // MARK: Pending

    private func pending() -> [String] {
        if head.status != "pending" {
            return [
                "It is over: \(head.status), \(OutcomeWords.skipped(head.reason ?? "")). What is left of it is "
                    + "dropped when a worker comes to it; nothing more is sent."
            ]
        }
        var sentences = life.places.map { place in
            let text = place.lease.map { leased(place, $0) } ?? queued(place)
            return life.places.count > 1 ? "\(place.service.route): \(text)" : text
        }
        sentences += life.ends.compactMap { end in
            end.route.map { "\($0): done, \(end.status): \(OutcomeWords.skipped(end.reason))." }
        }
        if accepted > 0 { sentences.append("The provider has accepted it for \(devices(accepted)) already.") }
        return sentences
    }

    private func queued(_ place: NotificationLife.Place) -> String {
        if let at = head.supersededAt {
            return
                "Its subject moved on \(moment(at)): it ends as superseded \(whenAWorkerComes(place)); nothing is sent."
        }
        if head.expiresAt <= life.now {
            return "Its deadline passed \(moment(head.expiresAt)): it ends as expired "
                + (life.workerIsAlive ? "when a worker comes to it." : "when a worker is started; none is alive.")
        }
        if place.service.isWaitForDevice { return waitsForDevice(place) }
        return place.at > life.now ? waits(place) : isDue(place)
    }

    private func waitsForDevice(_ place: NotificationLife.Place) -> String {
        if place.at > life.now {
            return
                "It waits for a first device of the person until \(moment(place.at)); without one it ends "
                + "there, sent to nobody."
        }
        return life.workerIsAlive
            ? "Its wait for a first device ended \(moment(place.at)): a worker sends or ends it within seconds."
            : "Its wait for a first device ended \(moment(place.at)), but no worker is alive to go on; start one."
    }

    private func waits(_ place: NotificationLife.Place) -> String {
        let text = "It waits until \(moment(place.at)): \(whyItWaits(place))."
        switch place.service.state {
        case .up, .down, .probing:
            return text
        case .unserved:
            return text
                + " No live worker serves \(place.service.route): unless one is started that does, it ends at its "
                + "deadline, \(moment(head.expiresAt)), as expired."
        case .paused:
            guard let until = place.service.until, until > place.at else { return text }
            return text + " And not before \(moment(until)), because \(laneTrouble(place))."
        }
    }

    private func whyItWaits(_ place: NotificationLife.Place) -> String {
        let held = life.attempts.last { entry in
            entry.routeNumber == place.routeNumber && !entry.isFinal && (entry.retryAt ?? life.now) > life.now
        }
        if let held {
            let again = OutcomeKind.allCases.first { $0.name == held.outcome }?.spendsAttempt == true
            return "on \(name(held)) \(OutcomeWords.clause(held)); "
                + (again ? "it is then tried again" : "it is then tried again, and this attempt does not count")
        }
        if life.attempts.isEmpty, place.attempt == 0, place.at == head.plannedAt {
            return head.notBefore == nil
                ? "its kind waits that long before the first attempt" : "its producer asked for that moment"
        }
        if let hook = life.hook { return hookTrouble(hook) }
        return "it was given back unsent, by a worker that stopped or whose lane was paused or down"
    }

    private func isDue(_ place: NotificationLife.Place) -> String {
        let due = "It has been due since \(moment(place.at))"
        let route = place.service.route
        switch place.service.state {
        case .unserved:
            return "\(due), but is held: no live worker serves \(route). It is sent when a worker is started whose "
                + "credential covers that; else it ends at its deadline, \(moment(head.expiresAt)), as expired."
        case .paused:
            return
                "\(due), but is held until \(place.service.until.map(moment) ?? "later"), because "
                + "\(laneTrouble(place))."
        case .down:
            return "\(due), but is held, because \(laneTrouble(place)); the next try is "
                + "\(place.service.until.map(moment) ?? "to come")."
        case .probing:
            return "\(due); a worker tries with one row whether its lane can send again, which was paused"
                + "\(cause(place))."
        case .up where life.hook != nil:
            return "\(due), but is held: \(life.hook.map(hookTrouble) ?? "")."
        case .up where place.crashes > 0:
            return
                "\(due). A worker died \(place.crashes == 1 ? "once" : "\(place.crashes) times") while it held "
                + "it, so it is sent alone, after the others, or set aside as failed when that goes on."
        case .up where place.at + life.stuckAfter <= life.now:
            return
                "\(due), longer than it should: \(route) is served, so its workers are behind. `postbell "
                + "status` shows by how much."
        case .up:
            return "\(due); the next claim of a worker takes it."
        }
    }

    private func hookTrouble(_ hook: HookStatus) -> String {
        "a hook of its kind fails since \(moment(hook.since)) (\(hook.reason)), and \(hook.worker) sends nothing of "
            + "the kind until it answers; at its deadline, \(moment(head.expiresAt)), it ends as expired"
    }

    private func leased(_ place: NotificationLife.Place, _ lease: NotificationLife.Lease) -> String {
        let worker = lease.worker ?? "a worker that the registry does not know"
        let recovery = "a live worker then takes over, notes `unknown` for what may have been sent, and sends again"
        if place.at <= life.now {
            return "The lease of \(worker) ran out \(moment(place.at)): "
                + (life.workerIsAlive
                    ? "a live worker takes over within seconds, notes `unknown` for what may have been sent, "
                        + "and sends again."
                    : "it stays so until a worker is started; none is alive.")
        }
        switch lease.workerState {
        case .alive:
            return "\(worker) is sending it, and holds it until \(moment(place.at)); it renews that while it works."
        case .stopped:
            return "\(worker), which held it, has stopped. Its lease runs out \(moment(place.at)); \(recovery)."
        case .dead:
            let heard = lease.heartbeatAt.map { ", last heard of \(moment($0))" } ?? ""
            return "\(worker), which held it, seems dead\(heard). Its lease runs out \(moment(place.at)); \(recovery)."
        }
    }

    private func laneTrouble(_ place: NotificationLife.Place) -> String {
        let service = place.service
        let lane = service.lane.map { "its lane \($0)" } ?? "its lane"
        return lane + (service.state == .paused ? " is paused" : " has no connection") + cause(place)
    }

    private func cause(_ place: NotificationLife.Place) -> String {
        place.service.reason.map { " (\($0))" } ?? ""
    }

    private func whenAWorkerComes(_ place: NotificationLife.Place) -> String {
        place.service.state == .unserved && !place.service.isWaitForDevice
            ? "when a worker is started that serves \(place.service.route), and at its deadline at the latest"
            : "when a worker comes to it"
    }

    // MARK: Over

    private func ending() -> [String] {
        var sentences = [verdict()]
        sentences += decided.filter { $0.outcome != OutcomeKind.delivered.name }.map { entry in
            "On \(name(entry)): \(OutcomeWords.clause(entry))."
        }
        if accepted > 0 {
            sentences.append("What the phone did with it, the provider does not say.")
        }
        return sentences
    }

    private func verdict() -> String {
        let ended = head.settledAt.map { " \(moment($0))" } ?? ""
        let reach = accepted > 0 ? " The provider had accepted it for \(devices(accepted)) before." : ""
        switch head.status {
        case "dispatched" where accepted > 0:
            return "Done\(ended): the provider accepted it for \(accepted) of \(devices(decided.count))."
        case "dispatched":
            let why = life.ends.last.map { OutcomeWords.skipped($0.reason) }
            return "Done\(ended), and nobody was reached" + (why.map { ": \($0)." } ?? (decided.isEmpty ? "." : ":"))
        case "failed":
            return "Failed\(ended): \(failure()).\(reach) Nothing more is sent."
        case "expired":
            let last = life.attempts.last { !$0.isFinal }.map {
                " The last attempt, on \(name($0)): \(OutcomeWords.clause($0))."
            }
            return "Expired\(ended): its deadline, \(moment(head.expiresAt)), passed before every device was reached."
                + "\(last ?? "")\(reach)"
        default:
            return "\(head.status.prefix(1).uppercased())\(head.status.dropFirst())\(ended): "
                + "\(OutcomeWords.skipped(head.reason ?? "")). Nothing more is sent.\(reach)"
        }
    }

    private func failure() -> String {
        if head.reason == SettlementReason.ceiling.rawValue || head.reason == SettlementReason.crashes.rawValue {
            return OutcomeWords.skipped(head.reason ?? "")
        }
        let last = decided.last { $0.outcome != OutcomeKind.delivered.name && $0.outcome != OutcomeKind.skipped.name }
        switch OutcomeKind.allCases.first(where: { $0.name == last?.outcome }) {
        case .retry, .unknown: return OutcomeWords.skipped(SettlementReason.ceiling.rawValue)
        case .some: return last.map(OutcomeWords.clause) ?? ""
        case nil: return OutcomeWords.skipped(head.reason ?? "")
        }
    }

    // MARK: Parts

    /// The attempt that decided about each device, oldest first.
    private var decided: [LedgerEntry] { life.attempts.filter { life.deciding.contains($0.id) } }

    private var accepted: Int { decided.count { $0.outcome == OutcomeKind.delivered.name } }

    private func devices(_ count: Int) -> String { CountText.of(count, "device") }

    private func name(_ entry: LedgerEntry) -> String { entry.deviceTitle == "-" ? "a device" : entry.deviceTitle }

    private func moment(_ instant: Timestamp) -> String { TimeText.withDistance(instant, now: life.now) }
}
