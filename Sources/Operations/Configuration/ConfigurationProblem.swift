/// Something in the configuration that keeps a command from starting.
package struct ConfigurationProblem: Error, Sendable, Equatable {
    /// What is wrong; no secret is repeated.
    package let what: String
    /// Where it was set.
    package let place: String
    /// What to do.
    package let next: String

    /// A problem in its three parts, none of which ends with a full stop.
    package init(what: String, place: String, next: String) {
        self.what = what
        self.place = place
        self.next = next
    }

    /// The three parts in one line.
    package var line: String {
        "\(what); \(place); \(next)"
    }
}

/// Everything that is wrong with the configuration, at once.
package struct ConfigurationProblems: Error, Sendable, Equatable {
    /// At least one.
    package let problems: [ConfigurationProblem]

    /// All of `problems`, of which there is at least one.
    package init(problems: [ConfigurationProblem]) {
        self.problems = problems
    }
}
