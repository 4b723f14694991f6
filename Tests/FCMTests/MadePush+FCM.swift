import FCM
import HTTP2
import OutboxCore
import Support

extension MadePush {
    /// A registration token as Firebase makes them: an installation id, a colon, 140 characters.
    static let token = "cXyzAbcdEFGhijKLmnopqr:APA91b" + String(repeating: "Gh-7_x", count: 22)

    /// A notification to one Android device.
    static func android(_ kind: Kind = Kind(number: 1, name: "test", presentation: .template(Template(title: nil))))
        -> MadePush
    {
        var push = MadePush(kind: kind)
        push.provider = "fcm"
        push.environment = ""
        push.tokens = [token]
        return push
    }

    /// A kind whose own message stands in the payload, which is given without its last brace.
    static func raw(_ message: String) -> MadePush {
        var push = android(Kind(number: 1, name: "k", presentation: .raw))
        push.payload = "{\"apns\":{\"aps\":{}},\"fcm\":\(message)}"
        return push
    }

    func encodedForFCM() -> Encoded {
        var encoder = FCMRequestEncoder(project: "postbell-demo")
        encoder.setAuthorization("Bearer test")
        var result = Encoded()
        encode(with: &encoder, into: &result)
        return result
    }

    func encode(with encoder: inout FCMRequestEncoder, into result: inout Encoded) {
        encode(into: &result) { push, text, batch in
            encoder.begin(push, text: text, into: &batch)
        } add: { target, tag, text, batch in
            encoder.add(target, tag: tag, text: text, into: &batch)
        }
    }
}
