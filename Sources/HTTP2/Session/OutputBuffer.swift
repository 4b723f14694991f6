/// Bytes on their way to TLS. Filled frame by frame, written from the front, empty again before it is filled anew.
final class OutputBuffer {
    /// Enough is gathered for a write: four full TLS records.
    static let mark = 64 * 1024
    /// The largest frame a peer can ask us for by default, with its head, still fits behind the mark.
    private static let capacity = mark + 32 * 1024

    private let start = UnsafeMutablePointer<UInt8>.allocate(capacity: OutputBuffer.capacity)
    private var written = 0
    private var count = 0

    deinit {
        start.deallocate()
    }

    /// Whether there is nothing to write.
    var isEmpty: Bool { written == count }

    /// Whether more shall be written before more is added.
    var isFull: Bool { count >= Self.mark }

    /// What is to be written next.
    var front: UnsafePointer<UInt8> { UnsafePointer(start + written) }

    /// How much there is to write.
    var pending: Int { count - written }

    /// Adds a frame; the buffer must not be full.
    func append(_ bytes: UnsafePointer<UInt8>, count added: Int) {
        precondition(count + added <= Self.capacity, "a frame is larger than HTTP/2 lets the peer ask for")
        (start + count).update(from: bytes, count: added)
        count += added
    }

    /// Notes that `bytes` from the front are out.
    func consume(_ bytes: Int) {
        written += bytes
        if written == count {
            written = 0
            count = 0
        }
    }
}
