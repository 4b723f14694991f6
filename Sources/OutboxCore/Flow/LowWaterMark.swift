/// How far a claim has read a share: rows before it were taken, so the next claim starts behind the dead entries.
package struct LowWaterMark: Comparable, Sendable {
    /// Due instant of the last row taken.
    package let dueAt: Timestamp
    /// Its notification, which breaks ties.
    package let notification: Identifier

    /// A mark behind one row.
    package init(dueAt: Timestamp, notification: Identifier) {
        self.dueAt = dueAt
        self.notification = notification
    }

    package static func < (left: LowWaterMark, right: LowWaterMark) -> Bool {
        left.dueAt == right.dueAt ? left.notification < right.notification : left.dueAt < right.dueAt
    }

    /// Before every row: a full scan of the share.
    package static let start = LowWaterMark(
        dueAt: Timestamp(microseconds: -210_866_803_200_000_000), notification: Identifier(high: 0, low: 0))
}
