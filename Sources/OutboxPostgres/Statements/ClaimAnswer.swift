import OutboxCore
import Postgres

/// Reads the answer of the claim into one batch: rows, targets, and one buffer for all texts, without an allocation per
/// row. Columns are those that `ClaimStatement` names, in its order.
struct ClaimAnswer {
    private let result: PostgresResult
    private var dispatches: [ClaimedDispatch] = []
    private var targets: [ClaimedTarget] = []
    private var text: [UInt8] = []

    /// An answer with at least one row.
    init(_ result: PostgresResult) {
        self.result = result
        dispatches.reserveCapacity(result.rowCount)
        targets.reserveCapacity(result.rowCount)
        text.reserveCapacity(result.rowCount * 512)
    }

    /// The batch; nil when nothing was claimed.
    static func batch(_ result: PostgresResult, of request: ClaimRequest) throws(PostgresError) -> ClaimedBatch? {
        guard result.rowCount > 0 else { return nil }
        var answer = ClaimAnswer(result)
        return try answer.read(request)
    }

    private mutating func read(_ request: ClaimRequest) throws(PostgresError) -> ClaimedBatch {
        var row = 0
        while row < result.rowCount {
            let position = try result.int2(row, 0)
            guard Int(position) == dispatches.count + 1 else {
                throw PostgresError(.decoding, operation: "claim", message: "positions do not follow one another")
            }
            let first = row
            let start = targets.count
            // What the targets share is read from the first of them: a device that is none comes without a payload.
            var source = row
            while row < result.rowCount, try result.int2(row, 0) == position {
                if try isTarget(row) {
                    if targets.count == start { source = row }
                    targets.append(try target(row))
                }
                row += 1
            }
            let cursor = PageCursor(rawValue: try result.int8(first, 8))
            let isFull = row - first >= request.targetsPerRow || cursor.isSecondLook
            let pageEnd = isFull && !result.isNull(row - 1, 18) ? try result.int8(row - 1, 18) : nil
            dispatches.append(
                try dispatch(source, cursor: cursor, pageEnd: pageEnd, targets: start..<targets.count))
        }
        return ClaimedBatch(
            identifier: request.batch, route: request.route, claimedAt: try result.instant(0, 25),
            dispatches: dispatches, targets: targets, text: text)
    }

    private func isTarget(_ row: Int) throws(PostgresError) -> Bool {
        guard !result.isNull(row, 18) else { return false }
        return try result.int2(row, 21) >= 0
    }

    private mutating func target(_ row: Int) throws(PostgresError) -> ClaimedTarget {
        ClaimedTarget(
            device: try result.int8(row, 18), token: try result.range(row, 19, in: &text),
            tokenSequence: try result.int4(row, 20), spentAttempts: try result.int2(row, 21),
            notesSuccess: try result.bool(row, 22))
    }

    private mutating func dispatch(
        _ row: Int, cursor: PageCursor, pageEnd: Int64?, targets: Range<Int>
    ) throws(PostgresError) -> ClaimedDispatch {
        guard let verdict = ClaimVerdict(rawValue: try result.int2(row, 9)) else {
            throw PostgresError(.decoding, operation: "claim", message: "an unknown verdict")
        }
        // An orphan has nothing but what the queue knew.
        let isOrphan = verdict == .orphan
        let dueAt = try result.instant(row, 4)
        let nobody = try result.textOrNil(row, 23).flatMap(SettlementReason.init)
        return ClaimedDispatch(
            notification: try result.identifier(row, 1),
            share: Share(urgency: try result.int2(row, 3), tenant: try result.int4(row, 2)), dueAt: dueAt,
            attempt: try result.int2(row, 5), crashes: try result.int2(row, 6), prior: try result.bool(row, 7),
            cursor: cursor, pageEnd: pageEnd, verdict: verdict,
            kind: isOrphan ? 0 : try result.int4(row, 10),
            createdAt: isOrphan ? dueAt : try result.instant(row, 11),
            expiresAt: isOrphan ? dueAt : try result.instant(row, 12),
            payload: try result.range(row, 13, in: &text), collapseKey: try result.range(row, 14, in: &text),
            thread: try result.range(row, 15, in: &text), instance: try result.range(row, 26, in: &text),
            badge: result.isNull(row, 16) ? nil : try result.int4(row, 16),
            silent: isOrphan ? false : try result.bool(row, 17),
            heldUntil: result.isNull(row, 24) ? nil : try result.instant(row, 24), nobody: nobody, targets: targets)
    }
}
