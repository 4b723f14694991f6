import COpenSSL
import Glibc

/// What the TLS connections of a client share: trusted authorities, least version, ALPN.
///
/// The peer is always verified. There is no way to switch that off; a file of authorities can only be added to those of
/// the system. What is too weak is said here and not left to the system's openssl.cnf, which may be laxer.
final class TLSContext {
    let pointer: OpaquePointer

    /// Options that OpenSSL defines by function-like macros, which Swift cannot import (openssl/ssl.h).
    private static let noCompression: UInt64 = 1 << 17
    private static let noRenegotiation: UInt64 = 1 << 30

    init(caFile: String?, peer: String) throws(HTTP2ConnectionError) {
        // A write to a socket that the peer has closed must be an error, not the end of the process.
        signal(SIGPIPE, SIG_IGN)
        guard let context = SSL_CTX_new(TLS_client_method()) else {
            throw HTTP2ConnectionError(.tls, peer: peer, reason: TLSFailure.firstReason() ?? "out of memory")
        }
        pointer = context
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER) { isGood, store in
            // The verdict stays OpenSSL's; we only take down what it was about.
            if isGood == 0, let store { TLSStream.noteFault(store) }
            return isGood
        }
        // 112 bits: no RSA key below 2048, no SHA-1 in a signature, whatever the chain (SSL_CTX_set_security_level(3)).
        SSL_CTX_set_security_level(context, 2)
        SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_2_VERSION), nil)
        SSL_CTX_set_options(context, Self.noCompression | Self.noRenegotiation)
        let mode = SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
        SSL_CTX_ctrl(context, SSL_CTRL_MODE, Int(mode), nil)
        // One read of the socket takes what is there instead of a record's head and then its body.
        SSL_CTX_ctrl(context, SSL_CTRL_SET_READ_AHEAD, 1, nil)
        SSL_CTX_set_default_read_buffer_len(context, 32 * 1024)
        let refused = SSL_CTX_set_alpn_protos(context, Self.protocols, UInt32(Self.protocols.count))
        guard refused == 0, SSL_CTX_set_cipher_list(context, Self.ciphers) == 1,
            SSL_CTX_set_default_verify_paths(context) == 1
        else {
            throw HTTP2ConnectionError(.tls, peer: peer, reason: TLSFailure.firstReason() ?? "cannot be set up")
        }
        if let caFile, let reason = Self.load(caFile, into: context) {
            throw HTTP2ConnectionError(.caFile, peer: peer, reason: "\(caFile): \(reason)")
        }
    }

    /// Why the certificates in `file` cannot be trusted too; nil once they are.
    private static func load(_ file: String, into context: OpaquePointer) -> String? {
        var status = stat()
        guard stat(file, &status) == 0 else { return TLSFailure.system(errno) }
        // OpenSSL would wait for ever for a pipe that nobody writes, and has no words for a directory.
        guard status.st_mode & S_IFMT == S_IFREG else { return "is not a regular file" }
        guard SSL_CTX_load_verify_locations(context, file, nil) != 1 else { return nil }
        return TLSFailure.firstReason() ?? "unreadable"
    }

    deinit {
        SSL_CTX_free(pointer)
    }

    /// For TLS 1.2: what RFC 9113 9.2.2 leaves, with a key exchange that keeps old traffic secret. TLS 1.3 has no
    /// others.
    private static let ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20"

    /// "h2" and nothing else, each name after its length (RFC 7301 3.1).
    private static let protocols: [UInt8] = [2, 0x68, 0x32]
}
