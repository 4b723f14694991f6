import Glibc

/// Writes whole lines to a descriptor without holding up its caller: a reader that does not read costs lines, not time.
///
/// The descriptor keeps its flags (others that share it do not expect `O_NONBLOCK`):
/// writability is asked for first, and a line fits into a writable pipe (see `LineEncoder.longestLine`).
struct LineOutput {
    /// How long one line waits for a reader that has just fallen behind. Later ones do not, until one got through.
    static let longestWait: Duration = .milliseconds(20)

    private let descriptor: Int32
    private let isSocket: Bool
    /// The rest of a line that went out in part.
    private var rest: ArraySlice<UInt8> = []
    private var isStalled = false
    /// Lines given up since the last one that got through.
    private(set) var dropped = 0

    init(descriptor: Int32) {
        self.descriptor = descriptor
        var kind = stat()
        isSocket = fstat(descriptor, &kind) == 0 && kind.st_mode & S_IFMT == S_IFSOCK
    }

    /// Writes `line`, or counts it as dropped. Before the first line after a loss goes `notice` of how many were lost.
    mutating func write(_ line: [UInt8], notice: (_ dropped: Int) -> [UInt8]) {
        if dropped > 0, send(notice(dropped)[...]) { dropped = 0 }
        if dropped > 0 || !send(line[...]) { dropped += 1 }
    }

    /// Whether `bytes` are out, or will be: what the descriptor did not take of them goes out before the next ones.
    private mutating func send(_ bytes: ArraySlice<UInt8>) -> Bool {
        if !rest.isEmpty, let count = put(rest) { rest = rest.dropFirst(count) }
        guard rest.isEmpty, let count = put(bytes) else { return false }
        rest = bytes.dropFirst(count)
        return true
    }

    /// How many of `bytes` the descriptor took, or nil when it takes none.
    private mutating func put(_ bytes: ArraySlice<UInt8>) -> Int? {
        guard isWritable() else {
            isStalled = true
            return nil
        }
        let flags = Int32(MSG_DONTWAIT | MSG_NOSIGNAL)
        let written = bytes.withUnsafeBytes { buffer in
            isSocket
                ? Glibc.send(descriptor, buffer.baseAddress, buffer.count, flags)
                : Glibc.write(descriptor, buffer.baseAddress, buffer.count)
        }
        isStalled = written <= 0
        return written > 0 ? written : nil
    }

    private func isWritable() -> Bool {
        var poll = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        let wait = isStalled ? 0 : Int32(Self.longestWait.components.attoseconds / 1_000_000_000_000_000)
        // A reader that is gone (POLLERR) is reported by the write itself.
        return Glibc.poll(&poll, 1, wait) > 0
    }
}
