import COpenSSL

/// A P-256 private key that signs provider tokens (ES256). Lives as briefly as a signature takes; freed and erased with
/// its holder.
package struct SigningKey: ~Copyable {
    private let key: OpaquePointer

    private init(owning key: OpaquePointer) {
        self.key = key
    }

    deinit {
        EVP_PKEY_free(key)
    }

    /// The key in `pem`, which must be one unencrypted PKCS#8 block with a P-256 key.
    package init(pem: borrowing SecretBytes) throws(SigningKeyError) {
        try Self.checkLabel(pem)
        let found = pem.withUnsafeBytes { bytes -> OpaquePointer? in
            guard let source = BIO_new_mem_buf(bytes.baseAddress, Int32(bytes.count)) else { return nil }
            defer { BIO_free(source) }
            // A passphrase is answered with "none": OpenSSL would ask for it on the terminal otherwise.
            return PEM_read_bio_PrivateKey(source, nil, { _, _, _, _ in -1 }, nil)
        }
        ERR_clear_error()
        guard let found else { throw .damaged }
        do throws(SigningKeyError) {
            try Self.checkAlgorithm(found)
        } catch {
            EVP_PKEY_free(found)
            throw error
        }
        key = found
    }

    /// A new key, for tests and stand-ins of a provider.
    package static func generated() throws(SigningKeyError) -> SigningKey {
        guard let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil) else { throw .otherAlgorithm }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_CTX_set_group_name(context, curve) == 1,
            EVP_PKEY_keygen(context, &key) == 1, let key
        else { throw .damaged }
        return SigningKey(owning: key)
    }

    /// The ES256 signature of `message`: 64 bytes, r‖s. Nil only when OpenSSL fails (out of memory).
    package borrowing func signature(of message: [UInt8]) -> [UInt8]? {
        guard let context = EVP_MD_CTX_new() else { return nil }
        defer { EVP_MD_CTX_free(context) }
        guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key) == 1 else { return nil }
        var length = 0
        guard EVP_DigestSign(context, nil, &length, message, message.count) == 1 else { return nil }
        var der = [UInt8](repeating: 0, count: length)
        guard EVP_DigestSign(context, &der, &length, message, message.count) == 1 else { return nil }
        return ECDSASignature.raw(fromDER: Array(der.prefix(length)))
    }

    /// The public half as PEM (`BEGIN PUBLIC KEY`), to verify signatures with.
    package borrowing func publicKeyPEM() -> String {
        guard let sink = BIO_new(BIO_s_mem()) else { return "" }
        defer { BIO_free(sink) }
        guard PEM_write_bio_PUBKEY(sink, key) == 1 else { return "" }
        var text = [UInt8](repeating: 0, count: 1024)
        let count = BIO_read(sink, &text, Int32(text.count))
        return String(decoding: text.prefix(max(0, Int(count))), as: UTF8.self)
    }

    /// The private key as unencrypted PKCS#8 PEM, the form of a `.p8` file.
    package borrowing func privateKeyPEM() -> SecretBytes {
        SecretBytes(capacity: 1024) { room in
            guard let sink = BIO_new(BIO_s_secmem()) else { return 0 }
            defer { BIO_free(sink) }
            guard PEM_write_bio_PKCS8PrivateKey(sink, key, nil, nil, 0, nil, nil) == 1 else { return 0 }
            return max(0, Int(BIO_read(sink, room.baseAddress, Int32(room.count))))
        }
    }

    /// OpenSSL's name for P-256.
    private static let curve = "prime256v1"

    /// Says from the label of the first PEM block what the file is, which OpenSSL's own errors do not.
    private static func checkLabel(_ pem: borrowing SecretBytes) throws(SigningKeyError) {
        switch PEMLabel.first(in: pem) {
        case nil: throw .notPEM
        case "PRIVATE KEY": return
        case "ENCRYPTED PRIVATE KEY": throw .encrypted
        case "CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE": throw .certificate
        case "PUBLIC KEY", "RSA PUBLIC KEY": throw .publicKey
        case "RSA PRIVATE KEY": throw .rsa
        case "EC PRIVATE KEY", "EC PARAMETERS": throw .notPKCS8(label: "BEGIN EC PRIVATE KEY")
        default: throw .otherAlgorithm
        }
    }

    private static func checkAlgorithm(_ key: OpaquePointer) throws(SigningKeyError) {
        switch EVP_PKEY_get_base_id(key) {
        case EVP_PKEY_EC: break
        case EVP_PKEY_RSA, EVP_PKEY_RSA_PSS: throw .rsa
        default: throw .otherAlgorithm
        }
        var name = [CChar](repeating: 0, count: 64)
        var length = 0
        guard EVP_PKEY_get_group_name(key, &name, name.count, &length) == 1 else {
            throw .otherCurve(name: "without a name")
        }
        let found = String(decoding: name.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        guard found == curve else { throw .otherCurve(name: found) }
    }
}
