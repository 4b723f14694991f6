/// How often a row's workers have died on it, as far as the claim cares: rows that survived a crash are claimed in
/// small batches, suspects alone and one at a time, so that a poison row never takes its neighbours along.
package enum CrashClass: Int16, CaseIterable, Sendable {
    /// No crash: batches of any size.
    case clean = 0
    /// One crash: batches of at most 32.
    case once = 1
    /// Two or more: alone, and only when the worker holds no other one.
    case suspect = 2

    /// The most rows that one claim of this class takes.
    package var batchLimit: Int {
        switch self {
        case .clean: .max
        case .once: 32
        case .suspect: 1
        }
    }
}
