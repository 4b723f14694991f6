import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// The claim moves rows into a lease and ends none; every row that it moves is in its answer.
@Suite(.timeLimit(.minutes(5)))
struct ClaimTests {
    @Test(arguments: DatabaseServer.allCases)
    func `A device that moves to another route does not wait there`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a")
            let worker = try await outbox.worker()
            var wait = try await worker.claimed().flush(
                1, outcome: Outcome(.retry, status: 503), final: false, retryAfter: .seconds(3600))
            wait.returns.append(.back(1, after: .seconds(3600)))
            _ = try await worker.settle(wait)
            try await outbox.device(route: 2)
            try await outbox.run("UPDATE postbell.queue SET due_at = now() WHERE route_no = 2")
            let moved = try await worker.claimed(route: 2)
            #expect(moved.devices == [[1]])
            _ = try await worker.settle(moved.flush(1))
            try await outbox.run("UPDATE postbell.queue SET due_at = now()")
            let left = try await worker.claimed()
            #expect(left.devices == [[]])
            var end = left.flush(1)
            end.ends = [PositionEnd(position: 1, status: .dispatched, reason: .noDevice, wholeNotification: false)]
            _ = try await worker.settle(end)
            #expect(try await outbox.places() == ["a dispatched"])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A claimed row comes with everything that a send needs`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.device("tablet")
            try await outbox.enqueue(
                "a", more: "payload => '{\"word\": \"tea\"}', thread => 't', badge => 3, silent => true")
            let batch = try await outbox.worker().claimed()
            let row = batch.dispatches[0]
            #expect(row.verdict == .send && row.attempt == 1 && !row.prior && row.share == Share(urgency: 0, tenant: 1))
            #expect(String(decoding: batch[row.payload], as: UTF8.self) == #"{"word": "tea"}"#)
            #expect(String(decoding: batch[row.thread], as: UTF8.self) == "t")
            #expect(String(decoding: batch[row.collapseKey], as: UTF8.self) == "a", "the kind's rule: the dedupe key")
            #expect(row.badge == 3 && row.silent && row.kind == 2)
            #expect(row.expiresAt - row.createdAt == .seconds(86_400))
            #expect(batch.devices == [[1, 2]])
            #expect(batch[batch.targets[0].token].count == 32 && batch.targets[0].tokenSequence == 1)
            #expect(batch.targets.allSatisfy { $0.spentAttempts == 0 && $0.notesSuccess })
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Verdicts tell what is over, and in which order`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a", "b", "c", more: "subject => 's', expires_at => now() + interval '1 h'")
            try await outbox.enqueue("d")
            try await outbox.run(
                """
                UPDATE postbell.outbox SET expires_at = now() - interval '1 s' WHERE dedupe_key IN ('a', 'b', 'c');
                UPDATE postbell.outbox SET subject = NULL WHERE dedupe_key = 'c';
                SELECT postbell.supersede('default', 's');
                INSERT INTO postbell.settlements (notification_id, tenant_no, status, reason)
                SELECT id, 1, 'cancelled', 'cancelled' FROM postbell.outbox WHERE dedupe_key = 'a'
                """)
            let batch = try await outbox.worker().claimed()
            #expect(batch.dispatches.map(\.verdict) == [.closed, .superseded, .expired, .send])
            #expect(batch.devices == [[], [], [], [1]])
        }
    }

    /// M10: a row whose notification is not to be seen is in the answer as well as in the lease.
    @Test(arguments: DatabaseServer.allCases)
    func `A row without its notification is answered as an orphan`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a", "b")
            try await outbox.run("DELETE FROM postbell.outbox WHERE dedupe_key = 'a'")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed()
            #expect(batch.dispatches.map(\.verdict) == [.orphan, .send])
            #expect(try await outbox.value("SELECT cardinality(ids) FROM postbell.leases") == "2")
            _ = try await worker.settle(batch.flush(1, 2))
            #expect(try await outbox.texts("SELECT place FROM postbell.places") == [])
        }
    }

    /// M2: history is `prior`, never the number of the attempt, which is given back.
    @Test(arguments: DatabaseServer.allCases)
    func `A target that is final is never sent again`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.device("tablet")
            try await outbox.enqueue("a")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed()
            var flush = batch.flush(1)
            flush.ledger.removeLast()
            flush.returns = [.back(1, attempt: 0)]
            _ = try await worker.settle(flush)
            let next = try await worker.claimed()
            #expect(next.dispatches[0].attempt == 1 && next.dispatches[0].prior)
            #expect(next.devices == [[2]])
            _ = try await worker.settle(next.flush(1))
        }
    }

    /// M2: pages spend no attempt, and the cursor keeps them apart.
    @Test(arguments: DatabaseServer.allCases)
    func `Seven devices in pages of three get it once each`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            for number in 1...7 { try await outbox.device("device-\(number)") }
            try await outbox.enqueue("a")
            let worker = try await outbox.worker()
            var pages: [[Int64]] = []
            while pages.count < 10, let batch = try await worker.claim(targets: 3) {
                pages += batch.devices
                #expect(batch.dispatches[0].attempt == 1)
                var flush = batch.flush(1)
                // What the worker does: PositionExitTests.
                let row = batch.dispatches[0]
                #expect(row.pageEnd == [3, 6, nil, 3, 6, 7, nil][pages.count - 1])
                if row.pageEnd != nil || !row.cursor.isSecondLook {
                    let behind = row.pageEnd ?? 0
                    flush.returns = [
                        .back(
                            1, attempt: 0,
                            cursor: PageCursor(behind: behind, isSecondLook: row.cursor.isSecondLook || behind == 0))
                    ]
                }
                _ = try await worker.settle(flush)
            }
            #expect(pages == [[1, 2, 3], [4, 5, 6], [7], [], [], [], []])
            #expect(try await outbox.places() == ["a dispatched"])
        }
    }

    /// A hundred thousand devices: what a page costs must not depend on how many of them were sent to before.
    @Test(arguments: DatabaseServer.allCases)
    func `A page of very many devices reads its own targets and no others`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.run(
                """
                SELECT postbell.device_register('anna', 'd-' || n, d.provider, d.app, md5(n::text) || md5(n::text),
                    environment => d.environment)
                FROM postbell.devices d, generate_series(1, 1200) n
                """)
            try await outbox.enqueue("a")
            let worker = try await outbox.worker()
            let first = try await worker.claimed(targets: 1000)
            var flush = first.flush(1)
            flush.returns = [
                .back(1, attempt: 0, cursor: PageCursor(behind: try #require(first.dispatches[0].pageEnd)))
            ]
            _ = try await worker.settle(flush)
            try await outbox.run("ANALYZE postbell.deliveries; ANALYZE postbell.devices")
            try await worker.connection.execute("PREPARE page AS \(ClaimStatement.text)")
            let plan = try await worker.connection.texts(
                """
                EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) EXECUTE page(1::int2, 0::int2, '{0}'::int2[],
                    '{1}'::int4[], '{10}'::int4[], '{-infinity}'::timestamptz[],
                    '{00000000-0000-0000-0000-000000000000}'::uuid[], gen_random_uuid(), gen_random_uuid(),
                    interval '30 s', 100::int8)
                """)
            let removed = plan.compactMap { line in
                line.firstMatch(of: /Rows Removed by Filter: (\d+)/).flatMap { Int($0.output.1) }
            }
            #expect(plan.contains { $0.contains("deliveries_retry") || $0.contains("retry_at_idx") })
            #expect(removed.allSatisfy { $0 <= 2 }, "\(plan.joined(separator: "\n"))")
        }
    }

    /// S6: retries are the target's own; the row tells when the next one that is left out is due.
    @Test(arguments: DatabaseServer.allCases)
    func `A target whose own retry lies ahead is left out and holds the row`(server: DatabaseServer) async throws {
        try await Outbox.on(server, audited: false) { outbox in
            try await outbox.device()
            try await outbox.device("tablet")
            try await outbox.enqueue("a")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed()
            var flush = batch.flush(1, outcome: Outcome(.retry, status: 503), final: false, retryAfter: .zero)
            let slow = batch.row(
                batch.dispatches[0], batch.targets[1], outcome: Outcome(.throttled, status: 429), final: false,
                retryAfter: .seconds(3600))
            flush.ledger[1] = slow
            flush.returns = [.back(1)]
            _ = try await worker.settle(flush)
            let next = try await worker.claimed()
            #expect(next.devices == [[1]] && next.targets[0].spentAttempts == 1)
            let held = try #require(next.dispatches[0].heldUntil)
            #expect(held - next.claimedAt > .seconds(3500))
            // The first is done: the row has no target left, is held by the second, and its end would be too early.
            var second = next.flush(1)
            second.returns = [.back(1)]
            _ = try await worker.settle(second)
            let last = try await worker.claimed()
            #expect(last.targets.isEmpty && last.dispatches[0].heldUntil == held)
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Spent attempts are those that failed or were lost, once per batch`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a")
            let worker = try await outbox.worker()
            for outcome in [OutcomeKind.retry, .throttled, .misconfigured, .unknown] {
                let batch = try await worker.claimed()
                var flush = batch.flush(1, outcome: Outcome(outcome), final: false, retryAfter: .zero)
                // The same request, repeated in the same batch.
                flush.ledger += batch.flush(1, outcome: Outcome(outcome), final: false).ledger
                flush.returns = [.back(1)]
                _ = try await worker.settle(flush)
            }
            let batch = try await worker.claimed()
            #expect(batch.targets[0].spentAttempts == 2)
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A wanted row that reaches nobody says why`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            for principal in ["muted", "tokenless", "revoked", "gone"] {
                try await outbox.device(of: principal)
                try await outbox.enqueue("a-\(principal)", to: principal)
            }
            try await outbox.run(
                """
                UPDATE postbell.devices SET muted_kinds = '{note}' WHERE principal_id = 'muted';
                UPDATE postbell.devices SET token = NULL WHERE principal_id = 'tokenless';
                UPDATE postbell.devices SET token = NULL, status = 'revoked' WHERE principal_id = 'revoked';
                DELETE FROM postbell.devices WHERE principal_id = 'gone'
                """)
            let worker = try await outbox.worker()
            let batch = try await worker.claimed()
            #expect(batch.dispatches.map(\.nobody) == [.muted, .noToken, .revoked, .noDevice])
            var flush = batch.flush(1, 2, 3, 4)
            flush.ends = batch.dispatches.enumerated().map { index, row in
                PositionEnd(
                    position: Int16(index + 1), status: .dispatched, reason: row.nobody ?? .ceiling,
                    wholeNotification: false)
            }
            _ = try await worker.settle(flush)
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Addressing keeps to one device, or leaves one out`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.device("tablet")
            let tablet = "(SELECT id FROM postbell.devices WHERE client_device_id = 'tablet')"
            try await outbox.enqueue("a", more: "device_id => \(tablet)")
            try await outbox.enqueue("b", more: "except_device_id => \(tablet)")
            #expect(try await outbox.worker().claimed().devices == [[2], [1]])
        }
    }

    /// M11: rows that survived one crash and those that survived two are claimed apart from the clean ones.
    @Test(arguments: DatabaseServer.allCases)
    func `Crash classes are claimed apart`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a", "b", "c", "d")
            try await outbox.run(
                """
                UPDATE postbell.queue q SET crashes = CASE dedupe_key WHEN 'b' THEN 1 WHEN 'c' THEN 2 ELSE 4 END
                FROM postbell.outbox o WHERE o.id = q.notification_id AND dedupe_key <> 'a'
                """)
            let worker = try await outbox.worker()
            #expect(try await worker.claimed().dispatches.map(\.crashes) == [0])
            #expect(try await worker.claimed(crashClass: .once).dispatches.map(\.crashes) == [1])
            #expect(try await worker.claimed(1, crashClass: .suspect).dispatches.map(\.crashes) == [2])
            #expect(try await worker.claimed(1, crashClass: .suspect).dispatches.map(\.crashes) == [4])
        }
    }

    /// S13 and S3: a row that a registration holds is skipped, not waited for.
    @Test(arguments: DatabaseServer.allCases)
    func `A row that somebody holds is skipped`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a", "b")
            try await outbox.run(
                """
                BEGIN;
                SELECT 1 FROM postbell.queue q JOIN postbell.outbox o ON o.id = q.notification_id
                WHERE dedupe_key = 'a' FOR KEY SHARE OF q
                """)
            let worker = try await outbox.worker()
            #expect(try await worker.claimed().dispatches.count == 1)
            try await outbox.run("COMMIT")
            #expect(try await worker.claimed().dispatches.count == 1)
        }
    }

    /// S9: credits sum to the batch, so nothing is locked that is not taken; two claims at once share the rows out.
    @Test(arguments: DatabaseServer.allCases)
    func `Two claims at once take different rows and leave none`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a", "b", "c", "d")
            let (one, two) = (try await outbox.worker(), try await outbox.worker())
            try await one.connection.execute("BEGIN")
            let first = try await one.claimed(2)
            let second = try await two.claimed(100)
            try await one.connection.execute("COMMIT")
            #expect(first.dispatches.count == 2 && second.dispatches.count == 2)
            #expect(
                Set((first.dispatches + second.dispatches).map(\.notification)).count == 4)
        }
    }

    /// S2: the mark skips what lies behind it; a scan from the start finds it.
    @Test(arguments: DatabaseServer.allCases)
    func `A claim begins at its mark`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a", "b")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed()
            let second = batch.dispatches[1]
            _ = try await worker.adopt(batch.identifier)
            try await outbox.run(
                "UPDATE postbell.queue q SET due_at = created_at FROM postbell.outbox o "
                    + "WHERE o.id = q.notification_id")
            let mark = LowWaterMark(dueAt: second.createdAt, notification: second.notification)
            let ahead = try #require(try await worker.claim(mark: mark))
            #expect(ahead.dispatches.map(\.notification) == [second.notification])
            #expect(try await worker.claim(mark: mark) == nil)
            #expect(try await worker.claimed().dispatches.count == 1)
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Other routes, other shares and what is not due yet stay`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.device("tablet", route: 2)
            try await outbox.device(tenant: "other")
            try await outbox.enqueue("a")
            try await outbox.enqueue("b", more: "not_before => now() + interval '1 h'")
            try await outbox.enqueue("c", more: "urgency => 'bulk'")
            try await outbox.run("SET postbell.tenant_id = 'other'")
            try await outbox.enqueue("d")
            let batch = try await outbox.worker().claimed()
            #expect(batch.dispatches.count == 1 && batch.devices == [[1]])
        }
    }
}
