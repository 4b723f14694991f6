import Foundation
import Testing

@testable import Operations

@Suite struct OperationsPageTests {
    @Test func thePageKnowsEveryCommandAndStatus() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized
        let page = try String(contentsOf: root.appending(path: "docs/operations.md"), encoding: .utf8)
        let lines = Set(page.split(separator: "\n").map(String.init))
        for command in CommandLineTool.commands {
            #expect(lines.contains("| `\(command.name.rawValue)` | \(command.summary) |"))
        }
        for topic in CheckTopic.allCases {
            #expect(lines.contains("| `\(topic.rawValue)` | \(topic.meaning) |"))
        }
        for code in ExitCode.allCases {
            #expect(lines.contains("| \(code.rawValue) | \(code.meaning) |"))
        }
    }
}
