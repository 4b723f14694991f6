import COpenSSL

/// The TLS side of a listening server: certificate, key, TLS 1.2 or newer, ALPN `h2`.
struct TLSServerContext: ~Copyable {
    private let context: OpaquePointer

    /// A context for `identity`. Without `offersHTTP2` no protocol is chosen, as by a server that knows no HTTP/2.
    init(_ identity: ServerIdentity, offersHTTP2: Bool) throws(FakeServerError) {
        guard let context = SSL_CTX_new(TLS_server_method()) else { throw .certificate("no TLS context") }
        guard Self.configure(context, identity) else {
            SSL_CTX_free(context)
            ERR_clear_error()
            throw .certificate("certificate or key cannot be used")
        }
        if offersHTTP2 { SSL_CTX_set_alpn_select_cb(context, selectHTTP2, nil) }
        self.context = context
    }

    deinit {
        SSL_CTX_free(context)
    }

    /// A TLS session over the connected, non-blocking socket `descriptor`. The caller frees it.
    borrowing func accept(_ descriptor: Int32) -> OpaquePointer? {
        guard let ssl = SSL_new(context) else { return nil }
        guard SSL_set_fd(ssl, descriptor) == 1 else {
            SSL_free(ssl)
            return nil
        }
        SSL_set_accept_state(ssl)
        return ssl
    }

    private static func configure(_ context: OpaquePointer, _ identity: ServerIdentity) -> Bool {
        SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_2_VERSION), nil)
        let mode = SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS
        SSL_CTX_ctrl(context, SSL_CTRL_MODE, Int(mode), nil)
        SSL_CTX_ctrl(context, SSL_CTRL_SET_READ_AHEAD, 1, nil)
        guard let certificate = read(identity.certificatePEM, { PEM_read_bio_X509($0, nil, nil, nil) }) else {
            return false
        }
        defer { X509_free(certificate) }
        let parsedKey = read(identity.privateKeyPEM) { PEM_read_bio_PrivateKey($0, nil, nil, nil) }
        guard let key = parsedKey else { return false }
        defer { EVP_PKEY_free(key) }
        return SSL_CTX_use_certificate(context, certificate) == 1 && SSL_CTX_use_PrivateKey(context, key) == 1
            && SSL_CTX_check_private_key(context) == 1
    }

    private static func read(_ pem: String, _ parse: (OpaquePointer) -> OpaquePointer?) -> OpaquePointer? {
        let text = Array(pem.utf8)
        return text.withUnsafeBytes { bytes -> OpaquePointer? in
            guard let source = BIO_new_mem_buf(bytes.baseAddress, Int32(bytes.count)) else { return nil }
            defer { BIO_free(source) }
            return parse(source)
        }
    }
}

/// Chooses `h2` from the client's list of protocols (RFC 7301 3.1: each with its length before it), or ends the
/// handshake.
private func selectHTTP2(
    _ ssl: OpaquePointer?, _ chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
    _ chosenLength: UnsafeMutablePointer<UInt8>?, _ offered: UnsafePointer<UInt8>?, _ offeredLength: UInt32,
    _ argument: UnsafeMutableRawPointer?
) -> Int32 {
    guard let offered, let chosen, let chosenLength else { return SSL_TLSEXT_ERR_ALERT_FATAL }
    var position = 0
    while position < Int(offeredLength) {
        let length = Int(offered[position])
        guard position + 1 + length <= Int(offeredLength) else { break }
        if length == 2, offered[position + 1] == UInt8(ascii: "h"), offered[position + 2] == UInt8(ascii: "2") {
            chosen.pointee = offered + position + 1
            chosenLength.pointee = 2
            return SSL_TLSEXT_ERR_OK
        }
        position += 1 + length
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL
}
