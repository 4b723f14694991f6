/// Divides a claim among the shares that have work.
package enum FairShare {
    /// Rows per share, summing to at most `rows`: urgent shares first, but `bulkShare` percent are left to bulk ones
    /// when both have work; equal parts among the tenants of one urgency, the remainder to the first ones. What a share
    /// does not use goes round again with the next claim. A row that is bulk's in part is so when `draw`, from 0..<1,
    /// says so: over many claims of whatever size bulk has its percentage, neither less nor more.
    ///
    /// 10 rows, 20 %, urgent tenants 1 and 2, bulk tenant 1: 4, 4 and 2. 7 rows: one for bulk, and in four of ten
    /// claims a second one. 1 row: in two of ten.
    package static func divide(
        _ rows: Int, among shares: [Share], bulkShare: Int, draw: Double
    ) -> [(share: Share, rows: Int)] {
        let urgent = shares.filter { $0.urgency == 0 }
        let bulk = shares.filter { $0.urgency != 0 }
        guard !urgent.isEmpty, !bulk.isEmpty else { return split(rows, among: shares) }
        let hundredths = rows * bulkShare
        let forBulk = hundredths / 100 + (draw * 100 < Double(hundredths % 100) ? 1 : 0)
        return split(rows - forBulk, among: urgent) + split(forBulk, among: bulk)
    }

    private static func split(_ rows: Int, among shares: [Share]) -> [(share: Share, rows: Int)] {
        guard !shares.isEmpty else { return [] }
        let part = rows / shares.count
        let remainder = rows % shares.count
        return shares.enumerated().map { index, share in (share, part + (index < remainder ? 1 : 0)) }
            .filter { $0.rows > 0 }
    }
}
