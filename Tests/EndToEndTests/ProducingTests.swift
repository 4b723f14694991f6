import Foundation
import Postgres
import Support
import Testing

/// The programs of `docs/producing.md`, run as they stand there.
@Suite(.timeLimit(.minutes(5)))
struct ProducingTests {
    private static let page = URL(filePath: #filePath).deletingLastPathComponent().appending(
        path: "../../docs/producing.md")
    private static let root = page.deletingLastPathComponent().deletingLastPathComponent().standardizedFileURL

    /// How a program is run: the language of its block on the page, the file it is written to, and the command, which
    /// is given the file and the two ids.
    struct Language: CustomTestStringConvertible, Sendable {
        let name: String
        let file: String
        let command: [String]

        var testDescription: String { name }
    }

    private static let languages = [
        Language(name: "sh", file: "producer.sh", command: ["/bin/sh", "producer.sh"]),
        Language(name: "python", file: "producer.py", command: ["python", "producer.py"]),
        Language(name: "js", file: "producer.cjs", command: ["/usr/bin/node", "producer.cjs"]),
        Language(
            name: "java", file: "Producer.java",
            command: ["/usr/bin/java", "-cp", "/usr/share/java/postgresql.jar", "Producer.java"]),
        Language(name: "swift", file: "main.swift", command: ["./producer"]),
    ]

    @Test(arguments: languages)
    func `A program commits its change and its notification together, once`(language: Language) async throws {
        try await Self.run(language) { scene in
            for _ in 1...2 {
                let run = try await scene.run()
                #expect(run.status == 0, "\(run.errors)")
            }
            // One transaction wrote both: xmin is the number of the one that inserted a row.
            #expect(
                try await scene.texts(
                    """
                    SELECT (o.principal_id, o.dedupe_key, o.subject, o.thread, o.payload::jsonb, a.xmin = o.xmin)
                    FROM postbell.outbox o, approvals a
                    """) == [
                        """
                        (user-42,approval.requested:\(Scene.approval),approval:\(Scene.approval),\
                        session:\(Scene.session),"{""tool_name"": ""mail.send"", ""session_id"": \
                        ""\(Scene.session)"", ""approval_id"": ""\(Scene.approval)""}",t)
                        """
                    ])
        }
    }

    @Test(arguments: languages)
    func `A refused notification rolls the change back and is named by its code`(language: Language) async throws {
        try await Self.run(language) { scene in
            _ = try await scene.texts("SELECT postbell.drop_kind('approval_requested')")
            let run = try await scene.run()
            #expect(run.status != 0)
            #expect(run.errors.contains("PB001"), "\(run.errors)")
            #expect(run.errors.contains("notification.unknown_kind"), "\(run.errors)")
            #expect(try await scene.texts("SELECT count(*)::text FROM approvals") == ["0"])
        }
    }

    // MARK: Scene

    private struct Scene {
        static let approval = "6f1c2f0e-5b52-4a41-8a5e-0d7a3c1f9b11", session = "0b8f9d6a-7c11-4b1e-9d55-3f2a6c7e8d22"
        let database: TemporaryDatabase
        let directory: URL
        let language: Language
        let environment: [String: String]

        func run() async throws -> CommandRun {
            var command = language.command
            if command[0] == "python" { command[0] = try #require(environment["TEST_PYTHON"]) }
            // The working directory is that of the program's file.
            return try await CommandRun.of(
                "/usr/bin/env", ["-C", directory.path] + command + [Self.approval, Self.session],
                environment: environment, in: directory)
        }

        func texts(_ sql: String) async throws -> [String] {
            let statement = PostgresStatement("ask", "SELECT (x.t)::text FROM (\(sql)) x(t)")
            let connection = try await database.connect()
            let result = try await connection.query(statement, PostgresParameters())
            let texts = try (0..<result.rowCount).map { try result.text($0, 0) }
            await connection.close()
            return texts
        }
    }

    private static func run(_ language: Language, _ body: (Scene) async throws -> Void) async throws {
        let text = try String(contentsOf: page, encoding: .utf8)
        try await TemporaryDatabase.migrated(on: .postgres15) { database in
            let setup = try await database.connect()
            let tables = try block("sql", of: text)
            let login = "producing_\(getpid())"
            try await setup.execute(
                """
                \(tables)
                DO $$ BEGIN CREATE ROLE \(login) LOGIN;
                EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
                GRANT postbell_producer TO \(login);
                GRANT SELECT, INSERT ON approvals TO \(login);
                """, named: "setup")
            await setup.close()
            let forwarder = try DatabaseForwarder(to: database.server.connectionString())
            forwarder.open()
            defer { forwarder.stop() }
            let directory = FileManager.default.temporaryDirectory.appending(path: "producing-\(UUID())")
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: directory) }
            try block(language.name, of: text).write(
                to: directory.appending(path: language.file), atomically: true, encoding: .utf8)
            var environment = ProcessInfo.processInfo.environment
            let address = "127.0.0.1:\(forwarder.port)/\(database.name)"
            environment["DATABASE_URL"] = "postgresql://\(login)@\(address)"
            environment["JDBC_URL"] = "jdbc:postgresql://\(address)?user=\(login)"
            environment["NODE_PATH"] = environment["TEST_NODE_PATH"]
            if language.name == "swift" { try await compile(in: directory, environment: environment) }
            try await body(
                Scene(database: database, directory: directory, language: language, environment: environment))
        }
    }

    private static func compile(in directory: URL, environment: [String: String]) async throws {
        let run = try await CommandRun.of(
            "/usr/bin/env",
            ["swiftc", "-I", root.appending(path: "Sources/CLibPQ").path, "-Xcc", "-I/usr/include/postgresql", "-o"]
                + ["producer", "main.swift"].map { directory.appending(path: $0).path },
            environment: environment, in: directory)
        #expect(run.status == 0, "\(run.errors)")
    }

    /// The first block of a language on the page.
    private static func block(_ language: String, of page: String) throws -> String {
        let parts = page.components(separatedBy: "```\(language)\n")
        return try #require(parts.dropFirst().first?.components(separatedBy: "```").first, "no block of \(language)")
    }
}
