import Glibc

/// A file that holds a private key. Each `read` opens it anew, so a key can be rotated while the process runs.
///
/// The file is opened once and judged by that descriptor (`fstat`), never by its name a second time, so it cannot be
/// exchanged between the check and the read.
package struct KeyFile: Equatable, Sendable {
    /// The path as it was configured.
    package let path: String
    /// `$CREDENTIALS_DIRECTORY` of the process, or nil where systemd set none.
    package let credentialsDirectory: String?

    /// Largest file that is read, in bytes; a PKCS#8 key of any kind in use is below 4 KiB.
    package static let sizeLimit = 16 * 1024

    /// Names a file; nothing is opened yet.
    package init(path: String, credentialsDirectory: String?) {
        self.path = path
        self.credentialsDirectory = credentialsDirectory
    }

    /// What the system says about the file, after its kind, owner, permissions and size were found in order. Reads
    /// nothing of it.
    package func inspect() throws(KeyFileError) -> FileFacts {
        let (descriptor, facts) = try openJudged()
        close(descriptor)
        return facts
    }

    /// The file's bytes, after its kind, owner, permissions and size were found in order.
    package func read() throws(KeyFileError) -> SecretBytes {
        let descriptor = try openJudged().descriptor
        defer { close(descriptor) }
        let bytes = try SecretBytes(capacity: Self.sizeLimit + 1) { room throws(KeyFileError) in
            try fill(room, from: descriptor)
        }
        // The file can have changed since `fstat`; what was read is what counts.
        if bytes.count == 0 { throw failure(.empty) }
        if bytes.count > Self.sizeLimit { throw failure(.tooLarge(bytes: bytes.count)) }
        return bytes
    }

    private func openJudged() throws(KeyFileError) -> (descriptor: Int32, facts: FileFacts) {
        let (descriptor, place) = try open()
        do throws(KeyFileError) {
            var status = stat()
            guard fstat(descriptor, &status) == 0 else { throw failure(.unreadable(errno: errno)) }
            let facts = FileFacts(status)
            if let problem = facts.problem(at: place, user: geteuid(), groups: Self.processGroups()) {
                throw failure(problem)
            }
            return (descriptor, facts)
        } catch {
            close(descriptor)
            throw error
        }
    }

    private func fill(
        _ room: UnsafeMutableRawBufferPointer, from descriptor: Int32
    ) throws(KeyFileError) -> Int {
        var filled = 0
        while filled < room.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: room[filled...])
            let count = Glibc.read(descriptor, rest.baseAddress, rest.count)
            if count == 0 { break }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { throw failure(.unreadable(errno: errno)) }
            filled += count
        }
        return filled
    }

    private func open() throws(KeyFileError) -> (descriptor: Int32, place: FileFacts.Place) {
        // O_NONBLOCK: opening a pipe that nobody writes must not hang; it has no effect on a regular file.
        let flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
        let direct = Glibc.open(path, flags)
        if direct >= 0 {
            let below = Self.resolved(path).map(isBelowCredentialsDirectory) ?? false
            return (direct, below ? .credentialsDirectory : .plain)
        }
        guard errno == ELOOP else { throw openFailure(errno) }
        guard let target = Self.resolved(path) else { throw failure(.linkLeadsElsewhere) }
        let below = isBelowCredentialsDirectory(target)
        guard below || Self.isBelow(target, Self.directory(of: path)) else { throw failure(.linkLeadsElsewhere) }
        let linked = Glibc.open(target, flags)
        guard linked >= 0 else { throw openFailure(errno) }
        return (linked, below ? .credentialsDirectory : .linkedMount)
    }

    private func openFailure(_ number: Int32) -> KeyFileError {
        switch number {
        case ENOENT, ENOTDIR: failure(.missing)
        case ENXIO: failure(.notRegular)
        default: failure(.unreadable(errno: number))
        }
    }

    private func failure(_ problem: KeyFileError.Problem) -> KeyFileError {
        KeyFileError(path: path, problem: problem)
    }

    private func isBelowCredentialsDirectory(_ target: String) -> Bool {
        guard let credentialsDirectory, !credentialsDirectory.isEmpty else { return false }
        return Self.isBelow(target, credentialsDirectory)
    }

    /// Whether the resolved path `target` lies below `directory`, wherever that is once its own links are followed.
    private static func isBelow(_ target: String, _ directory: String) -> Bool {
        guard let directory = resolved(directory) else { return false }
        return target.hasPrefix(directory.hasSuffix("/") ? directory : directory + "/")
    }

    private static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    private static func resolved(_ path: String) -> String? {
        guard let found = realpath(path, nil) else { return nil }
        defer { free(found) }
        return String(cString: found)
    }

    private static func processGroups() -> [UInt32] {
        let count = getgroups(0, nil)
        guard count > 0 else { return [getegid()] }
        var groups = [gid_t](repeating: 0, count: Int(count))
        let filled = getgroups(count, &groups)
        return Array(groups.prefix(max(0, Int(filled)))) + [getegid()]
    }
}
