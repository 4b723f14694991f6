/// With which status `postbell` ends; scripts and service managers depend on the numbers.
package enum ExitCode: Int32, CaseIterable, Sendable {
    /// Done.
    case done = 0
    /// The thing asked about is bad.
    case bad = 1
    /// The command line is wrong.
    case usage = 2
    /// The configuration or a credential is wrong.
    case configuration = 3
    /// The database or a provider cannot be reached.
    case unreachable = 4
    /// The schema is too old or too new.
    case schema = 5
    /// The database refused.
    case refused = 6

    /// What it says, in a few words.
    package var meaning: String {
        switch self {
        case .done: "done"
        case .bad: "the thing asked about is bad"
        case .usage: "wrong command line"
        case .configuration: "wrong configuration or credential"
        case .unreachable: "database or provider cannot be reached"
        case .schema: "schema too old or too new"
        case .refused: "refused by the database"
        }
    }
}
