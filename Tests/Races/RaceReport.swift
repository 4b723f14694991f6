package import Support

/// What the tries of one kind of race came to.
package struct RaceReport: Sendable {
    /// What raced, and on which server.
    package let name: String
    /// Tries that were made.
    package var tries = 0
    /// Measured things that are no counts, for the line.
    package var figures: [String] = []
    /// What broke, one line each.
    package private(set) var faults: [String] = []
    private var names: [String] = []
    private var counts: [String: Int] = [:]
    private let required, rare: [String]

    /// No tries yet. A run in which one of the `required` verdicts never came, or in a thousand tries and more one of
    /// the `rare` ones, has not shown what it is for, and is broken.
    package init(
        _ name: String, on server: DatabaseServer, requiring required: [String] = [], inMany rare: [String] = []
    ) {
        self.name = "\(name), \(server)"
        (self.required, self.rare) = (required, rare)
        for verdict in required + rare { add(verdict, 0) }
    }

    /// How often a verdict came.
    package func count(_ verdict: String) -> Int { counts[verdict] ?? 0 }

    /// Counts a verdict.
    package mutating func add(_ verdict: String, _ count: Int = 1) {
        if counts[verdict] == nil { names.append(verdict) }
        counts[verdict, default: 0] += count
    }

    /// Something that must not be was seen.
    package mutating func fail(_ fault: String) {
        faults.append(fault)
    }

    /// What broke, and what should have happened and did not.
    package var findings: [String] {
        let expected = tries < 1000 ? required : required + rare
        return faults + expected.filter { count($0) == 0 }.map { "it never happened: \($0)" }
            + (tries == 0 ? ["nothing was tried"] : [])
    }

    /// All of it in one line.
    package var line: String {
        let verdicts = names.map { "\($0) \(counts[$0] ?? 0)" }
        let parts = ["tries \(tries)"] + verdicts + figures
        let findings = findings
        return "\(name): \(parts.joined(separator: ", ")), "
            + (findings.isEmpty ? "holds" : "BROKE: \(findings.prefix(3).joined(separator: "; "))")
    }
}
