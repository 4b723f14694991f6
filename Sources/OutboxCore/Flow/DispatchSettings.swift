/// The worker's bounds and times, as the decision machine needs them; `docs/configuration.md` names and explains them.
package struct DispatchSettings: Equatable, Sendable {
    /// Life of a lease.
    package var lease: Duration = .seconds(30)
    /// From a request's first byte to its whole answer.
    package var requestTimeout: Duration = .seconds(10)
    /// Most rows that a claim takes.
    package var batch = 1000
    /// Age of a check beyond which a row is checked again before it is sent.
    package var recheckAfter: Duration = .seconds(1)
    /// Most devices of one principal that a claim answers.
    package var targetsPerClaim = 500
    /// Results that make a flush by their number.
    package var settleRows = 1000
    /// Age of the oldest result that makes a flush.
    package var settleDelay: Duration = .milliseconds(5)
    /// Retry policy of kinds that have none.
    package var retry: RetryPolicy = .standard
    /// An accept this recent proves a lane.
    package var proofWindow: Duration = .seconds(86_400)
    /// Retries as a share of a lane's first sends, in percent.
    package var retryBudget = 10
    /// When answers against tokens are taken for a wrong configuration.
    package var stormGuard = StormGuard()
    /// What urgent rows leave to bulk ones, in percent of a claim.
    package var bulkShare = 20
    /// Results that may wait for their settle before claiming stops.
    package var unsettledLimit = 20_000

    /// The defaults.
    package init() {}
}
