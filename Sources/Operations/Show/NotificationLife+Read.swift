import OutboxCore
import Postgres

extension NotificationLife {
    /// Most attempts that are read; a notification of that many is shown with its newest.
    private static let attemptLimit = 1000

    /// Finds the notification that `name`, an id or a dedupe key, stands for.
    static func find(
        _ name: String, tenant: String?, _ session: ReadingSession
    ) async throws(CommandFailure) -> Identifier {
        var found: [(id: Identifier, tenant: String)] = []
        if let id = Identifier(name) {
            var parameters = PostgresParameters()
            parameters.append(uuid: (id.high, id.low))
            parameters.append(textOrNil: tenant)
            found = try await session.rows(ShowStatements.byIdentifier, parameters, Self.match)
        }
        if found.isEmpty {
            var parameters = PostgresParameters()
            parameters.append(name)
            parameters.append(textOrNil: tenant)
            found = try await session.rows(ShowStatements.byKey, parameters, Self.match)
        }
        guard let first = found.first else {
            throw session.bad(
                "there is no notification \(QuotedText.quote(name))"
                    + (tenant.map { " of tenant \(QuotedText.quote($0))" } ?? ""),
                next: "give the id that the insert returned, or the dedupe key as its producer wrote it")
        }
        guard found.count == 1 else {
            let tenants = found.prefix(10).map { QuotedText.quote($0.tenant) }.joined(separator: ", ")
            throw CommandFailure(
                .usage, what: "\(found.count) tenants have a notification of the key \(QuotedText.quote(name))",
                place: "command line", next: "add --tenant, one of " + tenants + (found.count > 10 ? " and others" : "")
            )
        }
        return first.id
    }

    private static func match(_ row: inout RowReader) throws(PostgresError) -> (id: Identifier, tenant: String) {
        (try row.identifier(), try row.text())
    }

    /// Reads the life of a notification that was found in the same snapshot.
    static func read(
        _ id: Identifier, _ session: ReadingSession, now: Timestamp
    ) async throws(CommandFailure) -> NotificationLife {
        var parameters = PostgresParameters()
        parameters.append(uuid: (id.high, id.low))
        let heads = try await session.rows(ShowStatements.head, parameters) { row throws(PostgresError) in
            (head: try Head(&row), workerIsAlive: try row.bool())
        }
        guard let (head, workerIsAlive) = heads.first else {
            throw session.bad("notification \(id) is gone", next: "look for it again")
        }
        var life = NotificationLife(now: now, stuckAfter: session.stuckAfter, head: head, workerIsAlive: workerIsAlive)
        life.places = try await session.rows(ShowStatements.places, parameters) { row throws(PostgresError) in
            try Place(&row)
        }
        let ledger = LedgerStatement.command(
            LedgerFilter(notification: id, limit: attemptLimit), device: nil, now: now)
        life.attempts = try await session.rows(ledger.statement, ledger.parameters) { row throws(PostgresError) in
            try LedgerEntry(&row)
        }.reversed()
        life.deciding = Set(
            try await session.rows(ShowStatements.deciding, parameters) { row throws(PostgresError) in
                try row.identifier()
            })
        life.ends = try await session.rows(ShowStatements.ends, parameters) { row throws(PostgresError) in
            End(at: try row.instant(), route: try row.textOrNil(), status: try row.text(), reason: try row.text())
        }
        life.hook = try await session.rows(ShowStatements.hook, parameters) { row throws(PostgresError) in
            try HookStatus(&row)
        }.first
        return life
    }
}

extension NotificationLife.Head {
    fileprivate init(_ row: inout RowReader) throws(PostgresError) {
        id = try row.identifier()
        tenant = try row.text()
        principal = try row.text()
        kind = try row.text()
        dedupeKey = try row.text()
        subject = try row.textOrNil()
        thread = try row.textOrNil()
        urgency = try row.text()
        isSilent = try row.bool()
        onlyDevice = try row.identifierOrNil()
        exceptDevice = try row.identifierOrNil()
        createdAt = try row.instant()
        plannedAt = try row.instant()
        notBefore = try row.instantOrNil()
        expiresAt = try row.instant()
        status = try row.text()
        reason = try row.textOrNil()
        settledAt = try row.instantOrNil()
        supersededAt = try row.instantOrNil()
    }
}

extension NotificationLife.Place {
    fileprivate init(_ row: inout RowReader) throws(PostgresError) {
        routeNumber = try row.int2()
        service = try RouteStatus(&row)
        at = try row.instant()
        attempt = try row.int2()
        crashes = try row.int2()
        let batch = try row.identifierOrNil()
        let claimedAt = try row.instantOrNil()
        let worker = try row.textOrNil()
        let state = try row.textOrNil()
        let heartbeatAt = try row.instantOrNil()
        if let batch, let claimedAt {
            lease = NotificationLife.Lease(
                batch: batch, claimedAt: claimedAt, worker: worker,
                workerState: state.flatMap(WorkerStatus.State.init) ?? .dead, heartbeatAt: heartbeatAt)
        }
    }
}
