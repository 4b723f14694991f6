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

    /// Why a handshake failed: the certificate first, because OpenSSL's own error says only that verification failed.
    static func handshake(_ ssl: OpaquePointer, peer: String) -> HTTP2ConnectionError {
        let verification = SSL_get_verify_result(ssl)
        if verification != Int(X509_V_OK) {
            ERR_clear_error()
            return certificate(Int32(verification), peer: peer)
        }
        let error = ERR_peek_error()
        let reason = firstReason()
        switch ERR_GET_REASON(error) {
        case _ where error == 0:
            return HTTP2ConnectionError(.tls, peer: peer, reason: "closed by the peer in the handshake")
        case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_WRONG_SSL_VERSION, SSL_R_TLSV1_ALERT_PROTOCOL_VERSION,
            SSL_R_WRONG_VERSION_NUMBER:
            return HTTP2ConnectionError(.tlsVersion, peer: peer, reason: reason ?? "TLS 1.2 or newer is needed")
        case SSL_R_NO_APPLICATION_PROTOCOL, SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL:
            return HTTP2ConnectionError(.noHTTP2, peer: peer, reason: reason ?? "no application protocol")
        default:
            return HTTP2ConnectionError(.tls, peer: peer, reason: reason ?? "unknown")
        }
    }

    private static func certificate(_ code: Int32, peer: String) -> HTTP2ConnectionError {
        let reason = String(cString: X509_verify_cert_error_string(Int(code)))
        switch code {
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
            return HTTP2ConnectionError(.wrongHost, peer: peer, reason: reason)
        case X509_V_ERR_CERT_HAS_EXPIRED, X509_V_ERR_CERT_NOT_YET_VALID:
            return HTTP2ConnectionError(.certificateExpired, peer: peer, reason: reason)
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_CERT_UNTRUSTED:
            return HTTP2ConnectionError(.unknownAuthority, peer: peer, reason: reason)
        default:
            return HTTP2ConnectionError(.certificate, peer: peer, reason: reason)
        }
    }

    /// The kernel's words for `number`.
    static func system(_ number: Int32) -> String {
        String(cString: strerror(number))
    }
}
