import OutboxCore

/// The catalog's kinds, and the hooks of one of them: see `HookStatement` and migration 0012.
extension SimulatedStore {
    /// Without hooks, and of no matter who has seen it.
    static let plainKind: KindNumber = 1
    /// It ends when its principal has seen its subject.
    static let seenKind: KindNumber = 2
    /// Its hooks are asked before it is sent.
    static let hookedKind: KindNumber = 3
    static let kindsThatEndWhenSeen: Set<KindNumber> = [seenKind]

    /// What a worker knows of the kinds.
    static let kinds = [(plainKind, "note"), (seenKind, "reminder"), (hookedKind, "guarded")].map {
        Kind(number: $0, name: $1, presentation: .raw)
    }

    /// Sets a hook of the hooked kind, or takes it away.
    mutating func setHook(_ purpose: HookPurpose, _ isSet: Bool) {
        hooks.removeAll { $0.purpose == purpose }
        guard isSet else { return }
        hooks.append(KindHook(kind: "guarded", purpose: purpose, timeout: .seconds(2)))
        hooks.sort { $0.purpose.rawValue < $1.purpose.rawValue }
    }

    /// Asks hooks one after the other about notifications.
    func ask(_ asked: [KindHook], about notifications: [Identifier]) throws(HookFault) -> [HookReply] {
        var replies: [HookReply] = []
        for hook in asked {
            guard hooks.contains(where: { $0.purpose == hook.purpose }) else {
                throw HookFault(hook.purpose, .removed, sqlState: "PB204")
            }
            if app.raises == hook.purpose { throw HookFault(hook.purpose, .raised, sqlState: "P0001") }
            let rows = notifications.compactMap { notification($0) }.filter(\.isVisible)
            var answer: [Identifier?] = rows.filter { app.names($0, for: hook.purpose) }.map(\.identifier)
            // A function that nothing is asked about is not called.
            if app.mixesUp == hook.purpose, !rows.isEmpty { answer.append(Identifier(high: 0xF0, low: 0xF0)) }
            replies.append(HookReply(hook.purpose, answer))
        }
        return replies
    }
}

/// The app whose hooks are asked: what it knows, and what it does wrong.
struct HookedApp {
    /// Subjects that are over, though nobody superseded them.
    var overSubjects: Set<String> = []
    /// Principals who may not see anything any more.
    var barred: Set<String> = []
    /// The hook that raises an error.
    var raises: HookPurpose?
    /// The hook that answers ids it was not asked about.
    var mixesUp: HookPurpose?

    /// Whether a hook's answer names a notification.
    func names(_ row: NotificationRow, for purpose: HookPurpose) -> Bool {
        switch purpose {
        case .stale: row.subject.map(overSubjects.contains) ?? false
        case .access: !barred.contains(row.principal)
        }
    }
}
