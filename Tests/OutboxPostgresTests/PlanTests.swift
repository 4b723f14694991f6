import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// S1: in a worker's session hash and merge joins are off, so a join of two CTEs would be quadratic.
@Suite(.timeLimit(.minutes(5)))
struct PlanTests {
    static let statements = [
        ClaimStatement.clean, ClaimStatement.suspect, SettleStatement.statement, RecheckStatement.statement,
        AdoptStatement.statement, ResolveUnroutedStatement.statement, SweepStatement.statement,
        WaitingStatement.statement, RenewStatement.statement,
    ]

    @Test(arguments: DatabaseServer.allCases)
    func `No statement of the worker joins two CTEs or reads a table whole`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let worker = try await outbox.worker()
            for statement in Self.statements {
                let nulls = statement.parameterTypes.map { _ in "NULL" }.joined(separator: ", ")
                try await worker.connection.execute("PREPARE planned AS \(statement.sql)")
                let plan = try await worker.connection.texts("EXPLAIN EXECUTE planned(\(nulls))")
                try await worker.connection.execute("DEALLOCATE planned")
                #expect(Self.joinsOfCTEs(in: plan).isEmpty, "\(statement.name): \(plan.joined(separator: "\n"))")
                #expect(
                    !plan.contains { $0.contains("Seq Scan on") },
                    "\(statement.name): \(plan.joined(separator: "\n"))")
            }
        }
    }

    /// A path that is off costs 10^10, so a statement that takes one would be compiled at each call.
    @Test(arguments: DatabaseServer.allCases)
    func `Nothing that a worker or a producer runs is compiled`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let worker = try await outbox.worker()
            let plan = try await worker.connection.texts(
                "EXPLAIN SELECT FROM postbell.leases WHERE until < now() ORDER BY until")
            #expect(plan.contains { $0.contains("Seq Scan on") }, "\(plan.joined(separator: "\n"))")
            #expect(!plan.contains { $0.contains("JIT") }, "\(plan.joined(separator: "\n"))")
            // A plan that was made for many rows serves the single row after them.
            let settings = "SELECT array_to_string(proconfig, ' ') FROM pg_proc WHERE proname = 'outbox_enqueue'"
            #expect(try await outbox.value(settings).contains("jit=off"))
        }
    }

    @Test func `A join of two CTEs is recognised`() {
        let plan = ["Nested Loop", "  ->  CTE Scan on a", "  ->  Materialize", "        ->  CTE Scan on b"]
        #expect(Self.joinsOfCTEs(in: plan) == ["Nested Loop"])
        #expect(Self.joinsOfCTEs(in: [plan[0], plan[1], "  ->  Index Scan using i on t"]).isEmpty)
    }

    /// Joins of a plan in text form of whose two inputs both are CTEs, also through a Materialize or Sort.
    static func joinsOfCTEs(in plan: [String]) -> [String] {
        func depth(_ line: String) -> Int? {
            guard let arrow = line.firstRange(of: "->") else { return nil }
            return line.distance(from: line.startIndex, to: arrow.lowerBound)
        }
        var found: [String] = []
        for (index, line) in plan.enumerated()
        where ["Nested Loop", "Hash Join", "Merge Join"].contains(where: line.contains) {
            let own = depth(line) ?? -1
            var inputs: [Int] = []
            var inputsOfCTEs: Set<Int> = []
            for (offset, below) in plan[(index + 1)...].enumerated() {
                guard let place = depth(below) else { continue }
                if place <= own { break }
                let isInput = inputs.isEmpty || place == depth(plan[inputs[0]])
                if isInput { inputs.append(index + 1 + offset) }
                if below.contains("CTE Scan"), let input = inputs.last {
                    let between = plan[input...(index + 1 + offset)].dropLast()
                    if between.allSatisfy({ $0.contains("Materialize") || $0.contains("Sort") }) {
                        inputsOfCTEs.insert(input)
                    }
                }
            }
            if inputsOfCTEs.count == 2 { found.append(line) }
        }
        return found
    }
}
