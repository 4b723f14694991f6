import FakeProviders
import Foundation
import Postgres
import Support
import Testing

/// The shipped catalogs and the examples beside them, with a worker: what is over, or may not be seen any more, is not
/// told (docs/seeds.md).
@Suite(.serialized, .timeLimit(.minutes(5))) struct CatalogTests {
    /// A stage with a catalog and its example; people have a device each, of which the token begins with `0a` and
    /// their place in the list.
    private static func on(
        _ server: DatabaseServer, _ catalog: ShippedCatalog, _ people: [String], _ body: (Stage) async throws -> Void
    ) async throws {
        try await Stage.on(server) { stage in
            try await stage.run(try catalog.catalog())
            try await stage.run(try catalog.example())
            for (place, person) in people.enumerated() { try await stage.register(person, token: "0a0\(place)") }
            try await body(stage)
            #expect(try await stage.audit() == [])
        }
    }

    /// Runs a worker until nothing is left to be sent; no grace, no wait.
    private static func dispatch(_ stage: Stage) async throws {
        try await stage.run("UPDATE postbell.queue SET due_at = now()")
        let worker = try stage.startWorker()
        try await eventually("all is settled") {
            try await stage.texts("SELECT count(*) FROM postbell.places") == ["0"]
        }
        #expect(try await worker.stop() == 0)
    }

    /// Person, kind and how it ended, of all notifications, in this order.
    private static func ends(_ stage: Stage) async throws -> [String] {
        try await stage.texts(
            """
            SELECT concat_ws(' ', principal_id, kind, status, reason) FROM postbell.notifications ORDER BY 1
            """)
    }

    private static func id(_ number: Int) -> String { "0196f6a1-0000-7000-8000-00000000000\(number)" }

    // MARK: Agent platform

    @Test(arguments: DatabaseServer.allCases)
    func aDecidedApprovalAnAnsweredQuestionAndADeletedSessionAreNotTold(server: DatabaseServer) async throws {
        try await Self.on(server, .agentPlatform, ["ada"]) { stage in
            try await stage.run(
                """
                INSERT INTO agents.sessions (id, principal_id, is_operational) VALUES
                    ('\(Self.id(1))', 'ada', false), ('\(Self.id(2))', 'ada', true), ('\(Self.id(3))', 'ada', false);
                INSERT INTO agents.runs (id, session_id) VALUES
                    ('\(Self.id(4))', '\(Self.id(1))'), ('\(Self.id(5))', '\(Self.id(1))'),
                    ('\(Self.id(6))', '\(Self.id(2))'), ('\(Self.id(7))', '\(Self.id(3))');
                INSERT INTO agents.occurrences (id, schedule_id, principal_id, title, scheduled_for)
                VALUES ('\(Self.id(8))', '\(Self.id(9))', 'ada', E'Weekly\\n numbers', '2026-11-30 08:30:00+01')
                """)
            func approval(_ run: Int) async throws -> String {
                try await stage.texts(
                    "SELECT agents.request_approval('\(Self.id(run))', 'mail.send', now() + interval '1 h')")[0]
            }
            func question() async throws -> String {
                try await stage.texts("SELECT agents.ask_question('\(Self.id(4))', 'Which one?')")[0]
            }
            let (open, decided, changed, gone) = (
                try await approval(4), try await approval(4), try await approval(4), try await approval(7)
            )
            let (asked, answered) = (try await question(), try await question())
            try await stage.run(
                """
                SELECT agents.decide_approval('\(decided)', 'approved');
                UPDATE agents.approvals SET decision = 'denied' WHERE id = '\(changed)';
                UPDATE agents.questions SET answer = 'That one.' WHERE id = '\(answered)';
                SELECT agents.fail_run('\(Self.id(5))'), agents.fail_run('\(Self.id(6))');
                SELECT agents.finish_occurrence('\(Self.id(8))', 'completed');
                SELECT agents.delete_session('\(Self.id(3))')
                """)
            try await Self.dispatch(stage)
            #expect(
                try await Self.ends(stage) == [
                    "ada approval_requested cancelled erased", "ada approval_requested dispatched",
                    "ada approval_requested superseded superseded", "ada approval_requested superseded superseded",
                    "ada question_asked dispatched", "ada question_asked superseded superseded",
                    "ada run_failed dispatched", "ada run_failed superseded superseded",
                    "ada schedule_run_finished dispatched",
                ])
            for (key, status) in [(open, "dispatched"), (decided, "superseded"), (changed, "superseded")] {
                #expect(try await stage.status("approval.requested:\(key)") == status)
            }
            let bodies = await stage.apns.requests.map(\.body)
            #expect(bodies.count == 4)
            #expect(bodies.contains { $0.contains(asked) } && !bodies.contains { $0.contains(gone) })
            let told = #""subtitle":"Weekly numbers","body":"Due 2026-11-30T07:30:00+00:00. Its"#
            #expect(bodies.contains { $0.contains(told) })
            #expect(!bodies.contains { $0.contains("Which one") })
        }
    }

    /// The run ends in any case; what is wrong with its notification is an event.
    @Test func aRunEndsThoughItsNotificationIsRefusedAndThatIsNoted() async throws {
        try await Self.on(.postgres15, .agentPlatform, []) { stage in
            try await stage.run(
                """
                INSERT INTO agents.sessions (id, principal_id) VALUES ('\(Self.id(1))', 'no body');
                INSERT INTO agents.runs (id, session_id) VALUES ('\(Self.id(2))', '\(Self.id(1))');
                SELECT agents.fail_run('\(Self.id(2))')
                """)
            #expect(try await stage.texts("SELECT status FROM agents.runs") == ["failed"])
            #expect(
                try await stage.texts("SELECT name || ' ' || (detail ->> 'code') FROM postbell.events")
                    == ["notification.enqueue_failed notification.invalid"])
        }
    }

    // MARK: Team chat

    @Test(arguments: DatabaseServer.allCases)
    func whoHasLeftOrIsNoMemberGetsNothingAndNobodyIsToldOfWhatTheyHaveRead(server: DatabaseServer) async throws {
        let people = ["ada", "bob", "cyd", "dan", "eve", "fay", "zoe"]
        try await Self.on(server, .teamChat, people) { stage in
            try await stage.run(
                """
                INSERT INTO chat.threads (id) VALUES ('\(Self.id(1))');
                INSERT INTO chat.members (thread_id, person, level, is_quiet) VALUES
                    ('\(Self.id(1))', 'ada', 'all', false), ('\(Self.id(1))', 'bob', 'all', true),
                    ('\(Self.id(1))', 'cyd', 'mentions', false), ('\(Self.id(1))', 'dan', 'mute', false),
                    ('\(Self.id(1))', 'eve', 'mentions', false), ('\(Self.id(1))', 'fay', 'mentions', false);
                SELECT chat.post('\(Self.id(1))', 'ada', 'Lunch?', '{cyd,dan,eve,fay,zoe}');
                SELECT chat.leave('eve', '\(Self.id(1))');
                UPDATE chat.members SET read_seq = 1 WHERE person = 'fay'
                """)
            try await Self.dispatch(stage)
            #expect(
                try await Self.ends(stage) == [
                    "bob message dispatched", "cyd mention dispatched", "eve mention superseded no_access",
                    "fay mention superseded superseded",
                ])
            let requests = await stage.apns.requests
            #expect(requests.map { String($0.token.prefix(4)) }.sorted() == ["0a01", "0a02"])
            let quiet = try #require(requests.first { $0.token.hasPrefix("0a01") })
            #expect(quiet.headers["apns-priority"] == "5" && quiet.body.contains(#""interruption-level":"passive""#))
            #expect(!quiet.body.contains("sound") && quiet.headers["apns-collapse-id"] == Self.id(1))
            #expect(!requests.contains { $0.body.contains("Lunch") })

            // Read on another device: the number, and nothing else.
            try await stage.run("SELECT chat.read('cyd', '\(Self.id(1))')")
            try await Self.dispatch(stage)
            #expect(await stage.apns.requests.last?.body == #"{"aps":{"badge":0}}"#)
            #expect(await stage.apns.requests.last?.headers["apns-collapse-id"] == nil)
        }
    }

    // MARK: Plugin hub

    @Test(arguments: DatabaseServer.allCases)
    func whoWasNotGivenAnAppHearsNothingOfItAndACodeThatNobodyInstalledIsSent(server: DatabaseServer) async throws {
        try await Self.on(server, .pluginHub, ["ada", "bob"]) { stage in
            try await stage.run(
                """
                INSERT INTO hub.grants VALUES ('ada', 'officerdev/music');
                INSERT INTO hub.jobs (person) VALUES ('ada'), ('bob'), ('bob');
                SELECT hub.end_job(1, 'failed'), hub.end_job(2, 'finished'), hub.end_job(3, 'failed');
                SELECT hub.tell('ada', 'officerdev/music:12.3', 'e1', 3), hub.tell('ada', 'officerdev/music:99', 'e2'),
                    hub.tell('bob', 'officerdev/music:12.3', 'e1', 3);
                SELECT hub.dismiss_job(3)
                """)
            let version = try await stage.texts("SELECT postbell.mapping_version()")[0]
            try await Self.dispatch(stage)
            #expect(
                try await Self.ends(stage) == [
                    "ada code dispatched", "ada code dispatched", "ada code dispatched", "bob code dispatched",
                    "bob code superseded no_access", "bob code superseded superseded",
                ])
            let bodies = await stage.apns.requests.map(\.body)
            let alert = #"{"aps":{"alert":{"title":"Officer"},"sound":"default","thread-id":"officer"#
            #expect(bodies.count == 4 && bodies.allSatisfy { $0.hasPrefix(alert) })
            #expect(bodies.allSatisfy { $0.contains(#""mv":"\#(version)""#) })
            #expect(bodies.contains { $0.contains(#""officer":{"c":"officerdev/music:99","#) })
        }
    }

    /// The mapping is a value of what is installed: another session, another server, another worker see the same.
    @Test(arguments: DatabaseServer.allCases)
    func theMappingIsTheSameAfterADumpAndARestoreAndAnotherWhenACodeGoesOrComes(server: DatabaseServer) async throws {
        try await Self.on(server, .pluginHub, ["ada"]) { stage in
            let mapping = "SELECT postbell.mapping()::text"
            let before = try await stage.texts(mapping)[0]
            let file = stage.directory.appending(path: "hub.dump").path
            let from = try "\(server.connectionString()) dbname=\(stage.database.name)"
            let dump = try await CommandRun.of(
                try server.program("pg_dump"), ["--format=custom", "--file=\(file)", "--dbname=\(from)"],
                environment: ["PATH": "/usr/bin:/bin"], in: stage.directory)
            #expect(dump.status == 0, "\(dump.errors)")
            try await TemporaryDatabase.empty(on: server) { restored in
                let to = try "\(server.connectionString()) dbname=\(restored.name)"
                let restore = try await CommandRun.of(
                    try server.program("pg_restore"), ["--dbname=\(to)", file],
                    environment: ["PATH": "/usr/bin:/bin"], in: stage.directory)
                #expect(restore.status == 0, "\(restore.errors)")
                let session = try await restored.connect()
                let after = try await session.execute(mapping).text(0, 0)
                #expect(after == before)
                // A plugin that goes takes its codes along, and brings the same mapping back.
                var versions: Set<String> = [try Self.version(of: before)]
                for call in ["uninstall_codes()", #"install_codes('{"1": {"title": "One"}}')"#] {
                    try await session.execute("SET ROLE hub_plugin_music; SELECT postbell.\(call); RESET ROLE")
                    versions.insert(try await session.execute("SELECT postbell.mapping_version()").text(0, 0))
                }
                #expect(versions.count == 3)
                try await session.execute("SET ROLE hub_plugin_music; \(Self.codes); RESET ROLE")
                #expect(try await session.execute(mapping).text(0, 0) == before)
                await session.close()
            }
            #expect(try await stage.texts(mapping)[0] == before)
        }
    }

    private static let codes = #"""
        SELECT postbell.install_codes('{
            "12.3": {"title": "{n} new tracks", "target": "music", "route": "music/{id}", "thread": "music"}}')
        """#

    private static func version(of mapping: String) throws -> String {
        let object = try JSONSerialization.jsonObject(with: Data(mapping.utf8)) as? [String: Any]
        return try #require(object?["version"] as? String)
    }
}
