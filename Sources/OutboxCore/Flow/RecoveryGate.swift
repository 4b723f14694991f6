/// When lapsed leases may be recovered, and which claims are to be adopted first: those whose answer was lost.
///
/// A lease that looks lapsed may belong to a worker that is well: the database was away, so nobody could renew, or its
/// clock was set. Recovering it then would send again what was sent.
package struct RecoveryGate: Equatable, Sendable {
    private let lease: Duration
    private var watch = ClockWatch()
    private var steadySince: Timestamp
    private var lost: [LostClaim] = []

    private struct LostClaim: Equatable {
        let batch: Identifier
        let at: ContinuousClock.Instant
    }

    /// How long a lost claim is asked for again, at least once: nothing that holds up a commit without ending its
    /// session lasts as long.
    private static let memory = Duration.seconds(60)
    /// How many are remembered at most: more than a worker loses in that time, which tries less often as they fail.
    private static let limit = 1000

    /// A worker that begins at `instant`, when the database's clock says `now`; leases last for `lease`.
    package init(lease: Duration, now: Timestamp, at instant: ContinuousClock.Instant) {
        self.lease = lease
        steadySince = now
        // The first answer is compared with it: the clock may be set before there is a second one.
        _ = watch.heard(now, askedAt: instant, answeredAt: instant, lease: lease)
    }

    /// Claims whose answer was lost, oldest first. Asked for again with each turn for a minute: the old session may
    /// commit late.
    package var lostClaims: [Identifier] { lost.map(\.batch) }

    /// The answer to a claim was lost; it may have been carried out, or may yet be.
    package mutating func claimLost(_ batch: Identifier, at now: ContinuousClock.Instant) {
        if lost.count == Self.limit { lost.removeFirst() }
        lost.append(LostClaim(batch: batch, at: now))
    }

    /// The lost claims were asked for, with a question sent at `askedAt`.
    package mutating func adopted(askedAt: ContinuousClock.Instant) {
        lost.removeAll { $0.at + Self.memory <= askedAt }
    }

    /// Whether whoever holds a lease that lapsed while the database was away has had the time to come back, as we did
    /// at `connected`, and to settle what it has: a session is made again within ten seconds of a database that is
    /// back, and no lease is worth waiting for longer than its length.
    package func holdersAreBack(connected: ContinuousClock.Instant, at now: ContinuousClock.Instant) -> Bool {
        connected + min(lease, .seconds(10)) <= now
    }

    /// The database answered `time` to a question. Answers whether its clock was set since the last one: leases are
    /// then left alone for their length, and what lapses because of it counts as nobody's crash.
    package mutating func heard(
        _ time: Timestamp, askedAt: ContinuousClock.Instant, answeredAt: ContinuousClock.Instant
    ) -> Bool {
        guard watch.heard(time, askedAt: askedAt, answeredAt: answeredAt, lease: lease) else { return false }
        steadySince = time + lease
        return true
    }

    /// Whether a lease that looks lapsed at `now` may be taken for it.
    package func clockIsSteady(at now: ContinuousClock.Instant) -> Bool {
        watch.mayRecover(at: now)
    }

    /// The database's time since which a lapse is its worker's own: that of our connection, or of the clock's setting.
    package func healthySince(connected: Timestamp) -> Timestamp {
        max(steadySince, connected)
    }
}
