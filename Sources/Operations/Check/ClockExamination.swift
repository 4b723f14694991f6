import Glibc
import OutboxCore
import OutboxPostgres
import Postgres

/// How far our clock and the database's are apart. Leases are counted by the database alone, but provider tokens carry
/// our time and rows the database's.
struct ClockExamination {
    /// More than this is worth a look.
    static let tolerance = Duration.seconds(1)

    /// More than this fails: what one worker calls now is another's lapsed lease.
    let lease: Duration

    func run(on connection: PostgresConnection) async throws(PostgresError) -> CheckItem {
        let askedAt = Self.now()
        let answer = try await ServerFacts.time(of: connection)
        return judge(answer, between: askedAt, and: Self.now())
    }

    /// Judges a `reading` of the database's clock that was made between two moments of ours. What the way there and
    /// back explains is no difference.
    func judge(_ reading: Timestamp, between askedAt: Timestamp, and answeredAt: Timestamp) -> CheckItem {
        let ahead = max(.zero, reading - answeredAt)
        let behind = max(.zero, askedAt - reading)
        let skew = max(ahead, behind)
        let words = "\(DurationText.milliseconds(skew)) \(ahead > behind ? "ahead of" : "behind") ours"
        let next = "set both clocks by NTP; the one that is wrong decides which machine"
        if skew > lease { return .failure(.clock, .bad, "the database's clock is \(words)", next: next) }
        if skew > Self.tolerance { return .warning(.clock, "the database's clock is \(words)", next: next) }
        return .ok(.clock, skew == .zero ? "the database's clock agrees with ours" : "the database's clock is \(words)")
    }

    private static func now() -> Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(microseconds: Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000)
    }
}
