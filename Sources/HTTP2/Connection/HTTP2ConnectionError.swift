/// Why a connection could not be made, or ended.
package struct HTTP2ConnectionError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The closed list of causes.
    package enum Code: String, Sendable, Equatable {
        /// The host name has no address.
        case nameResolution = "name_resolution"
        /// TCP could not connect to any address.
        case connect
        /// The proxy wants a user and password, or others than those it was shown.
        case proxyAuthentication = "proxy_authentication"
        /// The proxy opens no tunnel for another reason.
        case proxy
        /// The connect timeout passed.
        case connectTimeout = "connect_timeout"
        /// The file of additional certificates cannot be used.
        case caFile = "ca_file"
        /// The certificate is for another host.
        case wrongHost = "wrong_host"
        /// The certificate is out of its time.
        case certificateExpired = "certificate_expired"
        /// Nobody we trust has signed the certificate.
        case unknownAuthority = "unknown_authority"
        /// The certificate is unusable for another reason.
        case certificate
        /// The peer speaks no TLS 1.2 or newer.
        case tlsVersion = "tls_version"
        /// The peer did not choose `h2` by ALPN.
        case noHTTP2 = "no_http2"
        /// TLS failed for another reason.
        case tls
        /// The peer closed the connection, or the network did.
        case closedByPeer = "closed_by_peer"
        /// The peer broke HTTP/2.
        case protocolViolation = "protocol_violation"
        /// The peer asked us to go away.
        case goneAway = "goaway"
        /// No frame came in answer to a PING.
        case silent
        /// Too many requests in a row had no answer.
        case timeouts
        /// Every answer was a 500.
        case serverErrors = "server_errors"
        /// Our own end: it was idle, old or out of stream ids, or the client was closed.
        case retired
    }

    /// What kind of trouble it is.
    package let code: Code
    /// Host and port, and the numeric address once there is one.
    package let peer: String
    /// The cause in the words of whoever reported it; never a part of a request.
    package let reason: String

    /// An error about `peer`.
    package init(_ code: Code, peer: String, reason: String) {
        self.code = code
        self.peer = peer
        self.reason = reason
    }

    package var description: String { "connection to \(peer): \(code.rawValue): \(reason)" }
}
