/// How much an event matters; the order of the cases is the order of importance.
package enum LogLevel: String, CaseIterable, Comparable, Sendable {
    /// One line per row or exchange: for finding a fault.
    case debug
    /// One line per batch or decision.
    case info
    /// A change of state that an operator wants to see in a quiet log: start, stop, a lane that is back.
    case notice
    /// Something is wrong outside, and the worker copes.
    case warning
    /// Something needs a person.
    case error

    /// The syslog severity (RFC 5424, table 2) that journald reads from a `<N>` prefix.
    package var priority: Int {
        switch self {
        case .debug: 7
        case .info: 6
        case .notice: 5
        case .warning: 4
        case .error: 3
        }
    }

    package static func < (left: LogLevel, right: LogLevel) -> Bool {
        left.priority > right.priority
    }
}
