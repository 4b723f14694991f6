import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// The audit during load: producers, workers, clients, back ends and an operator do what they may, leases lapse now
/// and then, and the audit finds nothing, because nothing is wrong.
@Suite(.timeLimit(.minutes(5)))
struct AuditLoadTests {
    private static let principals = ["anna", "berta", "carla", "dora"]
    private static let rounds = 40

    /// SplitMix64.
    private struct Generator: RandomNumberGenerator {
        var seed: UInt64

        mutating func next() -> UInt64 {
            seed &+= 0x9E37_79B9_7F4A_7C15
            var mixed = seed
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `The audit is silent during load`(server: DatabaseServer) async throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        try await Outbox.on(server) { outbox in
            try await outbox.run(
                """
                SELECT postbell.define_kind('note', 'template', '{"word": "slug?"}', '{"title": "Note"}',
                    wait_for_device => '0', ends_when_seen => true, retry => '0s,0s')
                """)
            for principal in Self.principals.dropLast() { try await outbox.device(of: principal) }
            let over = Counter()
            let audits = try await withThrowingTaskGroup(of: Int.self) { group in
                group.addTask {
                    var count = 0
                    let reader = try await outbox.database.connect(role: "postbell_reader")
                    while over.take() == 0 {
                        let found = try await reader.texts("SELECT fault || ' ' || detail FROM postbell.audit()")
                        #expect(found == [], "seed \(seed)")
                        count += 1
                    }
                    await reader.close()
                    return count
                }
                group.addTask {
                    defer { over.add() }
                    try await withThrowingTaskGroup(of: Void.self) { load in
                        load.addTask { try await Self.people(outbox, seed: seed) }
                        for number in 1...2 {
                            load.addTask { try await Self.work(outbox, seed: seed &+ UInt64(number)) }
                        }
                        try await load.waitForAll()
                    }
                    return 0
                }
                return try await group.reduce(0, +)
            }
            // What is left is worked off, and then too.
            let worker = try await outbox.worker()
            try await outbox.device(of: "eva")
            try await outbox.enqueue("last", to: "eva")
            try await outbox.run("UPDATE postbell.leases SET until = now() - interval '1 s'")
            _ = try await worker.recover()
            _ = try await worker.resolve()
            for crashClass in [CrashClass.clean, .once, .suspect] {
                while let batch = try await worker.claim(crashClass == .suspect ? 1 : 8, crashClass: crashClass) {
                    _ = try await worker.settle(batch.settlement(.delivered))
                }
            }
            #expect(try await outbox.texts("SELECT place FROM postbell.places") == [])
            #expect(audits > 1)
            let seen = try await outbox.value(
                "SELECT notifications > 20 AND deliveries > 0 FROM postbell.audit_scope()")
            #expect(seen == "t", "it looked at something")
        }
    }

    /// Producers, clients, back ends and an operator, in one session with an open transaction now and then.
    private static func people(_ outbox: Outbox, seed: UInt64) async throws {
        var random = Generator(seed: seed)
        let session = try await outbox.database.connect()
        for round in 1...rounds {
            let principal = principals.randomElement(using: &random) ?? ""
            let number = Int.random(in: 1...3, using: &random)
            let staysOpen = Bool.random(using: &random)
            if staysOpen { try await session.execute("BEGIN") }
            try await session.execute(
                """
                SELECT postbell.enqueue('note', '\(principal)', 'k-\(round)-' || n, subject => 's-\(number)',
                    thread => 't-\(number)', payload => '{"word": "tea"}') FROM generate_series(1, 5) n
                """)
            let calls = [
                "postbell.supersede('default', 's-\(number)')", "postbell.erase('default', 't-\(number)')",
                "postbell.sync('\(principal)', seen => '{s-\(number)}')",
                "postbell.cancel(max(id::text)::uuid) FROM postbell.outbox",
                "postbell.device_revoke(principal_id => '\(principal)', reason => 'logout')",
                "postbell.device_register('\(principal)', 'phone', 'apns', 'app.one', md5('\(round)'), 'production')",
                "postbell.requeue(max(id::text)::uuid) FROM postbell.notifications WHERE status = 'expired'",
                "1",
            ]
            // A requeue of nothing is refused, as is one that races its notification's subject.
            let call = "SELECT \(calls.randomElement(using: &random) ?? "1")"
            if staysOpen {
                try await session.execute("SAVEPOINT call")
                if await session.refusal(call) != nil { try await session.execute("ROLLBACK TO call") }
                try await session.execute(round % 5 == 0 ? "ROLLBACK" : "COMMIT")
            } else {
                _ = await session.refusal(call)
            }
        }
        await session.close()
    }

    /// A worker: settles what it claims with whatever the provider answers, repeats itself, and sometimes is so slow
    /// that its lease lapses.
    private static func work(_ outbox: Outbox, seed: UInt64) async throws {
        var random = Generator(seed: seed)
        let worker = try await outbox.worker()
        var abandoned: Settlement?
        for _ in 1...rounds {
            _ = try await worker.resolve()
            _ = try await worker.recover()
            let dies = Int.random(in: 0..<6, using: &random) == 0
            let lease = dies ? Duration.microseconds(1) : .seconds(30)
            guard let batch = try await worker.claim(8, lease: lease) else { continue }
            // Somebody may have recovered it meanwhile: then what it brings comes too late.
            if let late = abandoned { _ = try await worker.settle(late) }
            abandoned = dies ? batch.settlement(.delivered) : nil
            if dies { continue }
            let outcome: OutcomeKind =
                [.delivered, .delivered, .retry, .throttled].randomElement(using: &random) ?? .delivered
            let settlement = batch.settlement(outcome)
            for _ in 0...Int.random(in: 0...1, using: &random) { _ = try await worker.settle(settlement) }
        }
        await worker.connection.close()
    }
}

extension ClaimedBatch {
    /// A flush of everything, as the core makes it: what is not wanted ends, a target without an answer for good goes
    /// back, and one at its ceiling is final.
    func settlement(_ kind: OutcomeKind) -> Settlement {
        var settlement = Settlement(batch: identifier, route: route, positions: dispatches.count)
        for (index, dispatch) in dispatches.enumerated() {
            let position = Int16(index + 1)
            settlement.leaving.append(position)
            guard dispatch.verdict == .send else {
                if dispatch.verdict != .closed { settlement.ends.append(end(position)) }
                continue
            }
            var goesBack = dispatch.heldUntil != nil
            for target in targets[dispatch.targets] {
                let isLast = kind == .delivered || (kind == .retry && target.spentAttempts >= 2)
                goesBack = goesBack || !isLast
                settlement.ledger.append(
                    row(
                        dispatch, target, outcome: Outcome(kind, status: kind == .delivered ? 200 : 503),
                        final: isLast, retryAfter: isLast ? nil : .zero))
            }
            if goesBack {
                settlement.returns.append(.back(position))
            } else if dispatch.targets.isEmpty, let nobody = dispatch.nobody {
                settlement.ends.append(
                    PositionEnd(position: position, status: .dispatched, reason: nobody, wholeNotification: false))
            }
        }
        return settlement
    }
}
