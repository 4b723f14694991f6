import APNS
import FCM
import Foundation
import OutboxCore

/// docs/providers.md: prose that people write, and tables that the code writes. A table stands between a line
/// `<!-- table: NAME -->` and a line `<!-- end of table -->`.
struct ProviderPage {
    /// One line of a table of answers.
    struct Answer {
        let status: String
        let reason: String
        let meaning: String
        let kind: OutcomeKind
        let scope: FaultScope
        let proof: TokenProof
        let wait: String
        let advice: LaneAdvice
        let remedy: String
    }

    static let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../docs/providers.md")
        .standardized

    private static let none = "–"
    private static let start = "<!-- table: "
    private static let end = "<!-- end of table -->"

    /// The page with all its tables written anew.
    static func markdown(of page: String) -> String {
        var lines: [String] = []
        var isTable = false
        for line in page.components(separatedBy: "\n") {
            if line == end { isTable = false }
            guard !isTable else { continue }
            lines.append(line)
            guard line.hasPrefix(start), line.hasSuffix(" -->") else { continue }
            lines += table(String(line.dropFirst(start.count).dropLast(" -->".count)))
            isTable = true
        }
        return lines.joined(separator: "\n")
    }

    /// The names of the tables that a page has.
    static func tables(of page: String) -> [String] {
        page.components(separatedBy: "\n").filter { $0.hasPrefix(start) }
            .map { String($0.dropFirst(start.count).dropLast(" -->".count)) }
    }

    private static func table(_ name: String) -> [String] {
        switch name {
        case "APNs push types": pushTypes
        case "APNs answers": answers(apns)
        case "FCM answers": answers(fcm)
        case "token endpoint answers": tokenEndpoint
        default: ["there is no table \(name)"]
        }
    }

    private static func rows(_ header: [String], _ rows: [[String]]) -> [String] {
        ([header, header.map { _ in "---" }] + rows).map { "| " + $0.joined(separator: " | ") + " |" }
    }

    private static func answers(_ answers: [Answer]) -> [String] {
        rows(
            [
                "status", "reason", "meaning", "outcome", "concerns", "device token", "waits at least", "the lane",
                "what to do",
            ],
            answers.map { answer in
                [
                    answer.status, answer.reason, answer.meaning, "`\(answer.kind.name)`", "\(answer.scope)",
                    token(answer.proof), answer.wait, advice(answer.advice),
                    answer.remedy.isEmpty ? none : answer.remedy,
                ]
            })
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
        case .none: none
        case .replaceToken: "one new token, new connection"
        case .keepToken: "no new token"
        case .reconnect: "new connection"
        }
    }

    // MARK: APNs

    private static let apns: [Answer] =
        APNSReason.table.map { answer($0, "\($0.status)", "`\($0.reason)`") }
        + [("403", 403), ("410", 410), ("429", 429), ("5xx", 500), ("status", 400)].map { name, status in
            answer(APNSReason.unknown(status: status), "any other \(name)", "")
        }

    private static func answer(_ row: APNSReason, _ status: String, _ reason: String) -> Answer {
        let wait =
            switch row.floor {
            case .none: none
            case .serverError: "`POSTBELL_APNS_5XX_DELAY`"
            case .fixed(let duration): "\(duration.components.seconds) s"
            }
        return Answer(
            status: status, reason: reason, meaning: row.meaning, kind: row.kind, scope: row.scope, proof: row.proof,
            wait: wait, advice: row.advice, remedy: row.remedy)
    }

    private static let pushTypes = rows(
        ["push type", "topic", "priorities", "payload", "what its kinds hold"],
        APNSPushType.all.map { type in
            [
                "`\(type.name)`", type.topicSuffix.isEmpty ? "bundle id" : "bundle id + `\(type.topicSuffix)`",
                [10, 5, 1].filter { type.allows(priority: $0) }.map(String.init).joined(separator: ", "),
                "\(type.payloadLimit) bytes", content(type.form),
            ]
        })

    private static func content(_ form: APNSPushType.Form) -> String {
        switch form {
        case .alert: "a title or a body"
        case .app: "what the app makes of it"
        case .background: "identifiers, with `content-available`; nothing that shows"
        case .data: "identifiers; nothing that shows"
        case .raw: "the producer's own payload (`raw`)"
        }
    }

    // MARK: FCM

    private static let fcm: [Answer] =
        FCMReason.table.map { answer($0, $0.status == 0 ? "any error" : "\($0.status)", "`\($0.reason)`") }
        + [("401", 401), ("403", 403), ("404", 404), ("429", 429), ("5xx", 500), ("status", 400)].map { name, status in
            answer(FCMReason.unknown(status: status), "any other \(name)", "")
        }

    private static func answer(_ row: FCMReason, _ status: String, _ reason: String) -> Answer {
        let wait =
            switch row.floor {
            case .none: none
            case .throttle: "`POSTBELL_FCM_429_DELAY`"
            case .fixed(let duration): "\(duration.components.seconds) s"
            }
        return Answer(
            status: status, reason: reason, meaning: row.meaning, kind: row.kind, scope: row.scope, proof: row.proof,
            wait: wait, advice: row.advice, remedy: row.remedy)
    }

    private static let tokenEndpoint = rows(
        ["status", "error", "meaning", "effect", "what to do"],
        TokenEndpointReason.table.map { row in
            let status = row.status.map { $0 == 500 ? "5xx" : "\($0)" } ?? "any"
            let reading = row.reading.map { " (\($0))" } ?? ""
            return [
                status, row.error.map { "`\($0)`\(reading)" } ?? "any", row.meaning,
                row.effect == .refused
                    ? "the lane pauses as `misconfigured`" : "nothing is sent; asked again with backoff",
                row.remedy.isEmpty ? none : row.remedy,
            ]
        })
}
