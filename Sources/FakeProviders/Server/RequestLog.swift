import Glibc

/// Lines of JSON about requests, written before the answers that they report can be seen.
final class RequestLog {
    private let descriptor: Int32
    private let closes: Bool
    private var pending: [UInt8] = []

    /// Written as soon as this much has gathered, in bytes; otherwise at the end of the turn.
    private static let gatherLimit = 256 * 1024

    /// Opens the log; nil for none.
    init?(_ target: RequestLogTarget) throws(FakeServerError) {
        switch target {
        case .none:
            return nil
        case .standardOutput:
            descriptor = STDOUT_FILENO
            closes = false
        case .file(let path):
            // Readable for its owner alone: device tokens and payloads stand in it.
            descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0o600)
            closes = true
            guard descriptor >= 0 else { throw .file(path: path, errno: errno) }
        }
    }

    deinit {
        flush()
        if closes { close(descriptor) }
    }

    /// Lets `write` append the inside of an object, and ends the line.
    func line(_ write: (inout [UInt8]) -> Void) {
        pending.append(UInt8(ascii: "{"))
        write(&pending)
        pending.append(UInt8(ascii: "}"))
        pending.append(UInt8(ascii: "\n"))
        if pending.count >= Self.gatherLimit { flush() }
    }

    /// Writes what has gathered. A full disk loses lines rather than answers.
    func flush() {
        var written = 0
        while written < pending.count {
            let count = pending.withUnsafeBytes { bytes in
                Glibc.write(descriptor, bytes.baseAddress.map { $0 + written }, bytes.count - written)
            }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { break }
            written += count
        }
        pending.removeAll(keepingCapacity: true)
    }
}
