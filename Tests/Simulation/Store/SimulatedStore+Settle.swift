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
                    afterDevice: back.afterDevice, tenant: row.tenant, route: lease.route,
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

    /// Recovers lapsed leases of anybody: two snapshots, the second of which sees every settle that came first.
    mutating func recover(healthySince: Timestamp, limit: Int, maxCrashes: Int) -> RecoveryReport {
        var report = (leases: 0, rows: 0, unknowns: 0, setAside: 0)
        let lapsed = leases.filter { $0.until < now || defect == .recoversLiveLeases }
            .sorted { ($0.until, $0.batch) < ($1.until, $1.batch) }
        for lease in lapsed.prefix(limit) {
            leases.removeAll { $0.batch == lease.batch }
            report.leases += 1
            report.unknowns += defect == .recoveryIsSilent ? 0 : writeUnknown(of: lease)
            if defect == .recoveryLosesRows { continue }
            let counted: Int16 = healthySince < lease.claimedAt ? 1 : 0
            for (index, row) in lease.rows.enumerated() where lease.isOpen[index] {
                if lease.rows.count == 1, Int(row.crashes + counted) >= maxCrashes {
                    settlements.append(
                        SettlementRow(
                            notification: row.notification, route: lease.route, status: "failed", reason: "crashes"))
                    report.setAside += 1
                    continue
                }
                var back = row
                back.dueAt = now
                back.crashes = min(row.crashes + counted, Int16(clamping: maxCrashes))
                back.attempt = max(row.attempt - 1, 0)
                back.prior = true
                report.rows += enqueue(back) ? 1 : 0
            }
        }
        return RecoveryReport(
            leases: report.leases, rows: report.rows, unknowns: report.unknowns, setAside: report.setAside)
    }

    /// Tells whom the lost worker may have sent to; answers how many.
    private mutating func writeUnknown(of lease: LeaseRow) -> Int {
        var written = 0
        for target in lease.targets where lease.isOpen[target.row] {
            let row = lease.rows[target.row]
            let isKnown = ledger(of: row.notification).contains {
                $0.device == target.device && $0.batch == lease.batch
            }
            guard !isKnown else { continue }
            let identifier = nextIdentifier()
            let added = add(
                DeliveryRow(
                    identifier: identifier, notification: row.notification, batch: lease.batch, device: target.device,
                    tokenSequence: nil, route: lease.route, attempt: row.attempt, outcome: .unknown, status: 0,
                    reason: "lease_lost", isFinal: false, isLate: false, retryAt: nil))
            written += added ? 1 : 0
        }
        return written
    }
}

extension Duration {
    /// Rounded up to whole milliseconds, as the settle sends its waits.
    var inWholeMilliseconds: Duration {
        .milliseconds((wholeMicroseconds + 999) / 1000)
    }
}
