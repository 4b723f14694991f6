import OutboxCore
import Testing

@testable import FCM

@Suite struct FCMKindRulesTests {
    @Test(arguments: [
        ("from", true), ("message_type", true), ("google.ttl", true), ("gcm", true), ("gcm.x", true), ("sender", false),
        ("From", false), ("goog", false),
    ])
    func `a kind with a key of Google's own is named when the catalog is read`(key: String, isReserved: Bool) {
        let kind = Kind(
            number: 1, name: "k", presentation: .template(Template(title: TemplateText("x"))),
            keys: [PayloadKey(name: "id", type: .uuid), PayloadKey(name: key, type: .slug)])
        #expect(FCMBody.fault(of: kind) == (isReserved ? "payload key \"\(key)\" is reserved by FCM" : nil))
    }
}
