/// One line of `postbell check`.
package struct CheckItem: Sendable, Equatable {
    /// How it stands.
    package enum Status: String, Sendable {
        /// In order.
        case ok
        /// It works, and somebody should look at it.
        case warning = "warn"
        /// It does not work.
        case failure = "fail"
    }

    /// What it is about.
    package let topic: CheckTopic
    /// How it stands.
    package let status: Status
    /// What was found; no secret is repeated.
    package let finding: String
    /// What to do; nil when nothing has to be done.
    package let remedy: String?
    /// The status with which a failure lets the command end.
    package let code: ExitCode

    /// Something that is in order.
    package static func ok(_ topic: CheckTopic, _ finding: String) -> CheckItem {
        CheckItem(topic: topic, status: .ok, finding: finding, remedy: nil, code: .done)
    }

    /// Something that works and should be looked at.
    package static func warning(_ topic: CheckTopic, _ finding: String, next remedy: String) -> CheckItem {
        CheckItem(topic: topic, status: .warning, finding: finding, remedy: remedy, code: .done)
    }

    /// Something that does not work.
    package static func failure(
        _ topic: CheckTopic, _ code: ExitCode, _ finding: String, next remedy: String
    ) -> CheckItem {
        CheckItem(topic: topic, status: .failure, finding: finding, remedy: remedy, code: code)
    }

    /// What would end another command by its one problem.
    static func failure(_ topic: CheckTopic, _ failure: CommandFailure) -> CheckItem {
        guard let item = failures(topic, failure).first else { preconditionFailure("a failure has a problem") }
        return item
    }

    /// What would end another command: a line for each of its problems.
    package static func failures(_ topic: CheckTopic, _ failure: CommandFailure) -> [CheckItem] {
        failure.problems.map { problem in
            .failure(topic, failure.code, "\(problem.what); \(problem.place)", next: problem.next)
        }
    }
}
