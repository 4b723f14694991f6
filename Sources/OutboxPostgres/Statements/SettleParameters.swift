import OutboxCore
import Postgres

/// The parameters of the settle, written into buffers whose memory serves one flush after the other.
struct SettleParameters {
    private var identifiers = PostgresArray(of: .uuid)
    private var notifications = PostgresArray(of: .uuid)
    private var devices = PostgresArray(of: .int8)
    private var tokenSequences = PostgresArray(of: .int4)
    private var tenants = PostgresArray(of: .int4)
    private var attempts = PostgresArray(of: .int2)
    private var outcomes = PostgresArray(of: .int2)
    private var finals = PostgresArray(of: .bool)
    private var waits = PostgresArray(of: .int8)
    private var statuses = PostgresArray(of: .int2)
    private var reasons = PostgresArray(of: .text)
    private var providerIdentifiers = PostgresArray(of: .text)
    private var attemptInstants = PostgresArray(of: .timestamptz)
    private var answerTimes = PostgresArray(of: .int4)
    private var values = PostgresParameters()

    /// Nothing yet.
    init() {}

    /// The values for one flush.
    mutating func encode(_ flush: Settlement, owner: Identifier, worker: Int32) -> PostgresParameters {
        removeAll()
        values.append(flush.batch)
        values.append(owner)
        values.append(flush.route)
        var mask = PostgresBits(repeating: false, count: flush.positions)
        for position in flush.leaving { mask[Int(position) - 1] = true }
        values.append(mask)
        values.append(worker)
        for row in flush.ledger { append(row) }
        values.append(identifiers)
        values.append(notifications)
        for array in [devices, tokenSequences, tenants, attempts, outcomes] { values.append(array) }
        for array in [finals, waits, statuses, reasons, providerIdentifiers] { values.append(array) }
        values.append(attemptInstants)
        values.append(answerTimes)
        appendReturns(flush.returns)
        appendEnds(flush.ends)
        return values
    }

    private mutating func removeAll() {
        identifiers.removeAll()
        notifications.removeAll()
        devices.removeAll()
        tokenSequences.removeAll()
        tenants.removeAll()
        attempts.removeAll()
        outcomes.removeAll()
        finals.removeAll()
        waits.removeAll()
        statuses.removeAll()
        reasons.removeAll()
        providerIdentifiers.removeAll()
        attemptInstants.removeAll()
        answerTimes.removeAll()
        values.removeAll()
    }

    private mutating func append(_ row: LedgerRow) {
        identifiers.append(row.identifier)
        notifications.append(row.notification)
        devices.append(row.device)
        tokenSequences.append(row.tokenSequence)
        tenants.append(row.tenant)
        attempts.append(row.attempt)
        outcomes.append(row.outcome.kind.rawValue)
        finals.append(row.isFinal)
        appendRare(row)
        if row.outcome.status == 0 { statuses.appendNull() } else { statuses.append(row.outcome.status) }
        attemptInstants.append(row.attemptedAt)
        if let answered = row.answeredAt {
            answerTimes.append(Int32(clamping: (answered - row.attemptedAt).wholeMicroseconds))
        } else {
            answerTimes.appendNull()
        }
    }

    /// What most rows do not have: its arrays end with the last row that does, for `unnest` fills up what is shorter.
    /// A flush without any costs the database about 4 % less.
    private mutating func appendRare(_ row: LedgerRow) {
        let before = identifiers.count - 1
        if let wait = row.retryAfter {
            waits.appendNulls(upTo: before)
            waits.append(milliseconds(wait))
        }
        if !row.outcome.reason.isEmpty {
            reasons.appendNulls(upTo: before)
            reasons.append(row.outcome.reason)
        }
        // The view puts the notification's own id in where nothing else was answered.
        switch row.outcome.providerIdentifier {
        case .uuid(let given) where given != row.notification:
            providerIdentifiers.appendNulls(upTo: before)
            providerIdentifiers.append(given.description)
        case .text(let given):
            providerIdentifiers.appendNulls(upTo: before)
            providerIdentifiers.append(given)
        case .uuid, nil: break
        }
    }

    private mutating func appendReturns(_ returns: [QueueReturn]) {
        var positions = PostgresArray(of: .int2, capacity: returns.count)
        var waits = PostgresArray(of: .int8, capacity: returns.count)
        var attempts = PostgresArray(of: .int2, capacity: returns.count)
        var cursors = PostgresArray(of: .int8, capacity: returns.count)
        var clears = PostgresArray(of: .bool, capacity: returns.count)
        for row in returns {
            positions.append(row.position)
            waits.append(milliseconds(row.delay))
            attempts.append(row.attempt)
            cursors.append(row.cursor.rawValue)
            clears.append(row.clearsCrashes)
        }
        for array in [positions, waits, attempts, cursors, clears] { values.append(array) }
    }

    private mutating func appendEnds(_ ends: [PositionEnd]) {
        var positions = PostgresArray(of: .int2, capacity: ends.count)
        var statuses = PostgresArray(of: .text, capacity: ends.count)
        var reasons = PostgresArray(of: .text, capacity: ends.count)
        var wholes = PostgresArray(of: .bool, capacity: ends.count)
        for end in ends {
            positions.append(end.position)
            statuses.append(end.status.name)
            reasons.append(end.reason.rawValue)
            wholes.append(end.wholeNotification)
        }
        for array in [positions, statuses, reasons, wholes] { values.append(array) }
    }

    private func milliseconds(_ duration: Duration) -> Int64 {
        // Rounded up: a wait is never shorter than what a policy or a provider asked for.
        (duration.wholeMicroseconds + 999) / 1000
    }
}
