import OutboxCore
import Testing

@testable import Operations

/// What counts as an alarm: a table of reports.
@Suite struct StatusAlarmTests {
    private static let now = Timestamp(microseconds: 1_796_005_025_000_000)

    private static func ago(_ seconds: Int64) -> Timestamp { now + .seconds(-seconds) }

    private static func route(_ state: RouteStatus.State, name: String = "apns/production/app.one") -> RouteStatus {
        RouteStatus(
            route: name, provider: name == "none" ? "none" : "apns", environment: "production", app: "app.one",
            workers: state == .unserved ? 0 : 1, state: state)
    }

    private static func queue(
        _ waiting: Int, due: Int = 0, oldest: Int64? = nil, overdue: Int = 0, crashed: Int = 0,
        route: String = "apns/production/app.one"
    ) -> QueueStatus {
        QueueStatus(
            route: route, urgency: "urgent", waiting: waiting, due: due, oldestDueAt: oldest.map(ago),
            overdue: overdue, crashed: crashed)
    }

    private static func lane(_ state: RouteStatus.State, since: Int64? = nil, until: Int64? = nil) -> LaneStatus {
        LaneStatus(
            lane: "apns/production/default", worker: "host/1", routes: "apns/production/app.one", state: state,
            reason: state == .up ? nil : "403 InvalidProviderToken", since: since.map(ago),
            until: until.map { ago(-$0) })
    }

    private static func report(_ change: (inout StatusReport) -> Void) -> StatusReport {
        var report = StatusReport(now: now, stuckAfter: .seconds(300))
        change(&report)
        return report
    }

    private static let cases: [(StatusReport, [String])] = [
        (report { _ in }, []),
        (
            report {
                $0.routes = [route(.up)]
                $0.queue = [queue(5, due: 5, oldest: 299)]
                $0.lanes = [lane(.up)]
            }, []
        ),
        (report { $0.routes = [route(.unserved)] }, []),
        (
            report {
                $0.routes = [route(.unserved)]
                $0.queue = [queue(1)]
            },
            ["unserved: no live worker serves apns/production/app.one, where 1 row waits, none due yet"]
        ),
        (
            report {
                $0.routes = [route(.unserved)]
                $0.queue = [queue(12, due: 3, oldest: 600, overdue: 2)]
            },
            ["unserved: no live worker serves apns/production/app.one, where 12 rows wait, the oldest due 10 min ago"]
        ),
        (
            report {
                $0.routes = [route(.unserved, name: "none")]
                $0.queue = [queue(2, due: 1, oldest: 5, route: "none")]
            },
            ["unserved: no worker is alive to end the wait of 2 rows for a first device, the oldest due 5 s ago"]
        ),
        (
            report { $0.lanes = [lane(.paused, since: 60, until: 600)] },
            [
                "lane_paused: lane apns/production/default of host/1, for apns/production/app.one, is paused until "
                    + "2026-11-30 02:27:05+00 (in 10 min) since 2026-11-30 02:16:05+00 (1 min ago): "
                    + "403 InvalidProviderToken"
            ]
        ),
        (
            report { $0.lanes = [lane(.down, since: 1)] },
            [
                "lane_down: lane apns/production/default of host/1 has no connection since "
                    + "2026-11-30 02:17:04+00 (1 s ago): 403 InvalidProviderToken"
            ]
        ),
        (
            report {
                $0.hooks = [
                    HookStatus(
                        kind: "note", worker: "host/1", reason: "stale: it raised an error (SQLSTATE 22012)",
                        since: ago(60), until: ago(-8))
                ]
            },
            [
                "hook_failing: host/1 has sent nothing of the kind note since 2026-11-30 02:16:05+00 (1 min ago), "
                    + "because a hook of it fails: stale: it raised an error (SQLSTATE 22012)"
            ]
        ),
        (
            report {
                $0.flight = [
                    FlightStatus(
                        route: "apns/production/app.one", leases: 3, rows: 9, lapsedLeases: 2, lapsedAt: ago(45))
                ]
            },
            ["lapsed: 2 leases of apns/production/app.one ran out and nobody has taken over, the first 45 s ago"]
        ),
        (
            report {
                $0.flight = [
                    FlightStatus(route: "r", leases: 3, rows: 9, lapsedLeases: 0, lapsedAt: nil)
                ]
            }, []
        ),
        (
            report {
                $0.routes = [route(.up)]
                $0.queue = [queue(5, due: 5, oldest: 400, overdue: 1)]
            },
            ["overdue: 1 urgent row of apns/production/app.one has been due for more than 5 min, the oldest 6 min ago"]
        ),
        (
            report { $0.queue = [queue(5, crashed: 2)] },
            ["crashed: 2 urgent rows of apns/production/app.one were held by a worker that died"]
        ),
    ]

    @Test(arguments: cases.indices) func alarms(index: Int) {
        let (report, expected) = Self.cases[index]
        #expect(report.alarms.map { "\($0.name.rawValue): \($0.what)" } == expected)
        #expect(report.alarms.allSatisfy { !$0.next.isEmpty })
        let text = report.text(for: Terminal(descriptor: -1, columns: nil, hasColour: false))
        #expect(text.hasPrefix(expected.isEmpty ? "all is well  " : "\(expected.count) alarm"))
    }

    @Test func theReportFitsItsTerminalButForItsSentences() {
        let report = Self.report {
            $0.routes = [Self.route(.up)]
            $0.queue = [Self.queue(5, due: 5, oldest: 299)]
            $0.lanes = [Self.lane(.up)]
            $0.workers = [
                WorkerStatus(
                    name: String(repeating: "long-host.", count: 9), version: "1.0", state: .alive,
                    startedAt: Self.ago(90_000), heartbeatAt: Self.ago(3), stoppedAt: nil, routes: 2, leased: 10)
            ]
        }
        let text = report.text(for: Terminal(descriptor: -1, columns: 80, hasColour: false))
        #expect(text.split(separator: "\n").allSatisfy { $0.count <= 80 }, "\(text)")
        #expect(!text.contains("\u{1B}"))
    }

    @Test func aWatchedTerminalIsDrawnAgainAndAPipeIsNot() {
        #expect(Terminal(descriptor: -1, columns: 80, hasColour: false).redrawing("x\n") == "\u{1B}[H\u{1B}[2Jx\n")
        #expect(Terminal(descriptor: -1, columns: nil, hasColour: false).redrawing("x\n") == "x\n\n")
    }
}
