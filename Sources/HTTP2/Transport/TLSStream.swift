import COpenSSL
import EventLoop
import Glibc

/// One TLS connection over one non-blocking socket. Owns both; gone when it is.
final class TLSStream {
    /// What a step of the handshake, a read or a write came to; 0 bytes of a handshake that is complete.
    typealias Progress = HTTP2TransportProgress

    let descriptor: Int32
    private let ssl: OpaquePointer
    private let peer: String
    private let host: String
    /// What was wrong with the peer's certificate, if anything was.
    private var fault: CertificateFault?

    /// Takes over `descriptor`, which is connected, and closes it in any case.
    ///
    /// `host` is what the certificate has to be for: a name, which is also sent as SNI, or a numeric address.
    init(_ context: TLSContext, descriptor: Int32, host: String, peer: String) throws(HTTP2ConnectionError) {
        guard let ssl = SSL_new(context.pointer) else {
            close(descriptor)
            throw HTTP2ConnectionError(.tls, peer: peer, reason: TLSFailure.firstReason() ?? "out of memory")
        }
        self.ssl = ssl
        self.descriptor = descriptor
        self.peer = peer
        self.host = host
        let parameters = SSL_get0_param(ssl)
        // The common name is a name for people; only an alternative name is a host's (RFC 9110 4.3.4, RFC 9525 2).
        let flags = X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT
        X509_VERIFY_PARAM_set_hostflags(parameters, UInt32(flags))
        var isReady = SSL_set_fd(ssl, descriptor) == 1
        if X509_VERIFY_PARAM_set1_ip_asc(parameters, host) != 1 {
            ERR_clear_error()
            isReady = isReady && SSL_set1_host(ssl, host) == 1
            let named = host.withCString { name in
                SSL_ctrl(
                    ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name),
                    UnsafeMutableRawPointer(mutating: name))
            }
            isReady = isReady && named == 1
        }
        guard isReady else {
            throw HTTP2ConnectionError(.tls, peer: peer, reason: TLSFailure.firstReason() ?? "cannot be set up")
        }
        SSL_set_connect_state(ssl)
        SSL_set_ex_data(ssl, Self.ownerIndex, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Where OpenSSL keeps the stream that an SSL belongs to: the place that is the application's (SSL_set_app_data).
    private static let ownerIndex: Int32 = 0

    /// Called while the peer's chain is verified, within `handshake`, so the stream is alive.
    static func noteFault(_ store: OpaquePointer) {
        let ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx())
        guard let ssl, let owner = SSL_get_ex_data(OpaquePointer(ssl), ownerIndex) else { return }
        Unmanaged<TLSStream>.fromOpaque(owner)._withUnsafeGuaranteedRef { stream in
            stream.fault = CertificateFault(store, host: stream.host)
        }
    }

    deinit {
        SSL_free(ssl)
        close(descriptor)
    }

    /// Goes on with the handshake; `done` only once the peer is verified and `h2` agreed on.
    func handshake() -> Progress {
        ERR_clear_error()
        let result = SSL_do_handshake(ssl)
        let number = errno
        guard result != 1 else { return agreed() }
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ: return .blocked(.readable)
        case SSL_ERROR_WANT_WRITE: return .blocked(.writable)
        case SSL_ERROR_SYSCALL where number != 0:
            ERR_clear_error()
            let reason = "in the handshake: \(TLSFailure.system(number))"
            return .failed(HTTP2ConnectionError(.tls, peer: peer, reason: reason))
        default:
            if let fault {
                ERR_clear_error()
                return .failed(HTTP2ConnectionError(fault.code, peer: peer, reason: fault.reason))
            }
            return .failed(TLSFailure.handshake(peer: peer))
        }
    }

    private func agreed() -> Progress {
        var name: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &name, &count)
        guard let name, count > 0 else {
            return .failed(HTTP2ConnectionError(.noHTTP2, peer: peer, reason: "the peer knows no ALPN, so no HTTP/2"))
        }
        let chosen = String(decoding: UnsafeBufferPointer(start: name, count: Int(count)), as: UTF8.self)
        guard chosen == "h2" else {
            // One of a few registered names, but the peer could have written anything.
            let words = String(chosen.filter { $0.isASCII && ($0.isLetter || $0.isNumber || "/.-".contains($0)) })
            let reason = "the peer chose \(words) in place of h2"
            return .failed(HTTP2ConnectionError(.noHTTP2, peer: peer, reason: reason))
        }
        return .done(0)
    }

    /// Reads what is there, at most `capacity` bytes.
    func read(into buffer: UnsafeMutablePointer<UInt8>, capacity: Int) -> Progress {
        ERR_clear_error()
        let result = SSL_read(ssl, buffer, Int32(capacity))
        return result > 0 ? .done(Int(result)) : stopped(result)
    }

    /// Whether bytes that were read from the socket already wait inside TLS, where the poller cannot see them.
    var hasPending: Bool { SSL_has_pending(ssl) == 1 }

    /// Writes as much as the socket takes in one TLS record.
    func write(_ buffer: UnsafePointer<UInt8>, count: Int) -> Progress {
        ERR_clear_error()
        let result = SSL_write(ssl, buffer, Int32(count))
        return result > 0 ? .done(Int(result)) : stopped(result)
    }

    private func stopped(_ result: Int32) -> Progress {
        let number = errno
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ: return .blocked(.readable)
        case SSL_ERROR_WANT_WRITE: return .blocked(.writable)
        case SSL_ERROR_ZERO_RETURN: return .ended
        case SSL_ERROR_SYSCALL:
            ERR_clear_error()
            let reason = number == 0 ? "closed" : TLSFailure.system(number)
            return .failed(HTTP2ConnectionError(.closedByPeer, peer: peer, reason: reason))
        default:
            // OpenSSL 3 reports an end of stream without close_notify here; for us it is a lost connection like others.
            let reason = TLSFailure.firstReason() ?? "unknown"
            return .failed(HTTP2ConnectionError(.closedByPeer, peer: peer, reason: reason))
        }
    }

    /// Tells the peer that nothing more will come; no answer is awaited.
    func sendCloseNotify() {
        ERR_clear_error()
        _ = SSL_shutdown(ssl)
        ERR_clear_error()
    }
}
