import OutboxCore

extension NotificationLife {
    /// The life for people.
    func text(for terminal: Terminal) -> String {
        var parts = [facts(terminal)]
        if !places.isEmpty { parts.append(placeTable(terminal)) }
        if !attempts.isEmpty { parts.append(attemptTable(terminal)) }
        if !ends.isEmpty { parts.append(endTable(terminal)) }
        parts.append(
            terminal.paint("WHAT HAPPENS NEXT", .bold) + "\n"
                + WhatHappensNext.sentences(self).map { terminal.wrapped(QuotedText.line($0)) + "\n" }.joined())
        return parts.joined(separator: "\n")
    }

    private func facts(_ terminal: Terminal) -> String {
        var facts: [(String, String?)] = [
            ("notification", head.id.description), ("status", head.status + (head.reason.map { ", \($0)" } ?? "")),
            ("for", "\(head.principal) (tenant \(head.tenant))"),
            ("kind", "\(head.kind), \(head.urgency)\(head.isSilent ? ", silent" : "")"), ("key", head.dedupeKey),
            ("subject", head.subject), ("thread", head.thread),
            ("only to", head.onlyDevice?.description), ("not to", head.exceptDevice?.description),
            ("created", TimeText.withDistance(head.createdAt, now: now)),
            ("planned", TimeText.withDistance(head.plannedAt, now: now)),
            ("deadline", TimeText.withDistance(head.expiresAt, now: now)),
        ]
        if places.isEmpty {
            facts.append(("ended", head.settledAt.map { TimeText.withDistance($0, now: now) }))
        }
        let width = facts.map(\.0.count).max() ?? 0
        return facts.compactMap { name, value in
            value.map { value in
                let label = name + String(repeating: " ", count: width - name.count)
                return "\(terminal.paint(label, .dim))  \(QuotedText.line(value))\n"
            }
        }.joined()
    }

    private func placeTable(_ terminal: Terminal) -> String {
        var table = TableFormatter("WHERE", "ROUTE", "ROUTE IS", "UNTIL", "BY", "ATTEMPT", "CRASHES")
        for place in places {
            table.append(
                place.lease == nil ? "queue" : "lease", place.service.route, place.service.state.rawValue,
                TimeText.withDistance(place.at, now: now), place.lease.map { $0.worker ?? "?" } ?? "-",
                String(place.attempt), String(place.crashes))
        }
        return table.text(for: terminal)
    }

    private func attemptTable(_ terminal: Terminal) -> String {
        var table = TableFormatter("TRY", "DEVICE", "WHEN (UTC)", "AGE", "OUTCOME", "ANSWER", "TOOK", "THEN", "BY")
        for entry in attempts {
            table.append(
                String(entry.attempt), entry.deviceTitle, String(TimeText.absolute(entry.instant).dropLast(3)),
                TimeText.distance(from: entry.instant, to: now), entry.outcome, entry.answer,
                entry.duration.map(TimeText.length) ?? "-", entry.consequence, entry.worker ?? "-")
        }
        return table.text(for: terminal)
    }

    private func endTable(_ terminal: Terminal) -> String {
        var table = TableFormatter("ENDED", "ROUTE", "AS", "REASON")
        for end in ends {
            table.append(TimeText.withDistance(end.at, now: now), end.route ?? "all of it", end.status, end.reason)
        }
        return table.text(for: terminal)
    }
}
