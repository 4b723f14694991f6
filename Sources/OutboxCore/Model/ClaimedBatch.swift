/// A stretch of a claimed batch's text buffer.
package typealias TextRange = Range<Int32>

/// The rows that one claim moved into one lease. Position `p` of the lease (counted from 1) is `dispatches[p - 1]`.
package struct ClaimedBatch: Equatable, Sendable {
    /// The lease's name; the worker made it before it sent the claim.
    package let identifier: Identifier
    /// The route that all its rows wait for.
    package let route: RouteNumber
    /// The database's time in the claim.
    package let claimedAt: Timestamp
    /// The rows, in order of their position.
    package let dispatches: [ClaimedDispatch]
    /// The targets of all rows.
    package let targets: [ClaimedTarget]
    /// Tokens, payloads and keys, one after the other.
    package let text: [UInt8]
    private let positionOfTarget: [Int32]

    /// A batch as the claim answered it.
    package init(
        identifier: Identifier, route: RouteNumber, claimedAt: Timestamp, dispatches: [ClaimedDispatch],
        targets: [ClaimedTarget], text: [UInt8]
    ) {
        self.identifier = identifier
        self.route = route
        self.claimedAt = claimedAt
        self.dispatches = dispatches
        self.targets = targets
        self.text = text
        var positions: [Int32] = []
        positions.reserveCapacity(targets.count)
        for (index, dispatch) in dispatches.enumerated() {
            positions.append(contentsOf: repeatElement(Int32(index), count: dispatch.targets.count))
        }
        positionOfTarget = positions
    }

    /// The index in `dispatches` of the row that a target belongs to.
    package func index(ofTarget target: Int) -> Int {
        Int(positionOfTarget[target])
    }

    /// The row that a target belongs to.
    package func dispatch(ofTarget target: Int) -> ClaimedDispatch {
        dispatches[Int(positionOfTarget[target])]
    }

    /// The bytes of a text of this batch.
    package subscript(range: TextRange) -> ArraySlice<UInt8> {
        text[Int(range.lowerBound)..<Int(range.upperBound)]
    }
}
