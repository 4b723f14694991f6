import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// What a client says it shows and its person has seen, and the answer to it.
@Suite(.timeLimit(.minutes(5)))
struct SyncTests {
    /// Two kinds, of which `report` ends when seen.
    private static func on(_ server: DatabaseServer, _ body: (Outbox) async throws -> Void) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run(
                #"SELECT postbell.define_kind('report', 'template', '{}', '{"title": "x"}', ends_when_seen => true)"#)
            try await body(outbox)
        }
    }

    @discardableResult
    private static func report(_ key: String, _ outbox: Outbox, to principal: String = "anna") async throws -> String {
        try await outbox.value(
            "SELECT postbell.enqueue('report', '\(principal)', '\(key)', subject => '\(key)', thread => '\(key)')")
    }

    private static func array(_ ids: [String]) -> String { "'{\(ids.joined(separator: ","))}'" }

    /// The keys that a call answers: obsolete, then unread.
    private static func sync(
        _ outbox: Outbox, delivered: [String] = [], seen: [String] = [], query: [String] = [],
        principal: String = "anna"
    ) async throws -> [String] {
        try await outbox.texts(
            """
            SELECT coalesce(string_agg(o.dedupe_key, ' ' ORDER BY o.dedupe_key), '')
            FROM postbell.sync('\(principal)', \(array(delivered)), \(array(seen)), \(array(query))) a
            CROSS JOIN LATERAL (VALUES (1, a.obsolete), (2, a.unread)) l(place, ids)
            LEFT JOIN postbell.outbox o ON o.id = ANY (l.ids)
            GROUP BY l.place ORDER BY l.place
            """)
    }

    @Test(arguments: DatabaseServer.allCases)
    func `What is over is obsolete, and what nobody saw is unread`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox in
            var ids: [String] = []
            for key in ["seen", "superseded", "erased", "cancelled", "expired", "open"] {
                ids.append(try await Self.report(key, outbox))
            }
            ids += try await outbox.enqueue("note", more: "subject => 'seen'")
            ids += try await outbox.enqueue("bare")
            let foreign = [try await Self.report("foreign", outbox, to: "berta"), Worker.identifier().description]
            try await outbox.run(
                """
                SELECT postbell.supersede('default', 'superseded'), postbell.erase('default', 'erased');
                UPDATE postbell.outbox SET expires_at = now() WHERE dedupe_key = 'expired';
                INSERT INTO postbell.settlements (notification_id, tenant_no, status, reason)
                SELECT id, 1, 'cancelled', 'cancelled' FROM postbell.outbox WHERE dedupe_key = 'cancelled'
                """)
            #expect(
                try await Self.sync(outbox, delivered: ids + foreign, query: ids + foreign)
                    == ["cancelled erased expired superseded", "expired note open seen"])
            // This call's own receipts count; a note is read by them, and stays on the screen.
            #expect(
                try await Self.sync(outbox, delivered: ids + foreign, seen: ["seen"], query: ids + foreign)
                    == ["cancelled erased expired seen superseded", "expired open"])
            #expect(try await Self.sync(outbox, delivered: [ids[5]], query: []) == ["", ""])
            // What comes after the receipt is new.
            let again = try await outbox.enqueue("again", more: "subject => 'seen'")
            #expect(try await Self.sync(outbox, delivered: again, query: again) == ["", "again"])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A receipt is appended once for what it is about`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox in
            try await Self.report("a", outbox)
            let receipts = "SELECT count(*) FROM postbell.receipts"
            for _ in 1...3 { _ = try await Self.sync(outbox, seen: ["a", "a"]) }
            #expect(try await outbox.value(receipts) == "1")
            try await outbox.enqueue("b", more: "subject => 'a'")
            for _ in 1...3 { _ = try await Self.sync(outbox, seen: ["a"]) }
            #expect(try await outbox.value(receipts) == "2")
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A seen subject that is foreign or none stores nothing`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox in
            try await Self.report("a", outbox)
            try await Self.report("hers", outbox, to: "berta")
            let registrar = try await outbox.database.connect(role: "postbell_registrar")
            let many = "ARRAY(SELECT gen_random_uuid() FROM generate_series(1, 201))"
            for (state, arguments) in [
                ("PB301", "'anna', seen => '{a,hers}'"), ("PB301", "'anna', seen => '{a,unheard}'"),
                ("PB301", "'berta', seen => '{a}'"), ("PB302", "'anna', seen => '{a,\"two words\"}'"),
                ("PB302", "'anna', seen => '{a,NULL}'"), ("PB302", "NULL, seen => '{a}'"),
                ("PB302", "'anna', delivered => \(many)"), ("PB302", "'anna', query => \(many)"),
                ("PB302", "'anna', seen => ARRAY(SELECT 's' || n FROM generate_series(1, 101) n)"),
            ] {
                #expect(await registrar.refusal("SELECT postbell.sync(\(arguments))") == state, "\(arguments)")
            }
            try await registrar.execute("SET postbell.tenant_id = 'other'")
            #expect(await registrar.refusal("SELECT postbell.sync('anna', seen => '{a}')") == "PB301")
            // a session that acts for another person
            try await registrar.execute("RESET postbell.tenant_id; SET postbell.principal_id = 'berta'")
            #expect(await registrar.refusal("SELECT postbell.sync('anna', seen => '{a}')") == "PB301")
            try await registrar.execute(
                "RESET postbell.principal_id; SELECT postbell.sync('anna', NULL, NULL, NULL)")
            #expect(await registrar.refusal("SELECT count(*) FROM postbell.receipts") == "42501")
            await registrar.close()
            #expect(try await outbox.value("SELECT count(*) FROM postbell.receipts") == "0")
        }
    }

    /// Reading a subject is not the end of a kind that does not say so, nor another principal's.
    @Test(arguments: DatabaseServer.allCases)
    func `A receipt ends its own principal's, of kinds that end when seen`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox in
            for principal in ["anna", "berta"] {
                try await outbox.device(of: principal)
                try await outbox.run(
                    """
                    SELECT postbell.enqueue('report', '\(principal)', '\(principal)-report', subject => 's'),
                        postbell.enqueue('note', '\(principal)', '\(principal)-note', subject => 's')
                    """)
            }
            _ = try await Self.sync(outbox, seen: ["s"])
            let batch = try await outbox.worker().claimed()
            #expect(batch.dispatches.map(\.verdict) == [.seen, .send, .send, .send])
        }
    }
}
