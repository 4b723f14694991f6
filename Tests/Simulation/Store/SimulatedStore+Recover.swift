import OutboxCore

/// The registry of workers, and the recovery, which asks it: see `WorkerStatement` and `postbell.recover`.
extension SimulatedStore {
    /// A worker says that it lives; answers the time.
    mutating func register(_ owner: Identifier) -> Timestamp {
        if let place = workers.firstIndex(where: { $0.owner == owner }) {
            workers[place] = WorkerRow(owner: owner, heartbeatAt: now)
        } else {
            workers.append(WorkerRow(owner: owner, heartbeatAt: now))
        }
        return now
    }

    /// A worker signs off.
    mutating func unregister(_ owner: Identifier) {
        guard let place = workers.firstIndex(where: { $0.owner == owner }) else { return }
        workers[place] = WorkerRow(owner: owner, heartbeatAt: now, stoppedAt: now)
    }

    /// Recovers leases of anybody that had lapsed by `knownAt`: two snapshots, the second of which sees every settle
    /// that came first.
    mutating func recover(knownAt: Timestamp, healthySince: Timestamp, limit: Int, maxCrashes: Int) -> RecoveryReport {
        let cutoff = defect == .recoversLate ? now : min(now, knownAt)
        lapsedLater += leases.count { $0.until < now && $0.until >= cutoff }
        var report = (leases: 0, rows: 0, unknowns: 0, setAside: 0)
        let lapsed = leases.filter { $0.until < cutoff || defect == .recoversLiveLeases }
            .sorted { ($0.until, $0.batch) < ($1.until, $1.batch) }
        for lease in lapsed.prefix(limit) {
            leases.removeAll { $0.batch == lease.batch }
            report.leases += 1
            report.unknowns += defect == .recoveryIsSilent ? 0 : writeUnknown(of: lease)
            if defect == .recoveryLosesRows { continue }
            let wasThere = healthySince < lease.claimedAt
            let isDead = !wasThere && isDead(lease.owner, since: healthySince, by: cutoff)
            if isDead { deathsByRegistry += 1 }
            let counted: Int16 = wasThere || isDead ? 1 : 0
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

    /// Whether the registry has not heard of a worker since, for longer than a live one would be silent.
    private func isDead(_ owner: Identifier, since: Timestamp, by cutoff: Timestamp) -> Bool {
        if defect == .nobodyIsDead { return false }
        return since < cutoff - .seconds(4)
            && workers.contains { $0.owner == owner && $0.stoppedAt == nil && $0.heartbeatAt < since }
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
