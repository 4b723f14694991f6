import APNS
import Foundation
import OutboxCore
import Testing

/// docs/providers.md shows the tables of the code, so that neither can be changed alone.
@Suite struct APNSDocumentTests {
    private static func document() throws -> String {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("docs/providers.md")
        return try String(contentsOf: file, encoding: .utf8)
    }

    /// The rows of the table that follows the heading line `header`.
    private static func rows(below header: String) throws -> [String] {
        let lines = try document().components(separatedBy: "\n")
        let start = try #require(lines.firstIndex(of: header), "docs/providers.md has no table \(header)")
        return Array(lines[(start + 2)...].prefix { $0.hasPrefix("|") })
    }

    private static func wait(_ floor: APNSReason.Floor) -> String {
        switch floor {
        case .none: "–"
        case .serverError: "`POSTBELL_APNS_5XX_DELAY`"
        case .fixed(let duration): "\(duration.components.seconds) s"
        }
    }

    private static func token(_ proof: TokenProof) -> String {
        switch proof {
        case .none: "kept"
        case .proven: "cleared"
        case .needsProvenLane: "cleared in a proven lane"
        }
    }

    private static func advice(_ advice: LaneAdvice) -> String {
        switch advice {
        case .none: "–"
        case .replaceToken: "one new provider token, new connection"
        case .keepToken: "no new provider token"
        case .reconnect: "new connection"
        }
    }

    @Test func `the table of answers in the documentation is the one in the code`() throws {
        let header = "| status | reason | outcome | concerns | device token | waits at least | lane | meaning |"
        let expected = APNSReason.table.map { row in
            "| \(row.status) | `\(row.reason)` | `\(row.kind.name)` | \(row.scope) | \(Self.token(row.proof)) "
                + "| \(Self.wait(row.floor)) | \(Self.advice(row.advice)) | \(row.meaning) |"
        }
        let found = try Self.rows(below: header)
        #expect(found == expected, "should be:\n\(expected.joined(separator: "\n"))")
    }

    private static func content(_ form: APNSPushType.Form) -> String {
        switch form {
        case .alert: "a title or a body"
        case .app: "what the app makes of it"
        case .background: "identifiers, with `content-available`; nothing that shows"
        case .data: "identifiers; nothing that shows"
        case .raw: "the producer's own payload (`raw`)"
        }
    }

    @Test func `the table of push types in the documentation is the one in the code`() throws {
        let header = "| push type | topic | priorities | payload | what its kinds hold |"
        let expected = APNSPushType.all.map { type in
            let priorities = [10, 5, 1].filter { type.allows(priority: $0) }.map(String.init).joined(separator: ", ")
            return "| `\(type.name)` | bundle id\(type.topicSuffix.isEmpty ? "" : " + `\(type.topicSuffix)`") "
                + "| \(priorities) | \(type.payloadLimit) bytes | \(Self.content(type.form)) |"
        }
        let found = try Self.rows(below: header)
        #expect(found == expected, "should be:\n\(expected.joined(separator: "\n"))")
    }
}
