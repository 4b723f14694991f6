import OutboxCore

/// The share scan and the claim: see `WaitingStatement` and `ClaimStatement`.
extension SimulatedStore {
    /// Shares with rows on these routes.
    func waitingWork(on routes: [RouteNumber]) -> WaitingWork {
        var shares: [WaitingShare] = []
        let waiting = queue.filter { routes.contains($0.route) }.sorted {
            ($0.route, $0.crashes, $0.urgency, $0.tenant, $0.dueAt) < (
                $1.route, $1.crashes, $1.urgency, $1.tenant, $1.dueAt
            )
        }
        for row in waiting {
            let crashClass = CrashClass(rawValue: min(row.crashes, CrashClass.suspect.rawValue)) ?? .suspect
            let found = WaitingShare(
                route: row.route, crashClass: crashClass, share: Share(urgency: row.urgency, tenant: row.tenant),
                dueAt: row.dueAt)
            let same = shares.firstIndex {
                $0.route == found.route && $0.crashClass == found.crashClass && $0.share == found.share
            }
            if let same {
                if found.dueAt < shares[same].dueAt { shares[same] = found }
            } else {
                shares.append(found)
            }
        }
        return WaitingWork(now: now, shares: shares)
    }

    /// Moves due rows into a lease; nil when there is none.
    mutating func claim(_ request: ClaimRequest, owner: Identifier) -> ClaimedBatch? {
        var taken: [QueueRow] = []
        for credit in request.credits {
            let candidates = queue.filter { isCandidate($0, request, credit) }.sorted {
                ($0.dueAt, $0.notification) < ($1.dueAt, $1.notification)
            }
            taken += candidates.prefix(credit.rows)
        }
        guard !taken.isEmpty else { return nil }
        queue.removeAll { row in
            taken.contains { $0.notification == row.notification && $0.route == row.route }
        }
        if defect == .claimLosesRow, taken.count > 2 { taken.removeLast() }
        for index in taken.indices { taken[index].attempt += 1 }
        return lease(taken, request, owner: owner)
    }

    private func isCandidate(_ row: QueueRow, _ request: ClaimRequest, _ credit: ShareCredit) -> Bool {
        let crashes = request.crashClass.rawValue
        return row.route == request.route && row.urgency == credit.share.urgency && row.tenant == credit.share.tenant
            && (request.crashClass == .suspect ? row.crashes >= crashes : row.crashes == crashes)
            && row.dueAt <= now && !lockedNotifications.contains(row.notification)
            && LowWaterMark(dueAt: row.dueAt, notification: row.notification) >= credit.mark
    }

    private mutating func lease(_ taken: [QueueRow], _ request: ClaimRequest, owner: Identifier) -> ClaimedBatch {
        var dispatches: [ClaimedDispatch] = []
        var targets: [ClaimedTarget] = []
        var leased: [(row: Int, device: Int64)] = []
        var text: [UInt8] = []
        for (index, row) in taken.enumerated() {
            let found = notification(row.notification).flatMap { $0.isVisible ? $0 : nil }
            let verdict = found.map { self.verdict(on: $0) } ?? .orphan
            let first = targets.count
            let page = verdict == .send ? page(of: found, row, request) : []
            for target in page where !target.isLeftOut {
                leased.append((index, target.device.number))
                targets.append(
                    ClaimedTarget(
                        device: target.device.number, token: append(target.device.token ?? "", to: &text),
                        tokenSequence: target.device.tokenSequence, spentAttempts: Int16(target.spent),
                        notesSuccess: target.device.successDueAt <= now))
            }
            let range = first..<targets.count
            let mayEnd = row.cursor.isSecondLook && page.isEmpty
            let others = verdict == .send && row.prior ? othersDueAt(row, of: found, mayEnd: mayEnd) : nil
            let key = append(found?.collapseKey ?? "", to: &text)
            let payload = append(range.isEmpty && !page.isEmpty ? "" : found?.payload ?? "", to: &text)
            let thread = append(found?.thread ?? "", to: &text)
            dispatches.append(
                ClaimedDispatch(
                    notification: row.notification, share: Share(urgency: row.urgency, tenant: row.tenant),
                    dueAt: row.dueAt, attempt: row.attempt, crashes: row.crashes, prior: row.prior,
                    cursor: row.cursor,
                    pageEnd: page.count == request.targetsPerRow || row.cursor.isSecondLook
                        ? page.last?.device.number : nil,
                    verdict: verdict,
                    kind: found?.kind ?? 0,
                    createdAt: found?.createdAt ?? row.dueAt, expiresAt: found?.expiresAt ?? row.dueAt,
                    payload: payload,
                    collapseKey: key, thread: thread, badge: nil, silent: false,
                    heldUntil: others,
                    nobody: range.isEmpty && verdict == .send && (page.isEmpty || others == nil)
                        ? nobody(found, row, pageIsEmpty: page.isEmpty) : nil,
                    targets: range))
        }
        leases.append(
            LeaseRow(
                batch: request.batch, owner: owner, claimedAt: now, until: now + request.lease, route: request.route,
                rows: taken, targets: leased, isOpen: taken.map { _ in true }))
        claims[request.batch] = leased.map { (taken[$0.row].notification, $0.device) }
        return ClaimedBatch(
            identifier: request.batch, route: request.route, claimedAt: now, dispatches: dispatches,
            targets: targets, text: text)
    }

