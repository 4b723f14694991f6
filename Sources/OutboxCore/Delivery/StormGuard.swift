/// The guard against taking a fault of the whole for many faults of single devices: when so many answers speak against
/// tokens, the configuration is more likely to be wrong than all of them; when so many targets are throttled, the
/// provider means the sender.
package struct StormGuard: Equatable, Sendable {
    /// Share of all answers, in percent, that must be exceeded.
    package var share = 20
    /// Number of such answers that must be exceeded.
    package var count = 20
    /// Length of the window that is looked at.
    package var window: Duration = .seconds(300)

    /// The defaults: more than 20 answers and more than 20 % of all within 5 minutes.
    package init() {}

    /// Whether one more answer against a token would be one too many.
    package func tripsByTokens(_ counts: AnswerWindow.Counts) -> Bool {
        isTooMuch(counts.tokenFaults, of: counts)
    }

    /// Whether one more throttled target means that all of them are.
    package func tripsByThrottling(_ counts: AnswerWindow.Counts) -> Bool {
        isTooMuch(counts.throttled, of: counts)
    }

    private func isTooMuch(_ counted: Int, of counts: AnswerWindow.Counts) -> Bool {
        // The answer that is being judged is not counted yet.
        counted + 1 > count && (counted + 1) * 100 > (counts.answers + 1) * share
    }

    /// Whether the provider itself is well, so that a failure says something about its device: below the same share.
    package func isHealthy(_ counts: AnswerWindow.Counts) -> Bool {
        counts.providerFaults * 100 <= counts.answers * share
    }
}
