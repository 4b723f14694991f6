/// The name of a target in flight: the slot of its lease and its index there, as the transport's tag.
package struct AttemptTag: Equatable, Sendable {
    /// The slot of the lease.
    package let slot: Int
    /// The target's index in the claimed batch.
    package let target: Int

    /// The tag of one target.
    package init(slot: Int, target: Int) {
        self.slot = slot
        self.target = target
    }

    /// The tag that a transport brought back.
    package init(number: UInt64) {
        slot = Int(number >> 32)
        target = Int(number & 0xFFFF_FFFF)
    }

    /// The tag as the transport carries it.
    package var number: UInt64 { UInt64(slot) << 32 | UInt64(target) }
}
