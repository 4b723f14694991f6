import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// The days of the ledger: there before they are needed, and gone as a whole.
@Suite(.timeLimit(.minutes(5)))
struct LedgerDayTests {
    @Test(arguments: DatabaseServer.allCases)
    func `Days are there ahead, and old ones go as a whole`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox, worker in
            try await RetentionTests.over(["old"], outbox, worker)
            try await outbox.age(days: 40)
            try await RetentionTests.over(["new"], outbox, worker)
            #expect(try await Self.drop(outbox) == "null", "kept for ever unless somebody says otherwise")
            try await outbox.keep(days: 30)
            #expect(try await outbox.retain() == 1)
            let before = try await Self.days(outbox)
            var dropped: [String] = []
            while true {
                let day = try await Self.drop(outbox)
                if day == "null" { break }
                dropped.append(day)
            }
            // From 80 days ago to the day whose end is 30 days ago: oldest first.
            let wanted = try await outbox.texts(
                """
                SELECT (now() AT TIME ZONE 'UTC')::date - n FROM generate_series(80, 1, -1) n
                WHERE (((now() AT TIME ZONE 'UTC')::date - n + 1)::timestamp AT TIME ZONE 'UTC')
                    <= now() - interval '30 days'
                """)
            #expect(dropped == wanted && dropped.count >= 50)
            #expect(try await Self.days(outbox) == before - dropped.count)
            #expect(
                try await outbox.value(
                    "SELECT count(*) FROM pg_class WHERE relname ~ '^deliveries_[0-9]{8}$'")
                    == "\(before - dropped.count)", "they are no tables of their own either")
            #expect(try await outbox.ledger() == ["new 1 delivered final"])
            #expect(
                try await outbox.value(
                    """
                    SELECT count(*) FROM generate_series(0, 3) n
                    WHERE to_regclass('postbell.deliveries_'
                        || to_char((now() AT TIME ZONE 'UTC')::date + n, 'YYYYMMDD')) IS NOT NULL
                    """) == "4")
        }
    }

    /// A row of a notification that is still there decides what becomes of it: its status, and who gets it again.
    @Test(arguments: DatabaseServer.allCases)
    func `A day stays while a notification is there that has a row in it`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox, worker in
            try await outbox.device("tablet")
            try await outbox.enqueue("a")
            let batch = try await worker.claimed()
            var flush = batch.flush(1)
            flush.ledger[1] = batch.row(
                batch.dispatches[0], batch.targets[1], outcome: Outcome(.retry, status: 500), final: false)
            flush.returns = [.back(1)]
            _ = try await worker.settle(flush)
            try await outbox.age(days: 40)
            try await outbox.run("UPDATE postbell.outbox SET expires_at = now() + interval '1 h'")
            try await outbox.keep(days: 30)
            _ = try await outbox.retain()
            let kept = try await outbox.value("SELECT tableoid::regclass FROM postbell.deliveries LIMIT 1")
            while try await Self.drop(outbox) != "null" {}
            #expect(try await outbox.ledger() == ["a 1 delivered final", "a 2 retry"])
            let again = try await worker.claimed()
            #expect(again.devices == [[2]], "who has got it does not get it again")
            #expect(try await Self.drop(outbox) == "null", "on a lease as in the queue")
            _ = try await worker.settle(again.flush(1))
            #expect(try await Self.drop(outbox) == "null", "over, and not removed yet")
            try await outbox.age(days: 31)
            #expect(try await outbox.retain() == 1)
            while try await Self.drop(outbox) != "null" {}
            #expect(try await outbox.ledger() == [])
            #expect(try await outbox.value("SELECT to_regclass('\(kept)') IS NULL") == "t")
        }
    }

    /// With a lock that was waited for, the settle would wait behind it.
    @Test(arguments: DatabaseServer.allCases)
    func `Nobody waits behind a day that cannot be dropped for a reader`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox, worker in
            try await outbox.ledgerDays(back: 33)
            try await outbox.keep(days: 30)
            try await outbox.enqueue("a", "b")
            let batch = try await worker.claimed()
            let reader = try await outbox.database.connect()
            // A drop that waited would never answer here; a settle behind one that holds its locks has a millisecond.
            try await worker.connection.execute("SET lock_timeout = '1ms'")
            for table in ["deliveries", "deliveries_default"] {
                try await reader.execute("BEGIN; SELECT count(*) FROM postbell.\(table)")
                #expect(try await Self.drop(outbox) == "null", "\(table)")
                try await outbox.run("BEGIN")
                #expect(try await Self.drop(outbox) == "null", "\(table)")
                // Its transaction is open still: it must hold nothing either.
                _ = try await worker.settle(batch.flush(table == "deliveries" ? 1 : 2))
                try await outbox.run("COMMIT")
                try await reader.execute("COMMIT")
            }
            #expect(try await Self.drop(outbox) != "null")
            #expect(try await outbox.ledger() == ["a 1 delivered final", "b 1 delivered final"])
            await reader.close()
        }
    }

    /// The same session, with the statements that it has prepared.
    @Test(arguments: DatabaseServer.allCases)
    func `A worker goes on while days come and go`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox, worker in
            try await outbox.ledgerDays(back: 36)
            try await outbox.keep(days: 30)
            for (key, change) in [
                ("a", "SELECT postbell.create_partitions(5)"), ("b", "SELECT postbell.drop_ledger_day()"),
                ("c", "SELECT postbell.drop_ledger_day()"), ("d", "SELECT postbell.create_partitions(6)"),
            ] {
                try await outbox.enqueue(key)
                let batch = try await worker.claimed()
                try await worker.connection.execute(change)
                #expect(try await worker.settle(batch.flush(1)).ledgerRows == 1)
            }
            #expect(try await outbox.places() == ["a dispatched", "b dispatched", "c dispatched", "d dispatched"])
        }
    }

    /// The audit looks back to where the history is whole, and finds there what it always finds.
    @Test(arguments: DatabaseServer.allCases)
    func `The audit is not misled by what was removed, and not blinded either`(server: DatabaseServer) async throws {
        try await Outbox.on(server, audited: false) { outbox in
            try await outbox.device()
            let worker = try await outbox.worker()
            try await RetentionTests.over(["removed"], outbox, worker)
            try await outbox.age(days: 40)
            try await outbox.keep(days: 30)
            #expect(try await outbox.retain() == 1)
            #expect(try await outbox.ledger() == [])
            #expect(try await outbox.value("SELECT count(*) FROM postbell.deliveries") == "1", "its day is there yet")
            #expect(try await outbox.faults() == [])
            while try await Self.drop(outbox) != "null" {}
            #expect(try await outbox.faults() == [])
            try await RetentionTests.over(["broken"], outbox, worker)
            try await outbox.run("DELETE FROM postbell.outbox")
            #expect(try await outbox.faults() == ["ledger_orphan"])
            try await outbox.enqueue("lost")
            try await outbox.run("DELETE FROM postbell.queue")
            #expect(try await outbox.faults().contains("lost"))
        }
    }

    // MARK: Scene

    private static func on(
        _ server: DatabaseServer, _ body: (Outbox, Worker) async throws -> Void
    ) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.run("SELECT postbell.create_partitions()")
            try await body(outbox, outbox.worker())
            #expect(try await outbox.faults() == [])
        }
    }

    /// The day that was dropped, or `null`.
    private static func drop(_ outbox: Outbox) async throws -> String {
        try await outbox.value("SELECT postbell.drop_ledger_day()")
    }

    private static func days(_ outbox: Outbox) async throws -> Int {
        let count = try await outbox.value(
            """
            SELECT count(*) FROM pg_inherits
            WHERE inhparent = 'postbell.deliveries'::regclass AND inhrelid <> 'postbell.deliveries_default'::regclass
            """)
        return Int(count) ?? -1
    }
}
