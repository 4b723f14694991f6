import Glibc

/// What the system says about an open file, as far as it decides whether a key in it is private.
package struct FileFacts: Equatable, Sendable {
    /// How the file was reached, which decides what its permissions may be.
    package enum Place: Equatable, Sendable {
        /// Named directly: for its owner alone.
        case plain
        /// Below `$CREDENTIALS_DIRECTORY`: systemd has arranged access, and shows its files as 0440.
        case credentialsDirectory
        /// Through symbolic links that stay within the file's directory, as Kubernetes mounts secrets: a group of this
        /// process may read it.
        case linkedMount
    }

    /// The bits of `st_mode`: kind of file and permissions.
    package let mode: UInt32
    /// User id of the owner.
    package let owner: UInt32
    /// Group id of the file.
    package let group: UInt32
    /// Size in bytes.
    package let size: Int

    /// Facts as given; tests make their own.
    package init(mode: UInt32, owner: UInt32, group: UInt32, size: Int) {
        self.mode = mode
        self.owner = owner
        self.group = group
        self.size = size
    }

    init(_ status: stat) {
        self.init(mode: status.st_mode, owner: status.st_uid, group: status.st_gid, size: Int(status.st_size))
    }

    /// What forbids to take a key from this file, or nil if nothing does.
    ///
    /// `user` and `groups` are the ids that the process runs under.
    package func problem(at place: Place, user: UInt32, groups: [UInt32]) -> KeyFileError.Problem? {
        guard mode & S_IFMT == S_IFREG else { return .notRegular }
        switch place {
        case .credentialsDirectory:
            break
        case .plain, .linkedMount:
            guard owner == user || owner == 0 else { return .foreignOwner(uid: owner) }
            let groupMayRead = place == .linkedMount && groups.contains(group)
            let forbidden: UInt32 = groupMayRead ? 0o037 : 0o077
            guard mode & forbidden == 0 else { return .exposed(mode: mode & 0o7777) }
        }
        if size == 0 { return .empty }
        return size > KeyFile.sizeLimit ? .tooLarge(bytes: size) : nil
    }
}
