import Glibc

extension EnvironmentFile {
    /// More than any environment can hold.
    private static let longest = 1 << 20

    /// Reads the file at `path`, at most 1 MiB of UTF-8.
    package static func read(_ path: String) throws(EnvironmentFileError) -> EnvironmentFile {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unreadable(path) }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var count = 1
        while count > 0, bytes.count <= longest {
            bytes += [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, filled in
                count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
                filled = max(0, count)
            }
        }
        if count < 0 { throw unreadable(path) }
        if bytes.count > longest { throw EnvironmentFileError(path: path, line: nil, what: "is larger than 1 MiB") }
        guard let text = String(validating: bytes, as: UTF8.self), !bytes.contains(0) else {
            throw EnvironmentFileError(path: path, line: nil, what: "is not UTF-8 text")
        }
        return try EnvironmentFile(path: path, text: text)
    }

    private static func unreadable(_ path: String) -> EnvironmentFileError {
        EnvironmentFileError(path: path, line: nil, what: "cannot be read: \(String(cString: strerror(errno)))")
    }
}
