import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// Adoption, renewal and recovery: a lease ends exactly once, whoever ends it.
@Suite(.timeLimit(.minutes(5)))
struct LeaseTests {
    /// M8, the other race that chaos alone does not find: whom a lost worker addressed cannot be told from the devices
    /// as they are at the recovery. One token is dead since, one device is new.
    @Test(arguments: DatabaseServer.allCases)
    func `Unknown rows name those whom the lost worker was told to send to`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.device("tablet")
            try await outbox.enqueue("a")
            let worker = try await outbox.worker()
            #expect(try await worker.claimed(lease: .microseconds(1)).devices == [[1, 2]])
            try await outbox.run("UPDATE postbell.devices SET token = NULL WHERE device_no = 1")
            try await outbox.device("watch")
            #expect(try await worker.recover().unknowns == 2)
            #expect(try await outbox.ledger() == ["a 1 unknown", "a 2 unknown"])
        }
    }

    /// M8: the second snapshot sees what a settle of the lease wrote before the recovery came.
    @Test(arguments: DatabaseServer.allCases)
    func `What was settled before the recovery is not unknown`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.device("tablet")
            try await outbox.enqueue("a", "b")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed(lease: .microseconds(1))
            var flush = batch.flush(1)
            // One device of b is settled, the position itself is still open.
            flush.ledger.append(
                batch.row(batch.dispatches[1], batch.targets[2], outcome: Outcome(.delivered), final: true))
            _ = try await worker.settle(flush)
            #expect(try await worker.recover() == RecoveryReport(leases: 1, rows: 1, unknowns: 1, setAside: 0))
            #expect(
                try await outbox.ledger() == [
                    "a 1 delivered final", "a 2 delivered final", "b 1 delivered final", "b 2 unknown",
                ])
        }
    }

    /// M9: the answer to a claim was lost, but the worker knows the name it gave the lease.
    @Test(arguments: DatabaseServer.allCases)
    func `An adopted lease goes back as if it had never been claimed`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a", "b")
            let (worker, stranger) = (try await outbox.worker(), try await outbox.worker())
            let batch = try await worker.claimed()
            #expect(try await stranger.adopt(batch.identifier) == 0, "only the owner may")
            #expect(try await worker.adopt(batch.identifier, Worker.identifier()) == 2)
            #expect(try await worker.adopt(batch.identifier) == 0)
            #expect(try await outbox.ledger() == [])
            let again = try await worker.claimed()
            #expect(again.dispatches.allSatisfy { $0.attempt == 1 && $0.crashes == 0 && $0.prior })
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Adoption takes only what no flush has let go`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a", "b")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed()
            _ = try await worker.settle(batch.flush(1))
            #expect(try await worker.adopt(batch.identifier) == 1)
            #expect(try await outbox.places() == ["a dispatched", "b queue"])
        }
    }

    /// M11: three deaths over a batch set aside the one row that died alone, and nobody else.
    @Test(arguments: DatabaseServer.allCases)
    func `A poison row takes no neighbour along`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            let keys = (0..<20).map { "row-\($0)" }
            for key in keys { try await outbox.enqueue(key, more: key == "row-7" ? "badge => 666" : "") }
            let worker = try await outbox.worker()
            var deaths = 0
            var delivered = 0
            for _ in 1...50 {
                var found = false
                for crashClass in CrashClass.allCases {
                    let claim = try await worker.claim(
                        min(20, crashClass.batchLimit), crashClass: crashClass, lease: .microseconds(1))
                    guard let batch = claim else { continue }
                    found = true
                    if batch.dispatches.contains(where: { $0.badge == 666 }) {
                        deaths += 1
                        _ = try await worker.recover(maxCrashes: 3)
                    } else {
                        var flush = Settlement(
                            batch: batch.identifier, route: 1, positions: batch.dispatches.count)
                        for position in 1...batch.dispatches.count {
                            let part = batch.flush(position)
                            flush.leaving += part.leaving
                            flush.ledger += part.ledger
                        }
                        delivered += Int(try await worker.settle(flush).ledgerRows)
                    }
                }
                if !found { break }
            }
            #expect(deaths == 3 && delivered == 19)
            #expect(try await outbox.places().filter { !$0.hasSuffix("dispatched") } == ["row-7 failed crashes"])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A lapse counts only if the recoverer was healthy all along`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed(lease: .microseconds(1))
            _ = try await worker.recover(healthySince: batch.claimedAt + .seconds(1))
            let again = try await worker.claimed(lease: .microseconds(1))
            #expect(again.dispatches[0].crashes == 0)
            _ = try await worker.recover(healthySince: again.claimedAt + .seconds(-1))
            #expect(try await worker.claimed(crashClass: .once).dispatches[0].crashes == 1)
        }
    }

    /// A worker without others is followed by itself: its next life was never connected before the claim, and yet knows
    /// that the one before is dead. It has been connected for a lease by then, and the shortest is five seconds.
    @Test(arguments: DatabaseServer.allCases, [5, 20])
    func `A row that kills a lone worker is set aside by its next lives`(
        server: DatabaseServer, connected: Int
    ) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a")
            var lives = 0
            for life in 1...10 {
                let worker = try await outbox.worker()
                try await worker.register(heartbeat: "now() - interval '40 s'")
                let crashClass = CrashClass.allCases[min(life - 1, 2)]
                guard let batch = try await worker.claim(crashClass: crashClass, lease: .microseconds(1)) else { break }
                lives = life
                try await outbox.run("UPDATE postbell.leases SET claimed_at = claimed_at - interval '40 s'")
                _ = try await outbox.worker().recover(
                    healthySince: batch.claimedAt + .seconds(-connected), maxCrashes: 3)
            }
            #expect(lives == 3)
            #expect(try await outbox.places() == ["a failed crashes"])
        }
    }

    /// Whose lease may have lapsed because the database was away, or because its clock was set, is not taken for dead.
    @Test(arguments: [
        ("heard of since", "now() - interval '1 s'", false, Duration.seconds(-20)),
        ("stopped in order", "now() - interval '40 s'", true, .seconds(-20)),
        ("not yet awaited", "now() - interval '40 s'", false, .seconds(-3)),
        ("a clock was set", "now() - interval '40 s'", false, .seconds(30)),
    ])
    func `A lapse before our time counts only for a worker that is dead`(
        _: String, heartbeat: String, stopped: Bool, healthySince: Duration
    ) async throws {
        try await Outbox.on(.postgres15) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a")
            let worker = try await outbox.worker()
            try await worker.register(heartbeat: heartbeat, stopped: stopped)
            let batch = try await worker.claimed(lease: .microseconds(1))
            try await outbox.run("UPDATE postbell.leases SET claimed_at = claimed_at - interval '40 s'")
            _ = try await outbox.worker().recover(healthySince: batch.claimedAt + healthySince, maxCrashes: 3)
            #expect(try await outbox.value("SELECT crashes FROM postbell.queue") == "0")
        }
    }

    /// It was sent before the database went away, and is carried out when it is back: what lapsed meanwhile could not
    /// be renewed.
    @Test(arguments: DatabaseServer.allCases)
    func `A recovery that comes late takes only what had lapsed when it was asked for`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed(lease: .microseconds(1))
            #expect(try await worker.recover(knownAt: batch.claimedAt).leases == 0)
            #expect(try await worker.recover(knownAt: batch.claimedAt + .seconds(1)).leases == 1)
            #expect(try await outbox.value("SELECT crashes FROM postbell.queue") == "1")
        }
    }

    /// Time in which the database was there has to have gone by, not time alone.
    @Test(arguments: DatabaseServer.allCases)
    func `A recovery that comes late takes nobody for dead whom it could not hear`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a")
            let worker = try await outbox.worker()
            try await worker.register(heartbeat: "now() - interval '40 s'")
            let batch = try await worker.claimed(lease: .microseconds(1))
            try await outbox.run(
                "UPDATE postbell.leases SET claimed_at = claimed_at - interval '40 s', until = until - interval '39 s'"
            )
            _ = try await outbox.worker().recover(
                knownAt: batch.claimedAt + .seconds(-17), healthySince: batch.claimedAt + .seconds(-20), maxCrashes: 3)
            #expect(try await outbox.value("SELECT crashes FROM postbell.queue") == "0")
        }
    }

    /// S7: what recovery puts back is what was claimed: share, cursor, attempt.
    @Test(arguments: DatabaseServer.allCases)
    func `Recovered rows keep their share and their page`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a")
            try await outbox.run("UPDATE postbell.queue SET after_device = 1, attempt = 3")
            let before = try await outbox.texts(
                "SELECT (tenant_no, urgency, attempt, after_device) FROM postbell.queue")
            let worker = try await outbox.worker()
            _ = try await worker.claimed(lease: .microseconds(1))
            _ = try await worker.recover()
            #expect(
                try await outbox.texts("SELECT (tenant_no, urgency, attempt, after_device) FROM postbell.queue")
                    == before)
        }
    }

    /// S12: a lease that cannot be recovered does not hold up the others.
    @Test(arguments: DatabaseServer.allCases)
    func `One broken lease does not stop the recovery of others`(server: DatabaseServer) async throws {
        try await Outbox.on(server, audited: false) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a", "b")
            let worker = try await outbox.worker()
            let broken = try await worker.claimed(1, lease: .microseconds(1))
            _ = try await worker.claimed(1, lease: .microseconds(1))
            try await outbox.run(
                "UPDATE postbell.leases SET attempts = '{NULL}', urgencies = '{NULL}' "
                    + "WHERE batch = '\(broken.identifier)'"
            )
            #expect(try await worker.recover().rows == 1)
            #expect(try await outbox.places() == ["a lease", "b queue"])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Renewal keeps a lease from being recovered, also a lapsed one`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a")
            let (worker, stranger) = (try await outbox.worker(), try await outbox.worker())
            let batch = try await worker.claimed(lease: .microseconds(1))
            #expect(try await stranger.renew(batch.identifier) == [])
            #expect(try await worker.renew(batch.identifier) == [batch.identifier])
            #expect(try await stranger.recover().leases == 0)
            _ = try await worker.settle(batch.flush(1))
            #expect(try await worker.renew(batch.identifier) == [])
        }
    }

    // MARK: Two at once

    /// What one session does in an open transaction while the other does its part.
    enum Step: String, CaseIterable, Sendable {
        case settle, renew, recover
    }

    static let interleavings: [(DatabaseServer, Step, Step)] = DatabaseServer.allCases.flatMap { server in
        Step.allCases.flatMap { first in Step.allCases.map { (server, first, $0) } }
    }

    /// Settle, renewal and recovery of one lapsed lease, each held open while another runs: the lease's row lock puts
    /// them in an order, and whatever it is the row is in one place and the target is on the ledger.
    @Test(arguments: interleavings)
    func `Statements about one lease run one after the other`(
        server: DatabaseServer, first: Step, second: Step
    ) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed(lease: .microseconds(1))
            let twin = Worker(connection: try await outbox.worker().connection, owner: worker.owner)
            @Sendable func carryOut(_ step: Step, _ worker: Worker) async throws {
                switch step {
                case .settle: _ = try await worker.settle(batch.flush(1))
                case .renew: _ = try await worker.renew(batch.identifier, lease: .seconds(600))
                case .recover: _ = try await worker.recover()
                }
            }
            try await worker.connection.execute("BEGIN")
            try await carryOut(first, worker)
            async let other: Void = carryOut(second, twin)
            try await outbox.awaitBlocked(or: second == .recover)
            try await worker.connection.execute("COMMIT")
            try await other
            let place =
                switch (first, second) {
                case (.recover, _): "a queue"
                case (.settle, _), (.renew, .settle): "a dispatched"
                case (.renew, _): "a lease"
                }
            #expect(try await outbox.places() == [place])
            #expect(try await outbox.faults() == [])
        }
    }
}

extension Worker {
    init(connection: PostgresConnection, owner: Identifier) {
        self.connection = connection
        self.owner = owner
    }

    /// Enters the registry with its last heartbeat at this time, an expression.
    func register(heartbeat: String, stopped: Bool = false) async throws {
        try await connection.execute(
            """
            INSERT INTO postbell.workers (owner, name, version) VALUES ('\(owner)', 'test', 'test');
            UPDATE postbell.workers SET heartbeat_at = \(heartbeat), stopped_at = \(stopped ? heartbeat : "NULL")
            WHERE owner = '\(owner)'
            """)
    }
}

extension Outbox {
    /// Returns when a session waits for a lock; at once if it need not (`skips`).
    func awaitBlocked(or skips: Bool) async throws {
        guard !skips else { return }
        for _ in 0..<20_000 {
            let waiting = try await value(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
            if waiting != "0" { return }
        }
        throw TestSetupError("no session waits for a lock")
    }
}
