import Credentials
package import HTTP2
package import OutboxCore

/// Reads an answer of APNs. Total: whatever comes, an outcome comes of it.
package struct APNSResponseDecoder: Equatable, Sendable {
    /// Response headers that the transport has to keep, in this order.
    package static let capturedHeaders = ["apns-id", "apns-unique-id", "date"]
    /// Most characters of an unknown reason that are kept.
    package static let reasonLimit = 64

    private let serverErrorDelay: Duration

    /// A decoder whose retries after a 5xx wait at least `serverErrorDelay`.
    package init(serverErrorDelay: Duration) {
        self.serverErrorDelay = serverErrorDelay
    }

    /// The outcome of `response`, whose slices point into `text`.
    package func decode(_ response: HTTPResponse, text: [UInt8]) -> Outcome {
        let identifier = identifier(of: response, text)
        if response.status == 200 {
            return Outcome(.delivered, status: 200, providerIdentifier: identifier)
        }
        let body = JSONMembers(Array(text[response.body.indices]))
        let given = body?.string("reason") ?? ""
        let row = APNSReason.row(status: response.status, reason: given.utf8)
        // The first push after a long silence meets servers that have given up on the connection: that is no outage to
        // wait a quarter of an hour for.
        let isStale = response.afterIdle && response.status == 500
        return Outcome(
            row.kind, scope: row.scope, status: Int16(clamping: response.status),
            reason: row.reason.isEmpty ? Self.sanitized(given) : row.reason, providerIdentifier: identifier,
            deadSince: response.status == 410 ? body?.integer("timestamp").flatMap(Self.timestamp) : nil,
            proof: row.proof, retryFloor: isStale ? .zero : floor(row.floor),
            advice: isStale ? .reconnect : row.advice,
            providerTime: row.advice == .replaceToken ? HTTPDate.seconds(text[response.captured[2].indices]) : nil)
    }

    private func floor(_ floor: APNSReason.Floor) -> Duration {
        switch floor {
        case .none: .zero
        case .serverError: serverErrorDelay
        case .fixed(let duration): duration
        }
    }

    /// `apns-unique-id` where it is given (Apple's console knows the push by it), else `apns-id`.
    private func identifier(of response: HTTPResponse, _ text: [UInt8]) -> ProviderIdentifier? {
        let unique = response.captured[1]
        if !unique.isEmpty, let found = Identifier(text[unique.indices]) { return .uuid(found) }
        let echoed = response.captured[0]
        return echoed.isEmpty ? nil : Identifier(text[echoed.indices]).map { .uuid($0) }
    }

    /// Milliseconds since the epoch; nil for what cannot be one (Apple sends 13 digits).
    private static func timestamp(_ milliseconds: Int64) -> Timestamp? {
        guard milliseconds > 0, milliseconds < 100_000_000_000_000 else { return nil }
        return Timestamp(microseconds: milliseconds * 1000)
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
