import COpenSSL
import EventLoop
import Glibc

/// One TLS connection over one non-blocking socket. Owns both; gone when it is.
final class TLSStream {
    /// What a step of the handshake, a read or a write came to.
    enum Progress {
        /// The handshake is complete, or this many bytes went through.
        case done(Int)
        /// The socket has to become ready first.
        case blocked(Interest)
        /// The peer closed the connection in order.
        case ended
        /// It is over.
        case failed(HTTP2ConnectionError)
    }

    let descriptor: Int32
    private let ssl: OpaquePointer
    private let peer: String

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
        let parameters = SSL_get0_param(ssl)
        X509_VERIFY_PARAM_set_hostflags(parameters, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
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
    }

    deinit {
        SSL_free(ssl)
        close(descriptor)
    }

    /// Goes on with the handshake; `done` only once the peer is verified and `h2` agreed on.
    func handshake() -> Progress {
        ERR_clear_error()
        let result = SSL_do_handshake(ssl)
        guard result != 1 else { return agreed() }
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ: return .blocked(.readable)
        case SSL_ERROR_WANT_WRITE: return .blocked(.writable)
        default: return .failed(TLSFailure.handshake(ssl, peer: peer))
        }
    }

    private func agreed() -> Progress {
        var name: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &name, &count)
        guard let name, count == 2, name[0] == 0x68, name[1] == 0x32 else {
            return .failed(HTTP2ConnectionError(.noHTTP2, peer: peer, reason: "the peer does not offer h2"))
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
