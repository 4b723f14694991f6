/// All that `postbell check` found, and how it is shown.
struct CheckReport {
    private(set) var items: [CheckItem] = []
    /// What was to be looked at.
    private let topics: [CheckTopic]

    init(isOffline: Bool) {
        topics = CheckTopic.allCases.filter { !isOffline || $0.isOffline }
    }

    mutating func add(_ items: [CheckItem]) {
        self.items += items
    }

    /// The most fundamental of the failures: what has to be mended first before the others can be judged.
    var code: ExitCode {
        let codes = items.filter { $0.status == .failure }.map(\.code)
        return Self.order.first { codes.contains($0) } ?? .done
    }

    /// What could not be looked at, because something before it failed.
    var unseen: [CheckTopic] {
        topics.filter { topic in !items.contains { $0.topic == topic } }
    }

    private static let order: [ExitCode] = [.configuration, .unreachable, .schema, .refused, .bad]

    func write(to terminal: Terminal, asJSON isJSON: Bool) {
        if isJSON { return terminal.write(json.text + "\n") }
        let width = CheckTopic.allCases.map(\.rawValue.count).max() ?? 0
        for item in items {
            let status = terminal.paint(Self.pad(item.status.rawValue, 4), Self.style(item.status))
            let text = item.finding + (item.remedy.map { "; \($0)" } ?? "")
            terminal.write("\(status)  \(Self.pad(item.topic.rawValue, width))  \(QuotedText.line(text))\n")
        }
        terminal.write(summary + "\n")
    }

    private var summary: String {
        func count(_ status: CheckItem.Status) -> Int { items.count { $0.status == status } }
        let rest = unseen.map(\.rawValue).joined(separator: ", ")
        return "\(count(.ok)) ok, \(count(.warning)) to look at, \(count(.failure)) failed"
            + (rest.isEmpty ? "" : "; not looked at: \(rest)")
    }

    private var json: JSONText {
        .object([
            ("status", .int(Int(code.rawValue))),
            ("items", .array(items.map(Self.json))),
            ("not_looked_at", .array(unseen.map { .string($0.rawValue) })),
        ])
    }

    private static func json(_ item: CheckItem) -> JSONText {
        .object([
            ("topic", .string(item.topic.rawValue)), ("status", .string(item.status.rawValue)),
            ("finding", .string(item.finding)), ("remedy", .string(item.remedy)),
        ])
    }

    private static func pad(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    private static func style(_ status: CheckItem.Status) -> Terminal.Style {
        switch status {
        case .ok: .green
        case .warning: .yellow
        case .failure: .red
        }
    }
}
