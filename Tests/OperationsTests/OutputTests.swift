import Foundation
import Testing

@testable import Operations

/// Where the program's own descriptors lead nowhere.
@Suite struct OutputTests {
    /// Redirections, and how a command that prints ends with them.
    private static let redirections: [(shell: String, status: Int32, line: String?)] = [
        (
            ">/dev/full", 1,
            "postbell: the output cannot be written: No space left on device; standard output; "
                + "write to where there is room; what the command did stays done"
        ),
        (
            ">&-", 1,
            "postbell: the output cannot be written: Bad file descriptor; standard output; "
                + "write to where there is room; what the command did stays done"
        ),
        ("<&- >/dev/null", 0, nil),
        (">/dev/null 2>&-", 0, nil),
        ("| true", 0, nil),
    ]

    @Test(arguments: redirections, ["config", "config --json", "check --offline", "--help", "--version"])
    func whatCannotBePrintedIsSaid(
        redirection: (shell: String, status: Int32, line: String?), command: String
    ) throws {
        let result = try Program.shell("\"$0\" \(command) \(redirection.shell)")
        #expect(result.status == redirection.status, "\(result.errors)")
        #expect(result.lines == (redirection.line.map { [$0] } ?? []))
    }

    @Test func aFailureKeepsItsStatusWithoutAnybodyToHearOfIt() throws {
        #expect(try Program.shell("\"$0\" dispach 2>&-").status == 2)
        #expect(try Program.shell("\"$0\" dispach 2>/dev/full").status == 2)
        #expect(try Program.shell("POSTBELL_POLL=5 \"$0\" config >/dev/full").status == 3)
    }
}
