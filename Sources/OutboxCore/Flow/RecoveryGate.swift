/// When lapsed leases may be recovered, and which claims are to be adopted first: those whose answer was lost.
///
/// A lease that looks lapsed may belong to a worker that is well: the database was away, so nobody could renew, or its
/// clock was set. Recovering it then would send again what was sent.
package struct RecoveryGate: Equatable, Sendable {
    private let lease: Duration
    private var watch = ClockWatch()
    private var steadySince: Timestamp
    /// Claims whose answer was lost. Asked for again with each turn for a while: the old session may commit late.
    package private(set) var lostClaims: [Identifier] = []

    /// How many lost claims are asked for again after they were asked for once.
    private static let rememberedClaims = 5

    /// A worker that begins at `instant`, when the database's clock says `now`; leases last for `lease`.
    package init(lease: Duration, now: Timestamp, at instant: ContinuousClock.Instant) {
        self.lease = lease
        steadySince = now
        // The first answer is compared with it: the clock may be set before there is a second one.
        _ = watch.heard(now, askedAt: instant, answeredAt: instant, lease: lease)
    }

    /// The answer to a claim was lost; it may have been carried out, or may yet be.
    package mutating func claimLost(_ batch: Identifier) {
        lostClaims.append(batch)
    }

    /// The lost claims were asked for.
    package mutating func adopted() {
        lostClaims = Array(lostClaims.suffix(Self.rememberedClaims))
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
