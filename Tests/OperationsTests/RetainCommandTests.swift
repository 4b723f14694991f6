import Foundation
import Postgres
import Support
import Testing

@testable import Operations

/// `postbell retain`, on real servers.
@Suite(.serialized) struct RetainCommandTests {
    /// A notification that is over and one that waits, both of two days ago; their devices are of today.
    private static let past = """
        SELECT postbell.define_kind('note', 'template', '{}', '{"title": "x"}', wait_for_device => '1 h');
        SELECT postbell.enqueue('note', 'anna', 'over'), postbell.enqueue('note', 'anna', 'open');
        DELETE FROM postbell.queue q USING postbell.outbox o WHERE o.id = q.notification_id AND o.dedupe_key = 'over';
        CREATE FUNCTION pg_temp.aged(id uuid) RETURNS uuid LANGUAGE sql AS $$
            SELECT encode(int8send(('x' || left(replace(id::text, '-', ''), 16))::bit(64)::bigint
                - (2 * 86400000::bigint << 16)) || substring(uuid_send(id), 9), 'hex')::uuid $$;
        UPDATE postbell.outbox SET id = pg_temp.aged(id), planned_at = planned_at - interval '2 days';
        UPDATE postbell.queue SET notification_id = pg_temp.aged(notification_id)
        """

    @Test(arguments: DatabaseServer.allCases)
    func whatWasKeptLongEnoughIsRemovedAndTheRestStays(server: DatabaseServer) async throws {
        try await TemporaryDatabase.migrated(on: server) { database in
            try await database.execute(Self.past)
            let unasked = try database.run("retain")
            #expect(unasked.status == 0)
            #expect(unasked.output == "nothing is removed: no table has a policy (postbell.set_retention)\n")
            try await database.execute(
                "SELECT postbell.set_retention('outbox', '1 day'), postbell.set_retention('deliveries', '1 day')")
            let first = try database.run("retain")
            #expect(first.status == 0)
            #expect(
                first.output.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }
                    == ["TABLE REMOVED", "deliveries 0 days", "outbox 1 rows"])
            let again = try Program.run(
                ["retain", "--json"], environment: ["DATABASE_URL": try database.connectionString])
            let rows = try JSONSerialization.jsonObject(with: Data(again.output.utf8)) as? [[String: Any]]
            #expect(rows?.map { $0["table"] as? String } == ["deliveries", "outbox"])
            #expect(rows?.map { $0["removed"] as? Int } == [0, 0])
            let session = try await database.connect()
            #expect(
                try await session.execute("SELECT string_agg(dedupe_key, ' ') FROM postbell.outbox").text(0, 0)
                    == "open")
            await session.close()
        }
    }

    @Test func whoMayNotIsToldSoAndRemovesNothing() async throws {
        try await TemporaryDatabase.migrated(on: .postgres15) { database in
            try await database.execute(Self.past)
            try await database.execute("SELECT postbell.set_retention('outbox', '1 day')")
            let role = "reader_\(database.name)"
            try await database.execute("CREATE ROLE \(role) LOGIN IN ROLE postbell_reader")
            let result = try database.run("retain", settings: "user=\(role)")
            try await database.execute("DROP OWNED BY \(role); DROP ROLE \(role)")
            #expect(result.status == 6)
            #expect(result.lines.count == 1)
            let session = try await database.connect()
            #expect(try await session.execute("SELECT count(*) FROM postbell.outbox").text(0, 0) == "2")
            await session.close()
        }
    }
}
