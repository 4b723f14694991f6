import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// From an earlier revision to this one while people work: what each migration locks, and who may run on.
@Suite(.timeLimit(.minutes(5)))
struct UpgradeTests {
    /// The earlier revision that these tests come from.
    private static let before = 16

    private static var earlier: [Migration] { Migration.all.filter { $0.version <= before } }

    /// A worker that was there before does everything that a worker does, on the sessions and with the statements that
    /// it had, while and after the schema goes on; also after one of the new state has worked there and died.
    @Test(arguments: DatabaseServer.allCases)
    func `A worker of the earlier state works on through the upgrade, and again after a new one`(
        server: DatabaseServer
    ) async throws {
        try await Self.earlierState(on: server) { outbox in
            let old = try await outbox.worker()
            try await outbox.enqueue("a", "b", "c")
            let held = try await old.claimed()
            try await Self.everything(old, outbox, key: "before")
            try await MigrationRunner(outbox.admin).apply()
            #expect(try await old.renew(held.identifier).count == 1)
            #expect(try await old.recheck(held) == [nil, nil, nil])
            #expect(try await old.settle(held.flush(1, 2)).ledgerRows == 2)
            try await Self.everything(old, outbox, key: "after")
            let new = try await outbox.worker()
            try await Self.everything(new, outbox, key: "new")
            _ = try await new.query(RetainStatement.command(limit: 10))
            // The new one dies with a lease, and the old one takes over.
            try await outbox.enqueue("left")
            _ = try await new.claimed(lease: .microseconds(1))
            await new.connection.close()
            #expect(try await old.adopt(held.identifier) == 1)
            #expect(try await old.recover().leases == 1)
            try await outbox.run("UPDATE postbell.queue SET due_at = now()")
            for crashClass in [CrashClass.clean, .once] {
                while let batch = try await old.claim(crashClass: crashClass) {
                    for position in batch.dispatches.indices { _ = try await old.settle(batch.flush(position + 1)) }
                }
            }
            #expect(try await outbox.places().filter { !$0.contains(" dispatched") && !$0.hasPrefix("over-") } == [])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `The earlier schema with its rows becomes the one that an empty database becomes`(
        server: DatabaseServer
    ) async throws {
        let wanted = try await TemporaryDatabase.migrated(on: server) { database in
            let session = try await database.connect()
            let text = try await session.schemaText()
            await session.close()
            return text
        }
        try await Self.earlierState(on: server) { outbox in
            try await outbox.enqueue("a")
            #expect(try await outbox.admin.schemaText() != wanted)
            #expect(try await MigrationRunner(outbox.admin).apply().map(\.version) == Self.versions(after: Self.before))
            let text = try await outbox.admin.schemaText()
            #expect(text.filter { !wanted.contains($0) } == [])
            #expect(wanted.filter { !text.contains($0) } == [])
            #expect(try await outbox.places() == ["a queue"])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Each state refuses the other: what is too old as what it does not know`(
        server: DatabaseServer
    ) async throws {
        try await Self.earlierState(on: server) { outbox in
            #expect(try await SchemaRevision.read(from: outbox.admin) == .tooOld(Self.before))
            try await MigrationRunner(outbox.admin).apply()
            let earlier = MigrationRunner(outbox.admin, migrations: Self.earlier)
            #expect(SchemaRevision.judge(try await earlier.status()) == .tooNew(SchemaRevision.expected))
            let first = Self.versions(after: Self.before)[0]
            await #expect(throws: MigrationError.tooNew(version: first)) { try await earlier.apply() }
            #expect(try await SchemaRevision.read(from: outbox.admin) == .current)
        }
    }

    /// What a migration locks of what was there before it, that gets in anybody's way: in its file, or not at all.
    @Test(arguments: DatabaseServer.allCases)
    func `Each migration takes the locks that its file states, and no others`(server: DatabaseServer) async throws {
        try await TemporaryDatabase.empty(on: server) { database in
            let session = try await database.connect()
            for migration in Migration.all {
                try await session.execute("BEGIN; CREATE TEMP TABLE known ON COMMIT DROP AS SELECT oid FROM pg_class")
                try await session.execute(migration.sql)
                let locks = try await session.texts(
                    """
                    SELECT DISTINCT c.relname || ' ' || l.mode
                    FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
                    WHERE l.pid = pg_backend_pid() AND c.relnamespace = to_regnamespace('postbell')
                        AND c.relkind IN ('r', 'p') AND l.relation IN (SELECT oid FROM known)
                        AND l.mode NOT IN ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock')
                    """)
                try await session.execute("COMMIT")
                let stated = Self.statedLocks(of: migration)
                for lock in locks {
                    let words = lock.split(separator: " ")
                    let (table, mode) = (String(words[0]), Self.words(of: String(words[1])))
                    let name = table == "deliveries_default" ? "its empty default partition" : table
                    #expect(
                        stated.contains(mode) && (stated.contains(name) || stated.contains("each table")),
                        "\(migration.version) takes \(mode) on \(table)")
                }
                #expect(
                    locks.isEmpty == stated.hasPrefix("none"), "\(migration.version) states \(stated), takes \(locks)")
            }
            await session.close()
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Two databases of one cluster share the roles, and nothing else`(server: DatabaseServer) async throws {
        try await TemporaryDatabase.empty(on: server) { first in
            try await TemporaryDatabase.empty(on: server) { second in
                let sessions = (try await first.connect(), try await second.connect())
                async let one = MigrationRunner(sessions.0).apply()
                async let two = MigrationRunner(sessions.1).apply()
                #expect(try await one.count == Migration.all.count)
                #expect(try await two.count == Migration.all.count)
                let login = "shared_\(first.name)"
                try await sessions.0.execute(
                    """
                    CREATE ROLE \(login) LOGIN; GRANT postbell_producer, postbell_reader TO \(login);
                    SELECT postbell.define_kind('note', 'template', '{}', '{"title": "x"}');
                    INSERT INTO postbell.role_tenants VALUES ('\(login)', 'mine')
                    """)
                try await sessions.1.execute(
                    "SELECT postbell.define_kind('note', 'template', '{}', '{\"title\": \"x\"}')")
                for (database, refusal) in [(first, "PB005"), (second, nil)] as [(TemporaryDatabase, String?)] {
                    let session = try await database.connect(login: login)
                    #expect(await session.refusal("SELECT postbell.enqueue('note', 'anna', 'a')") == refusal)
                    await session.close()
                }
                for (session, count) in [(sessions.0, "0"), (sessions.1, "1")] {
                    #expect(try await session.texts("SELECT count(*) FROM postbell.outbox") == [count])
                    try await session.execute("DROP OWNED BY \(login)")
                }
                try await sessions.0.execute("DROP ROLE \(login)")
                await sessions.0.close()
                await sessions.1.close()
            }
        }
    }

    // MARK: Scene

    /// A database of the earlier revision with a kind, routes and a device. By the audit of the newest it is clean at
    /// its end.
    private static func earlierState(
        on server: DatabaseServer, _ body: (Outbox) async throws -> Void
    ) async throws {
        try await TemporaryDatabase.empty(on: server) { database in
            let outbox = Outbox(database: database, admin: try await database.connect())
            try await MigrationRunner(outbox.admin, migrations: earlier).apply()
            try await outbox.run(
                """
                SELECT postbell.define_kind('note', 'template', '{}', '{"title": "Note"}', wait_for_device => '0');
                INSERT INTO postbell.routes (provider, environment, app)
                VALUES ('apns', 'production', 'app.one'), ('fcm', NULL, 'app.two')
                """)
            try await outbox.device()
            try await body(outbox)
            #expect(try await outbox.faults() == [])
            await outbox.admin.close()
        }
    }

    /// Each statement of a worker once, on its own session: what it has prepared there, it uses again.
    private static func everything(_ worker: Worker, _ outbox: Outbox, key: String) async throws {
        try await outbox.enqueue("sent-\(key)", "over-\(key)", more: "subject => '\(key)'")
        try await outbox.enqueue("nobody-\(key)", to: "nobody")
        _ = try await worker.query(
            WorkerStatement.registration(owner: worker.owner, name: "w", version: "1", lanes: [], hooks: []))
        _ = try await worker.query(PostgresCommand(CatalogStatement.kinds))
        _ = try await worker.query(PostgresCommand(CatalogStatement.routes))
        _ = try await worker.query(PostgresCommand(UnservedStatement.statement))
        let batch = try await worker.claimed(2)
        #expect(try await worker.recheck(batch) == [nil, nil])
        #expect(try await worker.renew(batch.identifier).count == 1)
        var flush = batch.flush(1)
        flush.leaving.append(2)
        flush.returns = [.back(2, after: .seconds(60))]
        _ = try await worker.settle(flush)
        #expect(try await worker.apply(batch.effect(.succeeded)) == [])
        try await outbox.run("SELECT postbell.supersede('default', '\(key)')")
        #expect(try await worker.sweep() == 1)
        #expect(try await worker.resolve() == 1)
        _ = try await worker.recover()
        _ = try await worker.query(RetryHeldStatement.command(on: [1], limit: 10))
        _ = try await worker.query(PartitionStatement.command(daysAhead: 3, lockTimeout: "200ms"))
        _ = try await worker.query(PruneKeysStatement.command(limit: 10))
    }

    private static func versions(after version: Int) -> [Int] {
        Migration.all.map(\.version).filter { $0 > version }
    }

    /// What the comment on top of the file says behind `Locks:`, up to the next such word.
    private static func statedLocks(of migration: Migration) -> String {
        let head = migration.sql.split(separator: "\n", omittingEmptySubsequences: false).prefix { $0.hasPrefix("--") }
        let lines = head.map { $0.dropFirst(2).drop { $0 == " " } }.drop { !$0.hasPrefix("Locks: ") }
        let paragraph = lines.prefix(1) + lines.dropFirst().prefix { !$0.contains("workers:") }
        return String(paragraph.joined(separator: " ").dropFirst("Locks: ".count))
    }

    /// `ShareRowExclusiveLock` as people write it.
    private static func words(of mode: String) -> String {
        mode.dropLast("Lock".count).reduce(into: "") { words, letter in
            if letter.isUppercase && !words.isEmpty { words.append(" ") }
            words.append(contentsOf: letter.uppercased())
        }
    }
}
