import FCM
import OutboxCore
import Support
import Testing

/// Whatever comes, an outcome comes of it, and never one that does harm.
@Suite struct FCMHostileAnswerTests {
    /// SplitMix64: a failure names its seed, and the seed brings it back.
    private struct Generator: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var value = state
            value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
            value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
            return value ^ (value >> 31)
        }
    }

    private static let oddBodies: [String] = [
        "", " ", "null", "[]", "{}", "{", "\"", "{\"error\":null}", "{\"error\":[]}", "{\"error\":{\"details\":{}}}",
        "{\"error\":{\"details\":[[],[[]],\"x\",1,null,{},{\"@type\":{}}]}}",
        "{\"error\":{\"status\":\"NEW\",\"details\":[{\"@type\":\"a/b\",\"errorCode\":\"UNREGISTERED\"}]}}",
        FCMAnswer.error("NEW", FCMAnswer.detail("NEWER")),
        FCMAnswer.error("UNREGISTERED", message: FCMAnswer.badToken),
        FCMAnswer.error("NOT_FOUND", message: "Requested entity was not found."),
        FCMAnswer.error("NEW", FCMAnswer.detail("\\u0055NREGISTERED")),
        FCMAnswer.error("NEW", message: FCMAnswer.badToken, FCMAnswer.badRequest("message.token")),
        "<html><head><title>502</title></head></html>", "\u{FEFF}{}",
    ]
    /// As large as the transport lets a body become.
    private static let largeBodies: [String] = [
        String(repeating: "{\"error\":", count: 1700), String(repeating: "[", count: 16_384),
        "{\"error\":{\"status\":\"" + String(repeating: "A", count: 16_000) + "\"}}",
        "{\"error\":{\"details\":[" + String(repeating: "{},", count: 5000) + "{}]}}",
    ]

    @Test func `no unknown answer clears a token or concerns more than it must`() {
        for status in 100...999 where status != 200 {
            // Large ones only under the statuses that are read in more ways than one.
            let isTold = [302, 400, 401, 403, 404, 429, 500].contains(status)
            for body in Self.oddBodies + (isTold ? Self.largeBodies : []) {
                let outcome = MadeResponse(status, body, captured: ["x", "y"]).decoded()
                #expect(outcome.proof == .none && outcome.kind != .unregistered, "\(status) \(body.prefix(80))")
                #expect(outcome.kind != .delivered && outcome.status == Int16(status))
                // What ends a notification is this one's alone; what concerns the lane keeps its rows.
                if outcome.kind == .rejected { #expect(outcome.scope == .target) }
                if outcome.scope == .lane { #expect(outcome.kind == .misconfigured || outcome.kind == .throttled) }
                #expect(outcome.retryFloor <= .seconds(3600) && outcome.retryFloor >= .zero)
                #expect(outcome.reason.utf8.count <= FCMResponseDecoder.reasonLimit && !outcome.reason.isEmpty)
            }
        }
    }

    @Test(arguments: 0..<32) func `random bytes, and Google's answers with random faults in them, are survived`(
        seed: UInt64
    ) {
        var random = Generator(state: seed)
        for _ in 0..<200 {
            let status = Int.random(in: 100...999, using: &random)
            var body: [UInt8]
            if Bool.random(using: &random) {
                body = (0..<Int.random(in: 0...300, using: &random)).map { _ in
                    Bool.random(using: &random)
                        ? UInt8.random(in: 0...255, using: &random)
                        : Array("{}[]\":,\\u0e1".utf8).randomElement(using: &random) ?? 0
                }
            } else {
                body = Array((ExpectedAnswer.all.randomElement(using: &random)?.body ?? "").utf8)
                for _ in 0..<Int.random(in: 1...8, using: &random) {
                    let place = Int.random(in: 0..<body.count, using: &random)
                    switch Int.random(in: 0...2, using: &random) {
                    case 0: body[place] = UInt8.random(in: 0...255, using: &random)
                    case 1: body.removeSubrange(place...)
                    default: body.insert(contentsOf: body[..<place], at: place)
                    }
                    if body.isEmpty { break }
                }
            }
            let outcome = MadeResponse(status, body).decoded()
            #expect(outcome.reason.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "seed \(seed)")
            #expect(outcome.proof != .proven || (status == 404 && outcome.reason == "UNREGISTERED"), "seed \(seed)")
            #expect(outcome.proof != .needsProvenLane || status == 400, "seed \(seed)")
        }
    }
}
