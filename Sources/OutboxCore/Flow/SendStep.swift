/// What a lane does next with the targets it holds.
package enum SendStep: Equatable, Sendable {
    /// Send these targets of the lease in this slot.
    case send(slot: Int, targets: ArraySlice<Int32>)
    /// Check these targets again first: all that the lease has not sent.
    case check(slot: Int, targets: ArraySlice<Int32>)
    /// Nothing can be sent now.
    case none
}
