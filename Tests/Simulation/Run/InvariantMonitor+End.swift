import OutboxCore

/// What must hold once everything has come to its end.
extension InvariantMonitor {
    /// Everything has come to its end: the three witnesses (producers, ledger, provider) say the same.
    func checkEnd(_ simulation: Simulation) {
        let store = simulation.store
        passed(.deadByRegistry, store.deathsByRegistry)
        passed(.lapsedLater, store.lapsedLater)
        var rows: [Target: [DeliveryRow]] = [:]
        for row in store.ledger {
            rows[Target(batch: row.batch, notification: row.notification, device: row.device), default: []].append(row)
        }
        for row in store.notifications where row.isVisible {
            guard store.ledger(of: row.identifier).isEmpty else { continue }
            if !store.settlements.contains(where: { $0.notification == row.identifier }) { found("lost", row.key) }
        }
        var verdicts: [Target: ScriptedProvider.Verdict] = [:]
        for entry in simulation.provider.log {
            let request = entry.request
            let target = Target(batch: request.batch, notification: request.notification, device: request.device)
            if verdicts.updateValue(entry.verdict, forKey: target) != nil {
                found("sent_twice", simulation.describe(request))
            }
            guard let written = rows[target] else {
                found("unrecorded", simulation.describe(request))
                continue
            }
            for row in written where !isTrue(row, entry.verdict) {
                found("untrue", "\(simulation.describe(request)) is \(row.outcome.name) on the ledger")
            }
        }
        for row in store.ledger {
            let target = Target(batch: row.batch, notification: row.notification, device: row.device)
            if row.outcome != .unknown, row.outcome != .skipped, verdicts[target] == nil {
                found("untrue", "\(name(row.notification, store)) is \(row.outcome.name), and was never received")
            }
            if (rows[target] ?? []).filter({ $0.isFinal && !$0.isLate }).count > 1 {
                found("two_ends", "\(name(row.notification, store)), device \(row.device)")
            }
        }
        checkDuplicates(simulation, rows)
    }

    private func isTrue(_ row: DeliveryRow, _ verdict: ScriptedProvider.Verdict) -> Bool {
        switch (row.outcome, verdict) {
        case (.unknown, _): true
        case (.delivered, .accepted): true
        // Without proof a token that is called dead is held for a wrong configuration.
        case (.misconfigured, .refused(.unregistered)): true
        case (let outcome, .refused(let kind)): outcome == kind
        default: false
        }
    }

    private func checkDuplicates(_ simulation: Simulation, _ rows: [Target: [DeliveryRow]]) {
        var accepted: [Target: [Request]] = [:]
        let none = Identifier(high: 0, low: 0)
        for entry in simulation.provider.log where entry.verdict == .accepted {
            let request = entry.request
            let key = Target(batch: none, notification: request.notification, device: request.device)
            // On two routes: a device that moves while a push to it is in flight is sent to where it is now, too.
            for other in accepted[key] ?? [] where other.route == request.route {
                // The one that was made first has its reason, whichever arrived first.
                let first = other.serial < request.serial ? other : request
                let target = Target(batch: first.batch, notification: first.notification, device: first.device)
                let isExplained = rows[target]?.contains { $0.outcome == .unknown || $0.isLate } ?? false
                if !isExplained { found("twice", simulation.describe(request)) }
            }
            if accepted[key] != nil { duplicates += 1 }
            accepted[key, default: []].append(request)
        }
    }
}
