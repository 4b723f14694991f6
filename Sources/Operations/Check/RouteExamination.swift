import OutboxCore
import OutboxPostgres

/// Which routes have somebody to send for them, and whether what is due is taken.
struct RouteExamination {
    /// Due rows of a healthy worker wait milliseconds; a minute is worth a look.
    static let overdueWarning = Duration.seconds(60)
    /// A quarter of an hour is no hiccup any more.
    static let overdueFailure = Duration.seconds(900)

    /// Whether a credential of this configuration covers a route.
    let covers: (Route) -> Bool
    /// What to do about a route that none covers.
    var remedy: (Route) -> String = { _ in "start a worker that has a credential for it" }

    func judge(_ work: [RouteWork]) -> [CheckItem] {
        let covered = work.filter { covers($0.route) }
        let others = work.filter { !covers($0.route) }
        var items = others.filter { !$0.isServed }.map(unserved)
        let names = covered.isEmpty ? "none yet" : covered.map { Self.name($0.route) }.joined(separator: ", ")
        let elsewhere = others.count(where: \.isServed)
        items.append(
            .ok(.routes, "covered here: \(names)" + (elsewhere > 0 ? "; served by other workers: \(elsewhere)" : "")))
        return items + [queue(covered)]
    }

    private func unserved(_ work: RouteWork) -> CheckItem {
        let waiting = work.waiting == 0 ? "nothing waits there" : "\(work.waiting) rows wait there until their deadline"
        return .warning(
            .routes, "\(Self.name(work.route)) is covered by no credential here and served by no worker; \(waiting)",
            next: remedy(work.route))
    }

    private func queue(_ work: [RouteWork]) -> CheckItem {
        let waiting = work.reduce(0) { $0 + $1.waiting }
        let due = work.compactMap { item in item.oldestDue.map { (route: item.route, age: $0) } }
        guard let (route, age) = due.max(by: { $0.age < $1.age }) else {
            return .ok(.queue, "\(waiting) rows wait, none is due")
        }
        let finding =
            "\(waiting) rows wait, the oldest due one for \(DurationText.seconds(age)) on \(Self.name(route))"
        let next = "see that workers run (`postbell dispatch`) and that their log shows no paused lane"
        if age >= Self.overdueFailure { return .failure(.queue, .bad, finding, next: next) }
        if age >= Self.overdueWarning { return .warning(.queue, finding, next: next) }
        return .ok(.queue, finding)
    }

    /// `provider/environment/app`, without the middle where there is none.
    static func name(_ route: Route) -> String {
        [route.provider, route.environment, route.app].filter { !$0.isEmpty }.joined(separator: "/")
    }
}
