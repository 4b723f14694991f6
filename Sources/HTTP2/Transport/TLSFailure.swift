import COpenSSL
import Glibc

/// Puts names to what OpenSSL reports.
enum TLSFailure {
    /// The oldest entry of this thread's error queue in OpenSSL's words, and an empty queue afterwards.
    static func firstReason() -> String? {
        let code = ERR_get_error()
        ERR_clear_error()
        guard code != 0 else { return nil }
        return ERR_reason_error_string(code).map { String(cString: $0) } ?? "error \(code)"
    }

    /// Why a handshake failed that came as far as TLS itself, but not for the peer's certificate.
    static func handshake(peer: String) -> HTTP2ConnectionError {
        let number = ERR_GET_REASON(ERR_peek_error())
        guard let words = firstReason() else { return closed(peer) }
        switch number {
        case SSL_R_UNEXPECTED_EOF_WHILE_READING:
            return closed(peer)
        case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_WRONG_SSL_VERSION, SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
            return HTTP2ConnectionError(
                .tlsVersion, peer: peer, reason: "the peer speaks no TLS 1.2 or newer: \(words)")
        case SSL_R_WRONG_VERSION_NUMBER, SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST, SSL_R_PACKET_LENGTH_TOO_LONG,
            SSL_R_ENCRYPTED_LENGTH_TOO_LONG:
            return HTTP2ConnectionError(.tls, peer: peer, reason: "the peer does not speak TLS: \(words)")
        case SSL_R_BAD_EXTENSION:
            // What newer releases of OpenSSL say of a protocol that was not offered; older ones let us find it.
            let reason = "the peer's extensions do not fit ours, as if it chose http/1.1 in place of h2: \(words)"
            return HTTP2ConnectionError(.noHTTP2, peer: peer, reason: reason)
        case SSL_R_NO_APPLICATION_PROTOCOL, SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL:
            return HTTP2ConnectionError(.noHTTP2, peer: peer, reason: "the peer does not offer h2: \(words)")
        default:
            return HTTP2ConnectionError(.tls, peer: peer, reason: "in the handshake: \(words)")
        }
    }

    private static func closed(_ peer: String) -> HTTP2ConnectionError {
        HTTP2ConnectionError(.tls, peer: peer, reason: "the peer closed the connection in the handshake")
    }

    /// The kernel's words for `number`.
    static func system(_ number: Int32) -> String {
        String(cString: strerror(number))
    }
}
