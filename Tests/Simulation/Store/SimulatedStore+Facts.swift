import OutboxCore

/// Facts that end notifications, and what operators do to them: see migrations 0007 and 0009.
extension SimulatedStore {
    /// The subject moved on.
    mutating func supersede(tenant: Int32, subject: String) {
        supersessions.append((tenant, subject, now))
    }

    /// The conversation is gone, and what its open notifications say.
    mutating func erase(tenant: Int32, thread: String) {
        erasures.append((tenant, thread, now))
        for index in notifications.indices
        where notifications[index].tenant == tenant && notifications[index].thread == thread
            && isOpen(notifications[index].identifier)
        {
            notifications[index].payload = "{}"
        }
    }

    /// A person has seen a subject; false when nothing was ever enqueued about it.
    mutating func see(tenant: Int32, principal: String, subject: String) -> Bool {
        let about = notifications.filter { $0.tenant == tenant && $0.principal == principal && $0.subject == subject }
        guard let newest = about.map(\.createdAt).max() else { return false }
        let isKnown = receipts.contains {
            $0.tenant == tenant && $0.principal == principal && $0.subject == subject && $0.at > newest
        }
        if !isKnown { receipts.append((tenant, principal, subject, now)) }
        return true
    }

    /// What a statement finds of the facts that end a notification.
    func foundFact(against row: NotificationRow) -> SettlementReason? {
        defect == .factsIgnored ? nil : fact(against: row)
    }

    /// The fact that ends a notification, in the order in which they are judged; nil when there is none.
    func fact(against row: NotificationRow) -> SettlementReason? {
        if isSuperseded(row) { return .superseded }
        if Self.kindsThatEndWhenSeen.contains(row.kind), isSeen(row) { return .seen }
        return isErased(row) ? .erased : nil
    }

    private func isSuperseded(_ row: NotificationRow) -> Bool {
        row.subject.map { subject in
            supersessions.contains { $0.tenant == row.tenant && $0.subject == subject && $0.at > row.createdAt }
        } ?? false
    }

    private func isSeen(_ row: NotificationRow) -> Bool {
        row.subject.map { subject in
            receipts.contains {
                $0.tenant == row.tenant && $0.principal == row.principal && $0.subject == subject
                    && $0.at > row.createdAt
            }
        } ?? false
    }

    private func isErased(_ row: NotificationRow) -> Bool {
        row.thread.map { thread in
            erasures.contains { $0.tenant == row.tenant && $0.thread == thread && $0.at > row.createdAt }
        } ?? false
    }

    /// Whether a dispatch of the notification waits or is in flight.
    private func isOpen(_ notification: Identifier) -> Bool {
        queue.contains { $0.notification == notification }
            || leases.contains { lease in
                lease.rows.indices.contains { lease.isOpen[$0] && lease.rows[$0].notification == notification }
            }
    }

    // MARK: Operators

    /// An operator stops the whole notification; false when it has ended already.
    mutating func cancel(_ notification: Identifier) -> Bool {
        guard isOpen(notification), !isClosed(notification) else { return false }
        settlements.append(
            SettlementRow(notification: notification, route: nil, status: "cancelled", reason: "cancelled"))
        return true
    }

    /// An operator enqueues anew what has ended, with a life from now on; nil when it is refused. A second call answers
    /// the same one.
    mutating func requeue(_ notification: Identifier, life: Duration) -> Identifier? {
        guard let former = self.notification(notification), life > .zero else { return nil }
        if let successor = notifications.first(where: { $0.predecessor == notification }) {
            return successor.identifier
        }
        guard !isOpen(notification), fact(against: former) == nil else { return nil }
        var draft = Draft(key: "again \(former.key)", principal: former.principal)
        draft.tenant = former.tenant
        (draft.subject, draft.thread, draft.payload) = (former.subject, former.thread, former.payload)
        (draft.kind, draft.urgency, draft.life) = (former.kind, former.urgency, life)
        (draft.onlyDevice, draft.exceptDevice) = (former.onlyDevice, former.exceptDevice)
        (draft.predecessor, draft.collapseKey) = (notification, former.collapseKey)
        return enqueue(draft)
    }
}
