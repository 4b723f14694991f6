import APNS
import HTTP2
import OutboxCore
import Support

extension MadePush {
    func encoded() -> Encoded {
        var encoder = APNSRequestEncoder(topics: ["com.example.app"])
        encoder.setAuthorization("bearer test")
        var result = Encoded()
        encode(with: &encoder, into: &result)
        return result
    }

    func encode(with encoder: inout APNSRequestEncoder, into result: inout Encoded) {
        encode(into: &result) { push, text, batch in
            encoder.begin(push, text: text, into: &batch)
        } add: { target, tag, text, batch in
            encoder.add(target, tag: tag, text: text, into: &batch)
        }
    }
}
