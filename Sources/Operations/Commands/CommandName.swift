/// The commands of `postbell`.
package enum CommandName: String, CaseIterable, Sendable {
    /// The worker.
    case dispatch
    /// Brings the schema up to date.
    case migrate
    /// How queue, workers and lanes are.
    case status
    /// The life of one notification.
    case show
    /// Attempts, filtered.
    case ledger
    /// Applies the retention policies.
    case retain
    /// Shows the effective configuration.
    case config
    /// The doctor.
    case check

    /// Whether it reads every setting, whatever command that is for.
    var readsAll: Bool { self == .config || self == .check }
}
