import OutboxCore

extension NotificationLife {
    /// The life for programs. The names are documented and stay.
    var json: JSONText {
        .object([
            ("now", .instant(now)), ("id", .identifier(head.id)), ("tenant_id", .string(head.tenant)),
            ("principal_id", .string(head.principal)), ("kind", .string(head.kind)),
            ("dedupe_key", .string(head.dedupeKey)), ("subject", .string(head.subject)),
            ("thread", .string(head.thread)), ("urgency", .string(head.urgency)), ("silent", .bool(head.isSilent)),
            ("device_id", .identifier(head.onlyDevice)), ("except_device_id", .identifier(head.exceptDevice)),
            ("created_at", .instant(head.createdAt)), ("planned_at", .instant(head.plannedAt)),
            ("not_before", .instant(head.notBefore)), ("expires_at", .instant(head.expiresAt)),
            ("status", .string(head.status)), ("reason", .string(head.reason)),
            ("settled_at", .instant(head.settledAt)), ("superseded_at", .instant(head.supersededAt)),
            ("places", .array(places.map(\.json))),
            ("attempts", .array(attempts.map { $0.json(decides: deciding.contains($0.id)) })),
            ("hook", hook?.json ?? .null), ("ends", .array(ends.map(\.json))),
            ("next", .array(WhatHappensNext.sentences(self).map(JSONText.string))),
        ])
    }
}

extension NotificationLife.Place {
    fileprivate var json: JSONText {
        .object([
            ("place", .string(lease == nil ? "queue" : "lease")), ("route", .string(service.route)),
            ("route_state", .string(service.state.rawValue)), ("lane", .string(service.lane)),
            ("lane_reason", .string(service.reason)), ("lane_until", .instant(service.until)),
            ("due_at", .instant(lease == nil ? at : nil)), ("leased_until", .instant(lease == nil ? nil : at)),
            ("batch", .identifier(lease?.batch)), ("claimed_at", .instant(lease?.claimedAt)),
            ("worker", .string(lease?.worker)), ("worker_state", .string(lease?.workerState.rawValue)),
            ("attempt", .int(attempt)), ("crashes", .int(crashes)),
        ])
    }
}

extension NotificationLife.End {
    fileprivate var json: JSONText {
        .object([
            ("at", .instant(at)), ("route", .string(route)), ("status", .string(status)), ("reason", .string(reason)),
        ])
    }
}
