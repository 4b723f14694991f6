import OutboxCore

/// Producers and back ends: see migrations 0003 and 0004.
extension SimulatedStore {
    /// A notification to be enqueued.
    struct Draft {
        var key: String
        var principal: String
        var tenant: Int32 = 1
        var subject: String?
        var thread: String?
        var payload = "{}"
        var kind = SimulatedStore.plainKind
        var urgency: Int16 = 0
        /// From now on; negative: it has passed already.
        var life: Duration = .seconds(3600)
        /// Not due before.
        var delay: Duration = .zero
        var onlyDevice: Int64?
        var exceptDevice: Int64?
        /// When the insert was made, where its transaction commits later; nil for now.
        var insertedAt: Timestamp?
        /// What an operator enqueues anew, and the collapse key it has.
        var predecessor: Identifier?
        var collapseKey: String?
    }

    /// Enqueues a notification; nil where the key exists or the deadline has passed.
    mutating func enqueue(_ draft: Draft) -> Identifier? {
        guard !notifications.contains(where: { $0.tenant == draft.tenant && $0.key == draft.key }) else { return nil }
        let reading = draft.insertedAt ?? now
        let planned = reading + max(.zero, draft.delay)
        let isOver = draft.life <= .zero
        let identifier = nextIdentifier()
        func row(_ routes: [RouteNumber]) -> NotificationRow {
            NotificationRow(
                identifier: identifier, key: draft.key, collapseKey: draft.collapseKey ?? draft.key,
                tenant: draft.tenant, principal: draft.principal, subject: draft.subject, thread: draft.thread,
                payload: draft.payload, kind: draft.kind, urgency: draft.urgency, createdAt: reading,
                plannedAt: planned, expiresAt: reading + draft.life, onlyDevice: draft.onlyDevice,
                exceptDevice: draft.exceptDevice, predecessor: draft.predecessor, routes: routes)
        }
        let live = Self.routes(of: liveDevices(of: row([])))
        let made = row(isOver ? [] : live.isEmpty ? [0] : live)
        add(made)
        for route in made.routes {
            let waits = min(max(planned, reading + waitForDevice), made.expiresAt)
            _ = enqueue(
                QueueRow(
                    dueAt: route == 0 ? waits : planned, notification: identifier, tenant: draft.tenant, route: route,
                    urgency: draft.urgency))
        }
        if isOver {
            settlements.append(
                SettlementRow(notification: identifier, route: nil, status: "expired", reason: "expired"))
        }
        return isOver ? nil : identifier
    }

    /// Registers a device; a token that lives elsewhere moves here. Answers the device's number.
    @discardableResult
    mutating func register(
        client: String, principal: String, tenant: Int32 = 1, route: RouteNumber, token: String
    ) -> Int64 {
        for index in devices.indices
        where devices[index].token == token && devices[index].route == route
            && !isSame(devices[index], tenant, principal, client)
        {
            devices[index].token = nil
            event("device.push_token_invalidated", of: devices[index])
        }
        let known = devices.firstIndex { isSame($0, tenant, principal, client) }
        let index = known ?? devices.count
        if known == nil {
            devices.append(
                DeviceRow(
                    number: Int64(index) + 1, tenant: tenant, principal: principal, client: client, route: route))
        }
        let before = devices[index]
        let isNew = before.token != token
        if before.route != route { devices[index].reroutedAt = now }
        devices[index].route = route
        devices[index].token = token
        devices[index].registeredAt = now
        devices[index].tokenSequence += isNew ? 1 : 0
        devices[index].failures = isNew ? 0 : before.failures
        devices[index].successDueAt = .distantPast
        devices[index].status = .active
        devices[index].disabledReason = nil
        if known == nil {
            event("device.registered", of: devices[index])
        } else if isNew || before.status != .active {
            event("device.push_token_updated", of: devices[index])
        }
        if defect != .deviceJoinsNothing { joins(devices[index]) }
        return devices[index].number
    }

    private func isSame(_ device: DeviceRow, _ tenant: Int32, _ principal: String, _ client: String) -> Bool {
        device.tenant == tenant && device.principal == principal && device.client == client
    }

    /// A device joins what still waits in the queue.
    private mutating func joins(_ device: DeviceRow) {
        for row in notifications
        where row.isVisible && isAddressed(device, by: row) && row.expiresAt > now
            && !lockedNotifications.contains(row.identifier)
        {
            let waiting = queue.filter { $0.notification == row.identifier }
            guard let first = waiting.min(by: { $0.dueAt < $1.dueAt }) else { continue }
            queue.removeAll { $0.notification == row.identifier && $0.route == 0 }
            let isLeased = leases.contains { lease in
                lease.route == device.route
                    && lease.rows.indices.contains {
                        lease.isOpen[$0] && lease.rows[$0].notification == row.identifier
                    }
            }
            guard !isLeased, !waiting.contains(where: { $0.route == device.route }) else { continue }
            _ = enqueue(
                QueueRow(
                    dueAt: first.route == 0 ? row.plannedAt : first.dueAt, notification: row.identifier,
                    tenant: row.tenant, route: device.route, urgency: row.urgency, prior: true))
        }
    }

    /// A back end takes a device out of service.
    mutating func revoke(_ device: Int64) {
        devices[Int(device) - 1].status = .revoked
    }

    /// A device mutes the kind, or hears it again.
    mutating func mute(_ device: Int64, _ mutes: Bool) {
        devices[Int(device) - 1].mutes = mutes
    }

    /// What answers do to devices: see migration 0004. Answers the indices of those that somebody holds.
    mutating func apply(_ effects: [DeviceEffect], maxFailures: Int) -> [Int] {
        var locked: [Int] = []
        let ordered = effects.enumerated().sorted { ($0.element.device, $0.offset) < ($1.element.device, $1.offset) }
        for (index, effect) in ordered {
            if lockedDevices.contains(effect.device) {
                locked.append(index)
            } else {
                apply(effect, maxFailures: Int32(maxFailures))
            }
        }
        return locked.sorted()
    }

    private mutating func apply(_ effect: DeviceEffect, maxFailures: Int32) {
        let index = Int(effect.device) - 1
        guard devices.indices.contains(index) else { return }
        let device = devices[index]
        let isUnguarded = defect == .effectsUnguarded
        guard device.token != nil, device.tokenSequence == effect.tokenSequence || isUnguarded else { return }
        if effect.change == .succeeded {
            guard device.failures != 0 || device.successDueAt <= now else { return }
            devices[index].failures = 0
            devices[index].successDueAt = now + .seconds(86_400)
            return
        }
        guard device.registeredAt.map({ $0 <= effect.asOf }) ?? false || isUnguarded else { return }
        if effect.change == .failed {
            devices[index].failures += 1
            devices[index].successDueAt = .distantPast
            guard maxFailures > 0, device.failures + 1 >= maxFailures else { return }
            devices[index].successDueAt = device.successDueAt
        }
        devices[index].token = nil
        devices[index].status = .disabled
        devices[index].disabledReason =
            device.disabledReason ?? (effect.change == .failed ? "repeated_failures" : "token_invalid")
        event("device.push_token_invalidated", of: device)
    }
}
