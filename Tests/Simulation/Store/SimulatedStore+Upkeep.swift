import OutboxCore

/// What is looked at again, and what ends without a claim: see `RecheckStatement`, `ResolveUnroutedStatement`,
/// `SweepStatement` and `RetryHeldStatement`.
extension SimulatedStore {
    /// A reason for each target that fell out; nil when the lease is not this owner's, or has lapsed.
    func recheck(
        _ targets: [RecheckTarget], batch: Identifier, owner: Identifier, route: RouteNumber
    ) -> [SettlementReason?]? {
        // Whose the lease is, is said with each target.
        guard !targets.isEmpty else { return [] }
        guard leases.contains(where: { $0.batch == batch && $0.owner == owner && $0.until > now }) else { return nil }
        return targets.map { reason(against: $0, route: route) }
    }

    private func reason(against target: RecheckTarget, route: RouteNumber) -> SettlementReason? {
        guard let row = notification(target.notification), row.isVisible else { return .noAccess }
        if let end = settlements.first(where: { $0.notification == row.identifier && $0.route == nil }) {
            let named: [SettlementReason] = [.superseded, .seen, .noAccess, .erased, .cancelled, .expired]
            return named.first { $0.rawValue == end.reason } ?? .cancelled
        }
        if let fact = foundFact(against: row) { return fact }
        if row.expiresAt <= now { return .expired }
        guard let device = device(target.device), device.status == .active, device.tenant == row.tenant,
            device.principal == row.principal
        else { return .revoked }
        if device.token == nil { return .noToken }
        if device.tokenSequence != target.tokenSequence || device.route != route { return .tokenChanged }
        return device.mutes ? .muted : nil
    }

    /// Gives notifications that waited for a first device their routes, or settles them. Answers how many were looked
    /// at, and which routes have rows now.
    mutating func resolveUnrouted(limit: Int) -> (resolved: Int, routes: [RouteNumber]) {
        let due = queue.filter { $0.route == 0 && $0.dueAt <= now && !lockedNotifications.contains($0.notification) }
            .sorted { ($0.dueAt, $0.notification) < ($1.dueAt, $1.notification) }.prefix(limit)
        var routes: [RouteNumber] = []
        for row in due {
            queue.removeAll { $0.route == 0 && $0.notification == row.notification }
            guard let found = notification(row.notification), found.isVisible, !isClosed(found.identifier) else {
                continue
            }
            if let fact = foundFact(against: found) {
                end(found, by: fact)
            } else if found.expiresAt <= now {
                end(found, route: 0, "expired", "expired")
            } else {
                let live = Self.routes(of: liveDevices(of: found))
                if live.isEmpty { end(found, route: 0, "dispatched", "no_device") }
                for route in live {
                    routes.append(route)
                    _ = enqueue(
                        QueueRow(
                            dueAt: min(found.plannedAt, now), notification: found.identifier, tenant: found.tenant,
                            route: route, urgency: found.urgency))
                }
            }
        }
        return (due.count, routes)
    }

    private mutating func end(_ row: NotificationRow, route: RouteNumber?, _ status: String, _ reason: String) {
        settlements.append(
            SettlementRow(notification: row.identifier, route: route, status: status, reason: reason))
    }

    /// The whole notification ends by a fact.
    private mutating func end(_ row: NotificationRow, by fact: SettlementReason) {
        end(row, route: nil, fact == .erased ? "cancelled" : "superseded", fact.rawValue)
    }

    /// Routes of devices, ascending, each once.
    static func routes(of devices: [DeviceRow]) -> [RouteNumber] {
        devices.map(\.route).sorted().reduce(into: []) { if $0.last != $1 { $0.append($1) } }
    }

    /// Ends rows that are over, whatever their route; answers how many.
    mutating func sweep() -> Int {
        let over = queue.filter { !lockedNotifications.contains($0.notification) && isOver($0.notification) }
            .sorted { ($0.notification, $0.route) < ($1.notification, $1.route) }
        queue.removeAll { row in over.contains { $0.notification == row.notification && $0.route == row.route } }
        for row in over {
            guard let found = notification(row.notification), !isClosed(found.identifier) else { continue }
            if let fact = foundFact(against: found) {
                end(found, by: fact)
            } else {
                end(found, route: row.route, "expired", "expired")
            }
        }
        return over.count
    }

    private func isOver(_ notification: Identifier) -> Bool {
        guard let row = self.notification(notification), row.isVisible else { return false }
        return isClosed(notification) || foundFact(against: row) != nil || row.expiresAt <= now
    }

    /// Makes due at once what a wrong configuration stopped on these routes; answers how many rows.
    mutating func retryHeld(on routes: [RouteNumber]) -> Int {
        var moved = 0
        for index in queue.indices {
            let row = queue[index]
            guard routes.contains(row.route), row.prior, row.dueAt > now,
                !lockedNotifications.contains(row.notification)
            else { continue }
            let waits = ledger(of: row.notification).filter {
                $0.route == row.route && $0.retryAt.map { $0 > now } ?? false
            }
            guard waits.isEmpty || waits.contains(where: { $0.outcome == .misconfigured }) else { continue }
            changeLedger(of: row.notification) { [now] entry in
                guard entry.outcome == .misconfigured, routes.contains(entry.route), let retryAt = entry.retryAt,
                    retryAt > now
                else { return }
                entry.retryAt = now
            }
            queue[index].dueAt = now
            moved += 1
        }
        return moved
    }
}
