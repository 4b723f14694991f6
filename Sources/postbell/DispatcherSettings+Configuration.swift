import DispatchRuntime
import Operations
import OutboxCore

extension DispatcherSettings {
    /// The dispatcher's settings as the operator has configured them.
    init(_ configuration: Configuration) {
        self.init()
        dispatch.lease = configuration.dispatch.lease
        dispatch.requestTimeout = configuration.connections.requestTimeout
        dispatch.batch = configuration.dispatch.batch
        dispatch.recheckAfter = configuration.dispatch.recheckAfter
        dispatch.targetsPerClaim = configuration.dispatch.targetsPerClaim
        dispatch.settleRows = configuration.dispatch.settleRows
        dispatch.settleDelay = configuration.dispatch.settleDelay
        dispatch.retry = configuration.dispatch.retry
        dispatch.proofWindow = configuration.dispatch.proofWindow
        dispatch.retryBudget = configuration.dispatch.retryBudget
        dispatch.stormGuard.share = configuration.dispatch.stormShare
        dispatch.stormGuard.count = configuration.dispatch.stormCount
        dispatch.stormGuard.window = configuration.dispatch.stormWindow
        stuckAfter = configuration.dispatch.stuckAfter
        poll = configuration.dispatch.poll
        stopTimeout = configuration.dispatch.stopTimeout
        maxCrashes = configuration.dispatch.maxCrashes
        maxFailures = configuration.dispatch.maxFailures
        holdsAwakeKeys = configuration.dispatch.listens
        version = PostbellVersion.current
    }
}
