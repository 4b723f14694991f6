import CLinux
import Glibc

/// The process's environment.
package enum ProcessEnvironment {
    /// All variables. Bytes that are no UTF-8 are replaced, which no setting accepts.
    package static func variables() -> [String: String] {
        var variables: [String: String] = [:]
        var entry = clinux_environment()
        while let pointer = entry?.pointee {
            let parts = String(cString: pointer).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2 { variables[String(parts[0])] = String(parts[1]) }
            entry = entry?.successor()
        }
        return variables
    }

    /// Adds variables for libraries that read the environment themselves. Only at start, before a second thread could
    /// be reading: nothing guards the environment.
    static func add(_ variables: [String: String]) {
        for (name, value) in variables { setenv(name, value, 1) }
    }
}
