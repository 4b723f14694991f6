package import OutboxCore
package import Telemetry

/// Tells the worker's log what the dispatcher does: one line per decision or fault at info and above, one per batch at
/// debug, never a value of a row.
package struct DispatchLog: DispatchObserver {
    private let log: LogWriter

    /// An observer that writes to `log`.
    package init(_ log: LogWriter) {
        self.log = log
    }

    package func started(lanes: [String], routes: [Route]) {
        log.info("dispatching", [.lane: .text(lanes.joined(separator: ",")), .count: .int(routes.count)])
        for route in routes {
            log.info(
                "serving route",
                [
                    .route: .int(Int(route.number)), .provider: .text(route.provider),
                    .environment: .text(route.environment), .app: .text(route.app),
                ])
        }
    }

    package func claimed(batch: Identifier, route: RouteNumber, rows: Int, targets: Int) {
        log.debug(
            "claimed",
            [
                .lease: .text(batch.description), .route: .int(Int(route)), .rows: .int(rows),
                .targets: .int(targets),
            ])
    }

    package func settled(batch: Identifier, outcomes: [OutcomeKind: Int], returned: Int, ended: Int) {
        let counts = OutcomeKind.allCases.compactMap { kind in outcomes[kind].map { "\(kind.name)=\($0)" } }
        log.debug(
            "settled",
            [
                .lease: .text(batch.description), .outcome: .text(counts.joined(separator: " ")),
                .released: .int(returned), .count: .int(ended),
            ])
    }

    package func fenced(batch: Identifier, rows: Int) {
        log.warning(
            "lease was lost before its results were settled; they stand on the ledger as late",
            [.lease: .text(batch.description), .rows: .int(rows)])
    }

    package func refused(batch: Identifier, rows: Int, because error: StoreError) {
        log.error(
            "results cannot be written and are left to their lease; the rows are sent again when it has lapsed",
            [
                .lease: .text(batch.description), .rows: .int(rows), .sqlstate: .text(error.sqlState),
                .cause: .text(error.message),
            ])
    }

    package func recovered(_ report: RecoveryReport) {
        log.warning(
            "recovered lapsed leases",
            [
                .recovered: .int(report.leases), .rows: .int(report.rows), .targets: .int(report.unknowns),
                .count: .int(report.setAside),
            ])
    }

    package func laneDown(_ lane: String, reason: String, until: Duration?) {
        var fields: LogFields = [.lane: .text(lane), .cause: .text(reason)]
        fields.append(.delay, until.map { .duration($0) })
        log.warning("lane is down", fields)
    }

    package func connectionReplaced(_ lane: String, reason: String) {
        log.info("connection is replaced", [.lane: .text(lane), .cause: .text(reason)])
    }

    package func laneUp(_ lane: String) {
        log.notice("lane is up", [.lane: .text(lane)])
    }

    package func lanePaused(_ lane: String, routes: [Route], _ pause: LanePause) {
        log.error(
            "lane is paused: the provider refuses all of it; rows wait, devices are left alone",
            fields(lane, routes, pause) + [.next: "check the key, its id, the team, topic and environment"])
    }

    package func pauseSpread(_ lane: String, route: Route, _ pause: LanePause) {
        log.warning(
            "topic is paused: many devices are refused like the one that is held; no token is cleared",
            fields(lane, route, pause))
    }

    package func lanePauseProlonged(_ lane: String, route: Route?, _ pause: LanePause) {
        log.warning("lane stays paused: its probe was refused", fields(lane, route, pause))
    }

    package func laneResumed(_ lane: String, route: Route?) {
        log.notice("lane is no longer paused", fields(lane, route))
    }

    package func targetHeld(_ lane: String, route: Route, status: Int16, reason: String) {
        log.error(
            "device is held: its answer can mean a wrong environment or topic; no token is cleared",
            fields(lane, route) + [
                .status: .int(Int(status)), .reason: .text(reason),
                .next: "compare the environment and topic with the app's build",
            ])
    }

    package func credentialRead(_ lane: String, isAnother: Bool) {
        if isAnother {
            log.notice("credential was read again: it is another", [.lane: .text(lane)])
        } else {
            log.notice("credential was read again: it is the same", [.lane: .text(lane)])
        }
    }

    package func freshTokenRefused(_ lane: String, status: Int16, reason: String, clockAhead: Duration?) {
        var fields: LogFields = [.lane: .text(lane), .status: .int(Int(status)), .reason: .text(reason)]
        fields.append(.skew, clockAhead.map { .duration($0) })
        let clocksDiffer = clockAhead.map { abs($0.components.seconds) > Self.clockTolerance } ?? false
        fields.append(
            .next,
            clocksDiffer
                ? "set this machine's clock: it differs from the provider's"
                : "check the key, its id and the team: the clocks agree as far as the answer tells")
        log.error("the provider calls a new access token too old", fields)
    }

    /// Seconds that two clocks may differ by without being the cause of a refused token.
    private static let clockTolerance: Int64 = 60

    private func fields(_ lane: String, _ route: Route?) -> LogFields {
        var fields: LogFields = [.lane: .text(lane)]
        guard let route else { return fields }
        fields.append(.environment, .text(route.environment))
        fields.append(.app, .text(route.app))
        return fields
    }

    /// A lane's routes share their environment and differ in their app; of many the first few are named.
    private func fields(_ lane: String, _ routes: [Route], _ pause: LanePause) -> LogFields {
        var fields: LogFields = [.lane: .text(lane)]
        if let first = routes.first {
            fields.append(.environment, .text(first.environment))
            let apps = routes.prefix(Self.appsNamed).map(\.app).joined(separator: ",")
            fields.append(.app, .text(routes.count > Self.appsNamed ? apps + ",…" : apps))
        }
        return fields + status(pause)
    }

    private static let appsNamed = 5

    private func fields(_ lane: String, _ route: Route?, _ pause: LanePause) -> LogFields {
        fields(lane, route) + status(pause)
    }

    private func status(_ pause: LanePause) -> LogFields {
        [.status: .int(Int(pause.status)), .reason: .text(pause.reason), .delay: .duration(pause.duration)]
    }

    package func kindRefused(_ lane: String, kind: String, because fault: String) {
        log.error(
            "kind cannot be sent by this lane: its notifications fail there",
            [
                .lane: .text(lane), .kind: .text(kind), .cause: .text(fault),
                .next: "declare it with postbell.define_kind, which refuses what a provider does not take",
            ])
    }

    package func kindUnreadable(_ kind: String, because what: String) {
        log.error(
            "kind cannot be read by this worker: its notifications wait",
            [
                .kind: .text(kind), .cause: .text(what),
                .next: "upgrade the worker if the catalog is newer; else declare the kind with postbell.define_kind",
            ])
    }

    package func hooksFail(kind: String, _ fault: HookFault, askedAgainAfter wait: Duration) {
        var fields: LogFields = [.kind: .text(kind), .hook: .text(fault.purpose?.rawValue ?? "")]
        fields = fields + [.cause: .text(fault.cause.rawValue)]
        if !fault.sqlState.isEmpty { fields.append(.sqlstate, .text(fault.sqlState)) }
        log.error(
            "hook of the kind fails: none of its notifications is sent until it answers",
            fields + [
                .delay: .duration(wait),
                .next: "call the function as postbell_dispatcher; `postbell check` says whether it may be asked",
            ])
    }

    package func hooksAnswer(kind: String, after duration: Duration) {
        log.notice("hook of the kind no longer fails", [.kind: .text(kind), .age: .duration(duration)])
    }

    package func longPending(_ pending: LongPending, route: Route?) {
        var fields: LogFields = [
            .notification: .text(pending.notification.description), .kind: .text(pending.kind),
            .created: .text(WallTime(pending.createdAt).text), .age: .duration(pending.age),
            .route: .int(Int(pending.route)),
        ]
        if let route { fields = fields + self.fields(of: route) }
        fields.append(.claimant, pending.claimant.map { .text($0) })
        fields.append(.next, "`postbell show` with its id says what it waits for")
        log.warning("notification has been due for long and is still pending", fields)
    }

    package func moreLongPending() {
        log.warning(
            "more notifications have been due for long",
            [.next: "`postbell status` says how many wait on which route"])
    }

    package func routeUnserved(_ route: Route) {
        log.warning(
            "work waits on a route that no worker serves; it ends at its deadline",
            [.route: .int(Int(route.number))] + fields(of: route) + [
                .next: "start a worker whose credential covers this app and environment"
            ])
    }

    private func fields(of route: Route) -> LogFields {
        [.provider: .text(route.provider), .environment: .text(route.environment), .app: .text(route.app)]
    }

    package func storeFailed(_ error: StoreError) {
        log.warning(
            "statement failed and is repeated",
            [.operation: .text(error.operation), .sqlstate: .text(error.sqlState), .cause: .text(error.message)])
    }

    package func databaseClockStepped() {
        log.warning("the database's clock was set: lapsed leases are left alone for the length of one")
    }

    package func storeRecovered() {
        log.notice("database answers again")
    }

    package func draining(inFlight: Int) {
        log.notice("stopping: finishing what is in flight", [.inFlight: .int(inFlight)])
    }

    package func stopped(released: Int) {
        log.notice("stopped", [.released: .int(released)])
    }
}

extension WallTime {
    /// A stored instant, for people to read.
    init(_ instant: Timestamp) {
        let milliseconds = Int(instant.microseconds / 1000)
        self.init(seconds: milliseconds / 1000, milliseconds: milliseconds % 1000)
    }
}
