import OutboxCore
import Synchronization

/// Remembers what is told of lanes and of the store, in short words, and nothing else.
final class RecordingObserver: DispatchObserver {
    private let told = Mutex<(lanes: [String], store: [String])>(([], []))

    /// What was told of lanes, in order.
    var lanes: [String] { told.withLock { $0.lanes } }
    /// What was told of the store, in order.
    var store: [String] { told.withLock { $0.store } }

    private func tell(_ line: String) { told.withLock { $0.lanes.append(line) } }

    func laneDown(_ lane: String, reason: String, until: Duration?) { tell("down: \(reason)") }
    func laneUp(_ lane: String) { tell("up") }
    func lanePaused(_ lane: String, routes: [Route], _ pause: LanePause) { tell("paused: \(pause.reason)") }
    func pauseSpread(_ lane: String, route: Route, _ pause: LanePause) { tell("spread: \(pause.reason)") }
    func lanePauseProlonged(_ lane: String, route: Route?, _ pause: LanePause) { tell("prolonged: \(pause.reason)") }
    func laneResumed(_ lane: String, route: Route?) { tell("resumed") }
    func freshTokenRefused(_ lane: String, status: Int16, reason: String, clockAhead: Duration?) {
        tell("refused: \(reason)")
    }
    func credentialRead(_ lane: String, isAnother: Bool) { tell(isAnother ? "another credential" : "same credential") }

    func started(lanes: [String], routes: [Route]) {}
    func claimed(batch: Identifier, route: RouteNumber, rows: Int, targets: Int) {}
    func settled(batch: Identifier, outcomes: [OutcomeKind: Int], returned: Int, ended: Int) {}
    func fenced(batch: Identifier, rows: Int) {}
    func refused(batch: Identifier, rows: Int, because error: StoreError) {}
    func recovered(_ report: RecoveryReport) {}
    func connectionReplaced(_ lane: String, reason: String) {}
    func targetHeld(_ lane: String, route: Route, status: Int16, reason: String) {}
    func kindRefused(_ lane: String, kind: String, because fault: String) {}
    func kindUnreadable(_ kind: String, because what: String) {}
    func hooksFail(kind: String, _ fault: HookFault, askedAgainAfter wait: Duration) {}
    func hooksAnswer(kind: String, after duration: Duration) {}
    func longPending(_ pending: LongPending, route: Route?) {}
    func moreLongPending() {}
    func routeUnserved(_ route: Route) {}
    func storeFailed(_ error: StoreError) { told.withLock { $0.store.append("failed: \(error.operation)") } }
    func storeRecovered() { told.withLock { $0.store.append("recovered") } }
    func databaseClockStepped() {}
    func draining(inFlight: Int) {}
    func stopped(released: Int) {}
}
