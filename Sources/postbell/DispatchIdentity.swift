import Glibc

/// What the ledger and the registry call this worker.
enum DispatchIdentity {
    /// `host/pid`: where to look for its log.
    static func workerName() -> String {
        var host = [CChar](repeating: 0, count: 256)
        guard gethostname(&host, host.count - 1) == 0 else { return "unknown/\(getpid())" }
        let name = host.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        return "\(String(decoding: name, as: UTF8.self))/\(getpid())"
    }
}
