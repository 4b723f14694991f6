/// The name of a target in flight: the slot of its lease and its index there, and the access token that its request
/// carries, as the transport's tag.
package struct AttemptTag: Equatable, Sendable {
    /// The slot of the lease.
    package let slot: Int
    /// The target's index in the claimed batch.
    package let target: Int
    /// The mark of the request's access token, by which an answer that calls a token too old is told from one that
    /// speaks of the token before; 0 where no request was made.
    package let tokenMark: UInt8

    /// The tag of one target.
    package init(slot: Int, target: Int, tokenMark: UInt8 = 0) {
        self.slot = slot
        self.target = target
        self.tokenMark = tokenMark
    }

    /// The tag that a transport brought back.
    package init(number: UInt64) {
        tokenMark = UInt8(number >> 56)
        slot = Int(number >> 32 & 0xFF_FFFF)
        target = Int(number & 0xFFFF_FFFF)
    }

    /// The tag as the transport carries it.
    package var number: UInt64 { UInt64(tokenMark) << 56 | UInt64(slot) << 32 | UInt64(target) }
}
