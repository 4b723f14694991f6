/// Apple's two services. A device token is good for one of them only.
package enum APNSEnvironment: String, CaseIterable, Equatable, Sendable {
    /// Apps from the App Store and TestFlight.
    case production
    /// Apps built for development.
    case sandbox

    /// Where Apple runs it.
    package var endpoint: APNSEndpoint {
        switch self {
        case .production: APNSEndpoint(host: "api.push.apple.com", port: 443)
        case .sandbox: APNSEndpoint(host: "api.sandbox.push.apple.com", port: 443)
        }
    }
}

/// The host and port of a service.
package struct APNSEndpoint: Equatable, Sendable, CustomStringConvertible {
    /// Host name or numeric address; the certificate must be for it.
    package let host: String
    /// TCP port.
    package let port: UInt16

    /// An endpoint by its parts.
    package init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// Reads `https://host`, `https://host:port` or `https://[address]:port`; nil for anything else, a path among it.
    package init?(url: String) {
        guard url.hasPrefix("https://") else { return nil }
        var rest = url.dropFirst("https://".count)
        if rest.hasSuffix("/") { rest = rest.dropLast() }
        var host = rest
        var port: UInt16 = 443
        if rest.hasPrefix("[") {
            guard let end = rest.firstIndex(of: "]") else { return nil }
            host = rest[rest.index(after: rest.startIndex)..<end]
            rest = rest[rest.index(after: end)...]
        } else if let colon = rest.firstIndex(of: ":") {
            host = rest[..<colon]
            rest = rest[colon...]
        } else {
            rest = ""
        }
        if !rest.isEmpty {
            guard rest.hasPrefix(":"), let number = UInt16(rest.dropFirst()), number > 0 else { return nil }
            port = number
        }
        let isName = host.utf8.allSatisfy { byte in
            byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "/") && byte != UInt8(ascii: "@")
        }
        guard !host.isEmpty, isName else { return nil }
        self.init(host: String(host), port: port)
    }

    package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

/// A configuration for APNs was not accepted: which value, and what it should be.
package enum APNSConfigurationError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The key id is not ten capital letters and digits.
    case keyID(String)
    /// The team id is not ten capital letters and digits.
    case teamID(String)
    /// No topic at all.
    case noTopic
    /// A topic is no bundle id.
    case topic(String)
    /// The floor of a retry after a 5xx is out of range.
    case serverErrorDelay(Duration)

    package var description: String {
        switch self {
        case .keyID(let value): "APNs key id \(value): ten capital letters and digits, as Apple's portal shows it"
        case .teamID(let value): "APNs team id \(value): ten capital letters and digits, as Apple's portal shows it"
        case .noTopic: "APNs topics: at least one bundle id is needed"
        case .topic(let value): "APNs topic \(value): a bundle id of letters, digits, dots and hyphens, without suffix"
        case .serverErrorDelay(let value): "APNs delay after a 5xx of \(value): from 1 s to 1 h"
        }
    }
}

/// One credential in one environment: what a lane to APNs is made of. Checked when it is made.
package struct APNSConfiguration: Equatable, Sendable {
    /// Which of Apple's services.
    package let environment: APNSEnvironment
    /// Where it is, normally or by override.
    package let endpoint: APNSEndpoint
    /// The signing key's id.
    package let keyID: String
    /// The team that the key belongs to.
    package let teamID: String
    /// Bundle ids that the key may push to.
    package let topics: [String]
    /// No repetition after a 500 or 503 sooner than this. Apple: 15 minutes.
    package let serverErrorDelay: Duration

    /// A configuration whose values are in order. `endpoint` nil is Apple's own.
    package init(
        environment: APNSEnvironment, keyID: String, teamID: String, topics: [String],
        endpoint: APNSEndpoint? = nil, serverErrorDelay: Duration = .seconds(900)
    ) throws(APNSConfigurationError) {
        guard Self.isAppleID(keyID) else { throw .keyID(keyID) }
        guard Self.isAppleID(teamID) else { throw .teamID(teamID) }
        guard !topics.isEmpty else { throw .noTopic }
        for topic in topics where !Self.isBundleID(topic) { throw .topic(topic) }
        guard (.seconds(1) ... .seconds(3600)).contains(serverErrorDelay) else {
            throw .serverErrorDelay(serverErrorDelay)
        }
        self.environment = environment
        self.endpoint = endpoint ?? environment.endpoint
        self.keyID = keyID
        self.teamID = teamID
        self.topics = topics
        self.serverErrorDelay = serverErrorDelay
    }

    private static func isAppleID(_ text: String) -> Bool {
        text.utf8.count == 10
            && text.utf8.allSatisfy { ($0 >= 48 && $0 <= 57) || ($0 >= 65 && $0 <= 90) }
    }

    /// Apple's rule for bundle ids: letters, digits, hyphens and dots.
    private static func isBundleID(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 255
            && text.utf8.allSatisfy { byte in
                (byte >= 48 && byte <= 57) || (byte >= 65 && byte <= 90) || (byte >= 97 && byte <= 122)
                    || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".")
            }
    }
}
