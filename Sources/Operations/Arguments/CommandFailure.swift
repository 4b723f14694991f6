/// A command cannot go on. It is said in one line per trouble, and decides the exit status.
package struct CommandFailure: Error, Sendable, Equatable {
    /// The status to end with.
    package let code: ExitCode
    /// What, where, and what to do; at least one.
    package let problems: [ConfigurationProblem]

    /// A failure with one trouble in three parts: what is wrong, where, and the next step. No part may hold a secret.
    package init(_ code: ExitCode, what: String, place: String, next: String) {
        self.code = code
        problems = [ConfigurationProblem(what: what, place: place, next: next)]
    }

    /// A configuration that is refused.
    package init(_ configuration: ConfigurationProblems) {
        code = .configuration
        problems = configuration.problems
    }

    /// An environment file that is refused.
    init(_ file: EnvironmentFileError) {
        let place = file.line.map { "\(QuotedText.escape(file.path)) line \($0)" } ?? QuotedText.escape(file.path)
        self.init(
            .configuration, what: "the environment file \(file.what)", place: place,
            next: "correct it; its format is that of systemd's EnvironmentFile=")
    }
}
