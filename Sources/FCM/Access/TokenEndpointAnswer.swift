import Credentials
import HTTP2

/// What the token endpoint said, read: a value, never an error.
enum TokenEndpointAnswer: Equatable, Sendable {
    /// A token: the value of `authorization`, and how long it is good for.
    case granted(authorization: String, life: Duration)
    /// The account is refused.
    case refused(TokenRefusal)
    /// The endpoint is at fault or cannot be reached; it asks to be left alone for `wait`.
    case unavailable(reason: String, wait: Duration)

    /// Response headers that the transport has to keep, in this order.
    static let capturedHeaders = ["date", "retry-after"]
    /// Longest life that is believed; Google gives an hour.
    private static let lifeMax: Int64 = 86_400
    /// By how many seconds two clocks may differ without being the cause of a refusal.
    private static let clockTolerance: Int64 = 60

    /// Reads `response`, whose slices point into `text`; `now` is our wall clock, in seconds since the Unix epoch.
    init(_ response: HTTPResponse, text: [UInt8], now: Int64) {
        let body = JSONMembers(Array(text[response.body.indices]))
        if response.status == 200 {
            self = Self.grant(body) ?? .unavailable(reason: "200 without a token that can be used", wait: .zero)
            return
        }
        let date = HTTPDate.seconds(text[response.captured[0].indices])
        let clockAhead = date.map { now - $0 }
        let error = body?.string("error")
        let reading = Self.reading(clockAhead, description: body?.string("error_description"))
        let row = TokenEndpointReason.row(status: response.status, error: error, reading: reading)
        // What is in no table could be anything: only the status is repeated.
        let word = row.error ?? ""
        switch row.effect {
        case .refused:
            self = .refused(
                TokenRefusal(
                    status: Int16(clamping: response.status), reason: word.isEmpty ? "token_refused" : word,
                    clockAhead: clockAhead, row: row))
        case .unavailable:
            let wait = RetryAfter.wait(
                text[response.captured[1].indices], date: text[response.captured[0].indices], now: now)
            self = .unavailable(
                reason: "the token endpoint answers \(response.status)\(word.isEmpty ? "" : " \(word)")",
                wait: wait ?? .zero)
        }
    }

    private static func grant(_ body: JSONMembers?) -> TokenEndpointAnswer? {
        guard let body, let token = body.text("access_token"), isToken(token),
            body.string("token_type")?.lowercased() == "bearer",
            let life = body.integer("expires_in") ?? body.string("expires_in").flatMap({ Int64($0) }), life > 0
        else { return nil }
        return .granted(authorization: "Bearer \(token)", life: .seconds(min(life, lifeMax)))
    }

    /// What a header can carry as a bearer (RFC 6750 2.1, `b64token`).
    private static func isToken(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                (byte >= 48 && byte <= 57) || (byte >= 65 && byte <= 90) || (byte >= 97 && byte <= 122)
                    || "-._~+/=".utf8.contains(byte)
            }
    }

    /// `invalid_grant` stands for a wrong clock as well as for a wrong key. The answer's date decides; without one,
    /// what Google says of times (the text is read for this alone, and kept nowhere).
    private static func reading(_ clockAhead: Int64?, description: String?) -> TokenEndpointReason.Reading {
        if let clockAhead { return abs(clockAhead) > clockTolerance ? .clock : .account }
        return description?.contains("reasonable timeframe") == true ? .clock : .account
    }
}

/// Why the token endpoint refused the account.
package struct TokenRefusal: Equatable, Sendable {
    /// The HTTP status.
    package let status: Int16
    /// Google's word for it, from the table.
    package let reason: String
    /// By how many seconds our clock is ahead of the endpoint's (negative: behind); nil when it did not tell its time.
    package let clockAhead: Int64?
    /// The row of the table.
    package let row: TokenEndpointReason
}
