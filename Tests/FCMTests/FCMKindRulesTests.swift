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

    @Test func `a member of a dictionary with a name of Google's own is named, too`() {
        func fault(data: [DataMember]?, fcm: [DataMember]?) -> String? {
            FCMBody.fault(
                of: Kind(
                    number: 1, name: "k", presentation: .template(Template(title: TemplateText("x"))), data: data,
                    fcmData: fcm))
        }
        let good = [DataMember("v", .own(.id))]
        let bad = [DataMember("v", .own(.id)), DataMember("google.x", .own(.id))]
        #expect(fault(data: good, fcm: good) == nil)
        #expect(fault(data: bad, fcm: nil) == "member \"google.x\" is reserved by FCM")
        #expect(fault(data: good, fcm: bad) == "member \"google.x\" is reserved by FCM")
    }
}
