import COpenSSL

/// An RSA key of a service account: made for tests and demos, and to check signatures (RS256) with. OpenSSL is called
/// directly, apart from the sender's code, so that a slip there is found here.
struct RSAKey: ~Copyable {
    private let key: OpaquePointer

    private init(owning key: OpaquePointer) {
        self.key = key
    }

    /// The key in `pem`, private or public; nil when it is no RSA key.
    init?(pem: String) {
        let found =
            Self.read(pem) { PEM_read_bio_PUBKEY($0, nil, nil, nil) }
            // A passphrase is answered with "none": OpenSSL would ask for it on the terminal otherwise.
            ?? Self.read(pem) { PEM_read_bio_PrivateKey($0, nil, { _, _, _, _ in -1 }, nil) }
        ERR_clear_error()
        guard let found else { return nil }
        guard EVP_PKEY_get_base_id(found) == EVP_PKEY_RSA else {
            EVP_PKEY_free(found)
            return nil
        }
        key = found
    }

    deinit {
        EVP_PKEY_free(key)
    }

    /// A new key of 2,048 bits, as Google makes them.
    static func generated() throws(FakeServerError) -> RSAKey {
        guard let context = EVP_PKEY_CTX_new_from_name(nil, "RSA", nil) else { throw .certificate("no RSA key") }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_CTX_set_rsa_keygen_bits(context, 2048) == 1,
            EVP_PKEY_keygen(context, &key) == 1, let key
        else { throw .certificate("no RSA key") }
        return RSAKey(owning: key)
    }

    /// Whether `signature` over `message` was made with the private half (RSASSA-PKCS1-v1_5 with SHA-256).
    borrowing func accepts(signature: [UInt8], of message: [UInt8]) -> Bool {
        guard let context = EVP_MD_CTX_new() else { return false }
        defer {
            EVP_MD_CTX_free(context)
            ERR_clear_error()
        }
        guard EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, key) == 1 else { return false }
        return EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }

    /// The public half as PEM.
    borrowing func publicPEM() -> String {
        Self.write { PEM_write_bio_PUBKEY($0, key) }
    }

    /// The private key as PKCS#8 PEM, the form of a service account file.
    borrowing func privatePEM() -> String {
        Self.write { PEM_write_bio_PKCS8PrivateKey($0, key, nil, nil, 0, nil, nil) }
    }

    private static func read(_ pem: String, _ parse: (OpaquePointer) -> OpaquePointer?) -> OpaquePointer? {
        let text = Array(pem.utf8)
        return text.withUnsafeBytes { bytes -> OpaquePointer? in
            guard let source = BIO_new_mem_buf(bytes.baseAddress, Int32(bytes.count)) else { return nil }
            defer { BIO_free(source) }
            return parse(source)
        }
    }

    private static func write(_ write: (OpaquePointer) -> Int32) -> String {
        guard let sink = BIO_new(BIO_s_mem()) else { return "" }
        defer { BIO_free(sink) }
        guard write(sink) == 1 else { return "" }
        var text = [UInt8](repeating: 0, count: 8192)
        let count = BIO_read(sink, &text, Int32(text.count))
        return String(decoding: text.prefix(max(0, Int(count))), as: UTF8.self)
    }
}
