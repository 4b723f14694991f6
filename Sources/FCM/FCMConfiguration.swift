/// The host and port of a service.
package struct FCMEndpoint: Equatable, Sendable, CustomStringConvertible {
    /// Host name or numeric address; the certificate must be for it.
    package let host: String
    /// TCP port.
    package let port: UInt16

    /// An endpoint by its parts.
    package init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// Where Google runs FCM.
    package static let google = FCMEndpoint(host: "fcm.googleapis.com", port: 443)

    package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

/// A configuration for FCM was not accepted: which value, and what it should be.
package enum FCMConfigurationError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The project id is empty or could not stand in a request's path.
    case project(String)
    /// The floor of a retry after a 429 is out of range.
    case throttleDelay(Duration)

    package var description: String {
        switch self {
        case .project(let value):
            "FCM project id \"\(value)\": small letters, digits and hyphens, see project_id in the service account file"
        case .throttleDelay(let value): "FCM delay after a 429 of \(value): from 1 s to 1 h"
        }
    }
}

/// One Firebase project: what a lane to FCM is made of. Checked when it is made.
package struct FCMConfiguration: Equatable, Sendable {
    /// Longest project id. Google gives at most 30 characters, and a domain before it in projects of old.
    package static let projectLimit = 128

    /// The project's id, or its number.
    package let project: String
    /// Where FCM is, normally or by override.
    package let endpoint: FCMEndpoint
    /// No repetition after a 429 sooner than this, unless the answer names a time. Google: one minute.
    package let throttleDelay: Duration

    /// A configuration whose values are in order.
    package init(
        project: String, endpoint: FCMEndpoint = .google, throttleDelay: Duration = .seconds(60)
    ) throws(FCMConfigurationError) {
        guard Self.isProjectID(project) else { throw .project(project) }
        guard (.seconds(1) ... .seconds(3600)).contains(throttleDelay) else { throw .throttleDelay(throttleDelay) }
        self.project = project
        self.endpoint = endpoint
        self.throttleDelay = throttleDelay
    }

    /// Google's rule for ids (letters, digits, hyphens), with the domain that projects of old carry
    /// (`example.com:project`). Nothing of it needs escaping in a path.
    private static func isProjectID(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= projectLimit
            && text.utf8.allSatisfy { byte in
                (byte >= 48 && byte <= 57) || (byte >= 97 && byte <= 122) || byte == UInt8(ascii: "-")
                    || byte == UInt8(ascii: ".") || byte == UInt8(ascii: ":")
            }
    }
}
