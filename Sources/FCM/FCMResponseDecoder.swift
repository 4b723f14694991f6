import Credentials
package import HTTP2
package import OutboxCore

/// Reads an answer of FCM. Total: whatever comes, an outcome comes of it.
package struct FCMResponseDecoder: Equatable, Sendable {
    /// Response headers that the transport has to keep, in this order.
    package static let capturedHeaders = ["retry-after", "date"]
    /// Most characters of an unknown reason that are kept.
    package static let reasonLimit = 64
    /// Longest name of a message that is kept; those seen have 35 characters.
    package static let identifierLimit = 100

    private let throttleDelay: Duration

    /// A decoder whose retries after a 429 wait at least `throttleDelay`.
    package init(throttleDelay: Duration) {
        self.throttleDelay = throttleDelay
    }

    /// The outcome of `response`, whose slices point into `text`. `now` is this machine's wall clock in seconds since
    /// the Unix epoch: what a `retry-after` that is a date is compared with when the answer has no date of its own.
    package func decode(_ response: HTTPResponse, text: [UInt8], now: Int64) -> Outcome {
        if response.status == 200 {
            return Outcome(.delivered, status: 200, providerIdentifier: identifier(response, text))
        }
        let body = FCMErrorBody(Array(text[response.body.indices]))
        let row = FCMReason.row(status: response.status, body: body)
        // The first message after a long silence meets servers that have given up on the connection: no outage to wait
        // for.
        let isStale = response.afterIdle && response.status == 500
        return Outcome(
            row.kind, scope: row.scope, status: Int16(clamping: response.status),
            reason: row.code.isEmpty ? Self.sanitized(body.code ?? body.status ?? "") : row.reason,
            proof: row.proof, retryFloor: isStale ? .zero : floor(row.floor, response, text, now),
            advice: isStale ? .reconnect : row.advice,
            providerTime: row.advice == .replaceToken ? HTTPDate.seconds(text[response.captured[1].indices]) : nil)
    }

    private func floor(_ floor: FCMReason.Floor, _ response: HTTPResponse, _ text: [UInt8], _ now: Int64) -> Duration {
        let least: Duration
        switch floor {
        case .none: return .zero
        case .throttle: least = throttleDelay
        case .fixed(let duration): least = duration
        }
        let asked = RetryAfter.wait(
            text[response.captured[0].indices], date: text[response.captured[1].indices], now: now)
        return max(least, asked ?? .zero)
    }

    /// The last part of the message's name (`projects/<project>/messages/<this>`); nil for anything else. Delivered it
    /// is all the same.
    private func identifier(_ response: HTTPResponse, _ text: [UInt8]) -> ProviderIdentifier? {
        let body = text[response.body.indices]
        let found = text.withUnsafeBufferPointer { bytes in
            JSONScanner.value(of: "name", in: UnsafeBufferPointer(rebasing: bytes[response.body.indices]))
        }
        guard let found, found.count > 2, body[body.startIndex + found.lowerBound] == UInt8(ascii: "\"") else {
            return nil
        }
        let name = body[body.startIndex + found.lowerBound + 1..<body.startIndex + found.upperBound - 1]
        guard let slash = name.lastIndex(of: UInt8(ascii: "/")) else { return nil }
        let last = name[(slash + 1)...]
        guard (1...Self.identifierLimit).contains(last.count), last.allSatisfy(Self.isPlain) else { return nil }
        return .text(String(decoding: last, as: UTF8.self))
    }

    /// Printable ASCII without what JSON would have escaped.
    private static func isPlain(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "\\") && byte != UInt8(ascii: "\"")
    }

    /// A reason that is in no table, reduced to harmless characters: it goes into the ledger, logs and metrics.
    private static func sanitized(_ reason: String) -> String {
        let kept = reason.utf8.filter { byte in
            (byte >= 48 && byte <= 57) || (byte >= 65 && byte <= 90) || (byte >= 97 && byte <= 122)
                || byte == UInt8(ascii: "_") || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "-")
        }
        return kept.isEmpty ? "no_reason" : String(decoding: kept.prefix(reasonLimit), as: UTF8.self)
    }
}