    private func append(_ string: String, to text: inout [UInt8]) -> TextRange {
        let start = Int32(text.count)
        text.append(contentsOf: string.utf8)
        return start..<Int32(text.count)
    }

    private func verdict(on row: NotificationRow) -> ClaimVerdict {
        if defect == .verdictBlind { return .send }
        if isClosed(row.identifier) { return .closed }
        switch foundFact(against: row) {
        case .superseded: return .superseded
        case .seen: return .seen
        case .erased: return .erased
        default: return row.expiresAt <= now ? .expired : .send
        }
    }

    /// A device of a page: whether it is no target now, and the attempts that it has spent.
    private typealias PageRow = (device: DeviceRow, isLeftOut: Bool, spent: Int)

    /// The page of devices.
    private func page(of found: NotificationRow?, _ row: QueueRow, _ request: ClaimRequest) -> [PageRow] {
        guard let found else { return [] }
        let history = ledger(of: row.notification)
        let mayHaveHistory = defect == .historyByAttempt ? row.attempt > 1 : row.prior
        var page: [PageRow] = []
        for device in liveDevices(of: found, route: request.route)
        where device.number > row.cursor.device && !device.mutes {
            guard page.count < request.targetsPerRow else { break }
            let hasMoved = defect != .movesForgotten && device.reroutedAt > found.createdAt - .seconds(86_400)
            let own = mayHaveHistory || hasMoved ? history.filter { $0.device == device.number } : []
            let isLeftOut = own.contains { $0.isFinal || ($0.route == row.route && isAhead($0.retryAt)) }
            var batches: [Identifier] = []
            for entry in own where entry.outcome.spendsAttempt && !batches.contains(entry.batch) {
                batches.append(entry.batch)
            }
            page.append((device, isLeftOut, batches.count))
        }
        return page
    }

    private func isAhead(_ instant: Timestamp?) -> Bool {
        defect != .waitsForgotten && instant.map { $0 > now } ?? false
    }

    /// When the first target that waits for its own retry is due; now, at the end of a second look, when one is.
    private func othersDueAt(_ row: QueueRow, of found: NotificationRow?, mayEnd: Bool) -> Timestamp? {
        let history = ledger(of: row.notification)
        if let found, mayEnd, defect != .overlooksDue {
            let due = liveDevices(of: found, route: row.route).contains { device in
                let own = history.filter { $0.device == device.number }
                return !device.mutes && own.contains { $0.route == row.route && $0.retryAt.map { $0 <= now } ?? false }
                    && !own.contains { $0.isFinal || ($0.route == row.route && isAhead($0.retryAt)) }
            }
            if due { return now }
        }
        let waiting = history.filter { entry in
            entry.route == row.route && !entry.isFinal && entry.retryAt.map { $0 > now } ?? false
                && !history.contains { $0.device == entry.device && $0.isFinal }
        }
        return waiting.compactMap(\.retryAt).min()
    }

    /// Why a wanted row has no target, unless it has reached them all.
    private func nobody(_ found: NotificationRow?, _ row: QueueRow, pageIsEmpty: Bool) -> SettlementReason? {
        guard let found else { return nil }
        if row.prior, ledger(of: row.notification).contains(where: { $0.isFinal && $0.route == row.route }) {
            return nil
        }
        guard pageIsEmpty else { return .noDevice }
        let addressed = devices.filter { $0.route == row.route && isAddressed($0, by: found) }
        if addressed.contains(where: { $0.isLive && $0.mutes }) { return .muted }
        if addressed.contains(where: { $0.status == .active && $0.token == nil }) { return .noToken }
        return addressed.contains { $0.status == .revoked } ? .revoked : .noDevice
    }
}
