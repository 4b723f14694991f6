import OutboxCore
import Postgres

/// Reads the answer of the share scan.
enum WaitingAnswer {
    /// What waits, and where the scan of each route that was cut off goes on.
    static func read(
        _ result: PostgresResult
    ) throws(PostgresError) -> (work: WaitingWork, next: [RouteNumber: WaitingStatement.Cursor]) {
        var shares: [WaitingShare] = []
        var next: [RouteNumber: WaitingStatement.Cursor] = [:]
        var onRoute = 0
        var previous: RouteNumber?
        for row in 0..<result.rowCount where !result.isNull(row, 1) {
            let route = try result.int2(row, 1)
            let crashes = try result.int2(row, 2)
            let share = Share(urgency: try result.int2(row, 3), tenant: try result.int4(row, 4))
            onRoute = route == previous ? onRoute + 1 : 1
            previous = route
            if onRoute == WaitingStatement.sharesPerRoute {
                next[route] = WaitingStatement.Cursor(crashes: crashes, urgency: share.urgency, tenant: share.tenant)
            }
            let crashClass = CrashClass(rawValue: min(crashes, CrashClass.suspect.rawValue)) ?? .suspect
            let found = WaitingShare(
                route: route, crashClass: crashClass, share: share, dueAt: try result.instant(row, 5))
            // Suspects of three crashes and of two are one class to the claim; the earlier due instant counts.
            let same = shares.lastIndex { $0.route == route && $0.crashClass == crashClass && $0.share == share }
            if crashClass == .suspect, let same {
                if found.dueAt < shares[same].dueAt { shares[same] = found }
            } else {
                shares.append(found)
            }
        }
        return (WaitingWork(now: try result.instant(0, 0), shares: shares), next)
    }
}
