/// A key file was not accepted. Says which file, what is wrong and what to do; never a byte of its content.
package struct KeyFileError: Error, Equatable, CustomStringConvertible {
    /// The closed list of what can be wrong with a key file.
    package enum Problem: Equatable, Sendable {
        /// Nothing is there.
        case missing
        /// The system refused to open or read it; the number is `errno`.
        case unreadable(errno: Int32)
        /// A directory, a pipe, a socket or a device.
        case notRegular
        /// A symbolic link that leads out of its own directory, or whose target cannot be found.
        case linkLeadsElsewhere
        /// Owned by an account that is neither root nor the one that runs the process.
        case foreignOwner(uid: UInt32)
        /// Group or others may read or write it; the number is the permission bits.
        case exposed(mode: UInt32)
        /// No byte in it.
        case empty
        /// Larger than any key.
        case tooLarge(bytes: Int)
    }

    /// The path as it was configured.
    package let path: String
    /// What is wrong.
    package let problem: Problem

    /// A refusal of the file at `path`.
    package init(path: String, problem: Problem) {
        self.path = path
        self.problem = problem
    }

    package var description: String {
        "key file \(path) \(complaint); \(advice)"
    }

    /// What is wrong, as it reads behind the name of the file.
    package var complaint: String {
        switch problem {
        case .missing: "does not exist"
        case .unreadable(let errno): "cannot be read (errno \(errno))"
        case .notRegular: "is not a regular file"
        case .linkLeadsElsewhere: "is a symbolic link that leads out of its directory"
        case .foreignOwner(let uid): "is owned by user id \(uid)"
        case .exposed(let mode): "has mode 0\(String(mode, radix: 8)), so others can read or change it"
        case .empty: "is empty"
        case .tooLarge(let bytes): "has \(bytes) bytes, more than any key"
        }
    }

    /// What to do about it.
    package var advice: String {
        switch problem {
        case .missing: "check the configured path"
        case .unreadable: "make it readable for the account that runs this process"
        case .notRegular: "name the file that holds the key itself"
        case .linkLeadsElsewhere: "name the file itself, or link within one mounted directory"
        case .foreignOwner: "make the account that runs this process, or root, its owner"
        case .exposed: "allow its owner alone to read it (chmod 600), or hand it over by systemd's LoadCredential"
        case .empty, .tooLarge: "put the key in it as it was downloaded (PEM, PKCS#8)"
        }
    }
}
