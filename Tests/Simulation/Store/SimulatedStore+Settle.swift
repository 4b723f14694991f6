import OutboxCore

/// The settle: see `SettleStatement`.
extension SimulatedStore {
    /// Writes one flush; may be repeated at any time.
    mutating func settle(_ flush: Settlement, owner: Identifier) -> SettleReport {
        let place = leases.firstIndex { $0.batch == flush.batch && $0.owner == owner }
        var inserted = 0
        for row in flush.ledger where add(delivery(row, of: flush, isLate: place == nil)) { inserted += 1 }
        guard let place else {
            if defect == .settleUnfenced { return settleBlindly(flush, inserted: inserted) }
            return SettleReport(owned: false, ledgerRows: inserted, returned: 0)
        }
        var lease = leases[place]
        let leaving = flush.leaving.map { Int($0) - 1 }.filter {
            lease.isOpen[$0] || defect == .returnsWithoutBit
        }
        let returned = putBack(flush.returns, leaving, of: lease)
        end(flush.ends, leaving, of: lease)
        for position in leaving { lease.isOpen[position] = false }
        leases[place] = lease
        if lease.openCount == 0 || defect == .leaseEndsEarly && !leaving.isEmpty { leases.remove(at: place) }
        return SettleReport(owned: true, ledgerRows: inserted, returned: returned)
    }

    private func delivery(_ row: LedgerRow, of flush: Settlement, isLate: Bool) -> DeliveryRow {
        DeliveryRow(
            identifier: row.identifier, notification: row.notification, batch: flush.batch, device: row.device,
            tokenSequence: row.tokenSequence, route: flush.route, attempt: row.attempt, outcome: row.outcome.kind,
            status: row.outcome.status, reason: row.outcome.reason, isFinal: row.isFinal, isLate: isLate,
            retryAt: row.retryAfter.map { now + $0.inWholeMilliseconds })
    }

    private mutating func putBack(_ returns: [QueueReturn], _ leaving: [Int], of lease: LeaseRow) -> Int {
        var returned = 0
        for back in returns where leaving.contains(Int(back.position) - 1) {
            let row = lease.rows[Int(back.position) - 1]
            let queued = enqueue(
                QueueRow(
                    dueAt: now + back.delay.inWholeMilliseconds, notification: row.notification,
                    cursor: back.cursor, tenant: row.tenant, route: lease.route,
                    crashes: back.clearsCrashes ? 0 : row.crashes, urgency: row.urgency, attempt: back.attempt,
                    prior: true))
            returned += queued ? 1 : 0
        }
        return returned
    }

    private mutating func end(_ ends: [PositionEnd], _ leaving: [Int], of lease: LeaseRow) {
        guard defect != .endsForgotten else { return }
        for end in ends where leaving.contains(Int(end.position) - 1) {
            settlements.append(
                SettlementRow(
                    notification: lease.rows[Int(end.position) - 1].notification,
                    route: end.wholeNotification ? nil : lease.route, status: end.status.name,
                    reason: end.reason.rawValue))
        }
    }

    /// What `StoreDefect.settleUnfenced` does for a lease that is gone: rows go back as if it still held them.
    private mutating func settleBlindly(_ flush: Settlement, inserted: Int) -> SettleReport {
        var returned = 0
        for back in flush.returns {
            guard let entry = flush.ledger.first(where: { $0.position == back.position }) else { continue }
            let queued = enqueue(
                QueueRow(
                    dueAt: now + back.delay, notification: entry.notification, tenant: entry.tenant,
                    route: flush.route, urgency: 0, attempt: back.attempt, prior: true))
            returned += queued ? 1 : 0
        }
        return SettleReport(owned: true, ledgerRows: inserted, returned: returned)
    }

    // MARK: Leases

    /// Extends leases of this owner; a lapsed one that nobody has recovered is still its own.
    mutating func renew(_ batches: [Identifier], owner: Identifier, lease: Duration) -> [Identifier] {
        var extended: [Identifier] = []
        for index in leases.indices where batches.contains(leases[index].batch) && leases[index].owner == owner {
            leases[index].until = now + lease
            extended.append(leases[index].batch)
        }
        return extended
    }

    /// Sends back, unsent, what claims whose answer was lost have moved.
    mutating func adopt(_ batches: [Identifier], owner: Identifier) -> Int {
        let isWanted = { [defect] (lease: LeaseRow) in
            lease.owner == owner && (batches.contains(lease.batch) || defect == .adoptsEverything)
        }
        let adopted = leases.filter(isWanted)
        leases.removeAll(where: isWanted)
        var returned = 0
        for lease in adopted {
            for (index, row) in lease.rows.enumerated() where lease.isOpen[index] {
                var back = row
                back.dueAt = now
                back.attempt -= 1
                back.prior = true
                returned += enqueue(back) ? 1 : 0
            }
        }
        return returned
    }
}

extension Duration {
    /// Rounded up to whole milliseconds, as the settle sends its waits.
    var inWholeMilliseconds: Duration {
        .milliseconds((wholeMicroseconds + 999) / 1000)
    }
}
