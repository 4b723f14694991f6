import OutboxCore
import Postgres
import Support
import Testing

/// Logins that are confined to one tenant, beside another one that has the same keys.
@Suite(.timeLimit(.minutes(5)))
struct TenantIsolationTests {
    /// Statements per role.
    private static let count = 1000

    /// What a run of all roles' statements came to.
    private struct Run {
        var answers: [[String]] = []
        var mine: [String] = []
        /// The other tenant before and after; what has lost its token to a registration is left out.
        var other: [[String]] = []
    }

    /// The roles take turns, so that each meets what the others have done.
    private static func statements(seed: UInt64) -> [(role: String, attempt: TenantStatements.Attempt)] {
        var statements = TenantStatements(seed: seed)
        return (0..<count).flatMap { _ in
            TenantStatements.roles.map { ($0, statements.next(for: $0)) }
        }
    }

    private static func run(
        _ statements: [(role: String, attempt: TenantStatements.Attempt)], on server: DatabaseServer, isShared: Bool
    ) async throws -> Run {
        try await TenantScene.on(server, isShared: isShared) { scene in
            var run = Run()
            run.other.append(try await scene.possessions(of: "other"))
            for (role, attempt) in statements {
                run.answers.append(try await scene.answers(to: attempt, as: role))
            }
            try await scene.rollBack()
            run.mine = try await scene.possessions(of: "mine")
            run.other.append(try await scene.possessions(of: "other"))
            return run
        }
    }

    /// The same seed in a database in which the other tenant has the same keys, partly in open transactions, and in one
    /// in which it does not exist.
    @Test(arguments: DatabaseServer.allCases)
    func `Nothing that a confined login can say tells what another tenant has`(server: DatabaseServer) async throws {
        let seed = UInt64.random(in: 0..<1 << 32)
        let statements = Self.statements(seed: seed)
        async let beside = Self.run(statements, on: server, isShared: true)
        async let alone = Self.run(statements, on: server, isShared: false)
        let (shared, own) = try await (beside, alone)
        var differences = 0
        for (index, (role, attempt)) in statements.enumerated() where shared.answers[index] != own.answers[index] {
            differences += 1
            guard differences <= 5 else { continue }
            Issue.record(
                """
                seed \(seed), statement \(index) of \(role): \(attempt)
                beside the other tenant: \(shared.answers[index])
                alone: \(own.answers[index])
                """)
        }
        #expect(differences == 0, "seed \(seed)")
        let known = shared.answers.joined().filter { $0.contains("of other") || $0.contains("leaked") }
        #expect(known.isEmpty, "seed \(seed)")
        #expect(
            shared.answers.joined().filter { $0.hasPrefix("55P03") || $0.hasPrefix("40") }.isEmpty,
            "seed \(seed): nobody waits")
        #expect(shared.mine == own.mine, "seed \(seed)")
        let isOfZoe = { (line: String) in line.contains(" zoe ") }
        #expect(
            shared.other[0].filter { !isOfZoe($0) } == shared.other[1].filter { !isOfZoe($0) },
            "seed \(seed): only zoe's tokens, which moved, have changed")
        // A run in which all is refused would show nothing.
        let done = zip(statements, shared.answers).filter { $1.first != "refused" && !$1.isEmpty }
        for role in TenantStatements.roles {
            #expect(done.filter { $0.0.role == role }.count > Self.count / 4, "\(role), seed \(seed)")
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Tenants that begin with an app at the same moment do not wait for each other`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            let sessions = [try await outbox.database.connect(), try await outbox.database.connect()]
            func register(_ tenant: Int, _ client: String) async throws {
                try await sessions[tenant].execute(
                    """
                    SELECT postbell.device_register(
                        'anna', '\(client)', 'fcm', 'app.fresh', 'token-of-\(tenant)-\(client)')
                    """)
            }
            for tenant in 0...1 {
                try await sessions[tenant].execute(
                    "SET lock_timeout = '300ms'; SET postbell.tenant_id = 'tenant-\(tenant)'; BEGIN")
                try await register(tenant, "phone")
            }
            for tenant in 0...1 {
                try await sessions[tenant].execute("COMMIT")
                try await register(tenant, "tablet")
                try await sessions[tenant].execute("SELECT postbell.enqueue('note', 'anna', 'k')")
            }
            let routes =
                "SELECT r.twin = 0 FROM postbell.devices d JOIN postbell.routes r USING (route_no) ORDER BY d.id"
            #expect(try await outbox.texts(routes) == ["t", "f", "t", "t"], "a twin is for devices of that moment")
            let queued =
                "SELECT t.tenant_id || ' ' || r.app FROM postbell.queue JOIN postbell.routes r USING (route_no) "
                + "JOIN postbell.tenants t USING (tenant_no) ORDER BY 1"
            #expect(
                try await outbox.texts(queued) == ["tenant-0 app.fresh", "tenant-1 app.fresh", "tenant-1 app.fresh"])
            for session in sessions { await session.close() }
        }
    }
}
