/// A stretch of a batch's buffer. Requests and responses hold slices instead of arrays of their own, so that a push
/// costs no allocation.
package struct ByteSlice: Equatable, Sendable {
    /// First byte, counted from the start of the buffer.
    package let start: Int32
    /// Number of bytes; 0 for an absent value.
    package let count: Int32

    /// A slice of `count` bytes from `start`.
    package init(start: Int, count: Int) {
        self.start = Int32(start)
        self.count = Int32(count)
    }

    /// No bytes at all.
    package static let empty = ByteSlice(start: 0, count: 0)

    /// Whether the slice holds no byte.
    package var isEmpty: Bool { count == 0 }

    /// The slice as indices of its buffer.
    package var indices: Range<Int> { Int(start)..<Int(start) + Int(count) }
}
