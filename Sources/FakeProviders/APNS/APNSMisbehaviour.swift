/// Misbehaviour on request: a device token that begins with `fa`, a three-digit code and perhaps a digit.
///
/// The digit says for how many requests with that token the misbehaviour lasts (1 to 9); then they are accepted.
/// Without one (a letter, a 0 or the token's end in its place) it lasts for ever.
struct APNSMisbehaviour {
    private var tries: [String: Int] = [:]
    private let slowness: Duration

    /// Tokens whose tries are remembered; beyond that the memory begins anew.
    private static let rememberedTokens = 100_000

    /// Slow answers come after `slowness`.
    init(slowness: Duration) {
        self.slowness = slowness
    }

    /// The answer that `token` asks for; nil when it asks for none, or its tries are used up.
    mutating func answer(to token: ArraySlice<UInt8>) -> APNSAnswer? {
        let start = token.startIndex
        guard token.count >= 5, Self.lower(token[start]) == UInt8(ascii: "f"),
            Self.lower(token[start + 1]) == UInt8(ascii: "a")
        else { return nil }
        var code = 0
        for digit in token[(start + 2)..<(start + 5)] {
            guard let value = Self.value(digit) else { return nil }
            code = code * 10 + value
        }
        guard let answer = answer(for: code) else { return nil }
        guard token.count > 5, let limit = Self.value(token[start + 5]), limit > 0 else { return answer }
        let key = String(decoding: token, as: UTF8.self).lowercased()
        if tries.count >= Self.rememberedTokens { tries.removeAll() }
        let spent = tries[key, default: 0]
        guard spent < limit else { return nil }
        tries[key] = spent + 1
        return answer
    }

    /// What each code stands for; the table of docs/fake-providers.md.
    private func answer(for code: Int) -> APNSAnswer? {
        switch code {
        case 0: .unanswered(.silence)
        case 1: .unanswered(.reset)
        case 2: .unanswered(.closed)
        case 3: .slow(slowness)
        case 4: .unanswered(.goneAway)
        case 5: .acceptedThenGoneAway
        case 6: .unanswered(.refusedTwice)
        case 7: .unanswered(.refused)
        case 9: .page(status: 500)
        case 200: .accepted
        case 300...599: .rejected(status: code, reason: Self.usualReason(of: code) ?? "Imagined")
        default: nil
        }
    }

    /// The reason that Apple gives most often with a status.
    static func usualReason(of status: Int) -> String? {
        switch status {
        case 400: "BadDeviceToken"
        case 403: "InvalidProviderToken"
        case 404: "BadPath"
        case 405: "MethodNotAllowed"
        case 410: "Unregistered"
        case 413: "PayloadTooLarge"
        case 429: "TooManyRequests"
        case 500: "InternalServerError"
        case 503: "ServiceUnavailable"
        default: nil
        }
    }

    private static func value(_ byte: UInt8) -> Int? {
        byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") ? Int(byte) - 48 : nil
    }

    private static func lower(_ byte: UInt8) -> UInt8 {
        byte | 0x20
    }
}
