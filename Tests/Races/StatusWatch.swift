import OutboxCore
import Postgres

/// Reads derived statuses again and again while others change what they are derived from: one that was final must stay.
struct StatusWatch: Sendable {
    /// Final statuses by notification, as first read.
    private var finals: [String: String] = [:]
    /// Readings of a notification that were made.
    private(set) var readings = 0
    /// Notifications that went back from a final status, or on to another.
    private(set) var faults: [String] = []

    /// Looks at all notifications from `first` on until `done`, and once more then.
    static func run(
        from first: Identifier, on connection: PostgresConnection, until done: Flag
    ) async throws -> StatusWatch {
        var watch = StatusWatch()
        while true {
            let isLast = done.isRaised
            var parameters = PostgresParameters()
            parameters.append(uuid: (first.high, first.low))
            watch.take(try await connection.query(statement, parameters))
            if isLast { return watch }
        }
    }

    private mutating func take(_ result: PostgresResult) {
        for row in 0..<result.rowCount {
            guard let name = try? result.text(row, 0), let status = try? result.text(row, 1) else { continue }
            readings += 1
            if let before = finals[name], before != status { faults.append("\(name) was \(before) and is \(status)") }
            if status != "pending" { finals[name] = status }
        }
    }

    private static let statement = PostgresStatement(
        "statuses", "SELECT id::text, status FROM postbell.notifications WHERE id >= $1", parameterTypes: [.uuid])
}
