import APNS
import OutboxCore
import Testing

/// What goes with each push type (Apple: Sending notification requests to APNs). Written out by hand: the sender's own
/// table is what is tested.
@Suite struct APNSKindRulesTests {
    /// What a kind declares, as far as a push type minds.
    private enum Form: CaseIterable {
        case raw, title, body, subtitleOnly, nothing, sound, category, level, mutable

        func kind(_ type: String, _ priority: Int) -> Kind {
            let text = TemplateText("x")
            let template =
                switch self {
                case .title: Template(title: text)
                case .body: Template(title: nil, body: text)
                case .subtitleOnly: Template(title: nil, subtitle: text)
                default: Template(title: nil)
                }
            return Kind(
                number: 1, name: "k", presentation: self == .raw ? .raw : .template(template), pushType: type,
                priority: priority, interruptionLevel: self == .level ? "passive" : nil,
                category: self == .category ? "c" : nil, sound: self == .sound ? "default" : nil,
                isMutable: self == .mutable)
        }
    }

    private static let alert: Set<Form> = [.raw, .title, .body]
    private static let silent: Set<Form> = [.raw, .nothing]
    private static let rows: [(type: String, priorities: Set<Int>, forms: Set<Form>)] = [
        ("alert", [10, 5, 1], alert), ("background", [5], silent), ("voip", [10, 5, 1], Set(Form.allCases)),
        ("complication", [10, 5, 1], silent), ("fileprovider", [10, 5, 1], silent), ("mdm", [10, 5, 1], [.raw]),
        ("location", [10, 5], silent), ("liveactivity", [10, 5], [.raw]), ("pushtotalk", [10, 5, 1], silent),
        ("widgets", [10, 5, 1], [.raw]), ("controls", [10, 5, 1], [.raw]), ("shout", [], []), ("", [], []),
    ]

    @Test(arguments: rows)
    private func `each push type with each priority and form`(type: String, priorities: Set<Int>, forms: Set<Form>) {
        for priority in [10, 5, 1, 0, 7, -1] {
            for form in Form.allCases {
                let fault = APNSPushType.fault(of: form.kind(type, priority))
                let isSound = priorities.contains(priority) && forms.contains(form)
                #expect((fault == nil) == isSound, "\(type) \(priority) \(form): \(fault ?? "taken")")
            }
        }
    }

    @Test func `the table has every push type once`() {
        #expect(APNSPushType.all.map(\.name) == Self.rows.filter { !$0.priorities.isEmpty }.map(\.type))
    }

    /// A template whose fixed part alone is too large can never be sent; its values may be empty.
    @Test(arguments: [("alert", 4096), ("voip", 5120)])
    func `fixed texts that fill the payload are too many`(type: String, limit: Int) {
        func kind(_ bytes: Int) -> Kind {
            let title = TemplateText(String(repeating: "ü", count: 1000) + "{value}{{")
            let body = TemplateText(String(repeating: "x", count: bytes - 2001 - 7 - 6))
            return Kind(
                number: 1, name: "k", presentation: .template(Template(title: title, body: body)), container: "payload",
                pushType: type, sound: "sonar!")
        }
        #expect(APNSPushType.fault(of: kind(limit)) == nil)
        #expect(
            APNSPushType.fault(of: kind(limit + 1))
                == "its fixed texts have \(limit + 1) bytes, push type \(type) takes \(limit) for the whole payload")
    }
}
