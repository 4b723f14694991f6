import COpenSSL

/// An RSA private key that signs assertions of a service account (RS256, RFC 7518 3.3). Lives as briefly as a signature
/// takes; freed and erased with its holder.
package struct RSASigningKey: ~Copyable {
    /// Fewest bits that are accepted (RFC 7518 3.3). Google makes keys of 2,048.
    package static let bitsMin = 2048

    private let key: OpaquePointer

    /// The key in `pem`, which must be one unencrypted PKCS#8 block with an RSA key of at least `bitsMin` bits.
    package init(pem: borrowing SecretBytes) throws(RSASigningKeyError) {
        try Self.checkLabel(pem)
        let found = pem.withUnsafeBytes { bytes -> OpaquePointer? in
            guard let source = BIO_new_mem_buf(bytes.baseAddress, Int32(bytes.count)) else { return nil }
            defer { BIO_free(source) }
            // A passphrase is answered with "none": OpenSSL would ask for it on the terminal otherwise.
            return PEM_read_bio_PrivateKey(source, nil, { _, _, _, _ in -1 }, nil)
        }
        ERR_clear_error()
        guard let found else { throw .damaged }
        let bits = Int(EVP_PKEY_get_bits(found))
        guard EVP_PKEY_get_base_id(found) == EVP_PKEY_RSA, bits >= Self.bitsMin else {
            let isRSA = EVP_PKEY_get_base_id(found) == EVP_PKEY_RSA
            EVP_PKEY_free(found)
            throw isRSA ? .tooSmall(bits: bits) : .notRSA
        }
        key = found
    }

    deinit {
        EVP_PKEY_free(key)
    }

    /// The RS256 signature of `message`: as many bytes as the key has, always the same for one message. Nil only when
    /// OpenSSL fails (out of memory).
    package borrowing func signature(of message: [UInt8]) -> [UInt8]? {
        guard let context = EVP_MD_CTX_new() else { return nil }
        defer {
            EVP_MD_CTX_free(context)
            ERR_clear_error()
        }
        // PKCS #1 v1.5 is what OpenSSL pads with unless told otherwise.
        guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key) == 1 else { return nil }
        var length = 0
        guard EVP_DigestSign(context, nil, &length, message, message.count) == 1 else { return nil }
        var signature = [UInt8](repeating: 0, count: length)
        guard EVP_DigestSign(context, &signature, &length, message, message.count) == 1 else { return nil }
        return Array(signature.prefix(length))
    }

    /// The public half as PEM (`BEGIN PUBLIC KEY`), to verify signatures with and to tell keys apart.
    package borrowing func publicKeyPEM() -> String {
        guard let sink = BIO_new(BIO_s_mem()) else { return "" }
        defer { BIO_free(sink) }
        guard PEM_write_bio_PUBKEY(sink, key) == 1 else { return "" }
        var text = [UInt8](repeating: 0, count: 8192)
        let count = BIO_read(sink, &text, Int32(text.count))
        return String(decoding: text.prefix(max(0, Int(count))), as: UTF8.self)
    }

    private static func checkLabel(_ pem: borrowing SecretBytes) throws(RSASigningKeyError) {
        switch PEMLabel.first(in: pem) {
        case nil: throw .notPEM
        case "PRIVATE KEY": return
        case "ENCRYPTED PRIVATE KEY": throw .encrypted
        case "RSA PRIVATE KEY": throw .notPKCS8
        case "EC PRIVATE KEY", "EC PARAMETERS", "DSA PRIVATE KEY": throw .notRSA
        default: throw .notPrivate
        }
    }
}
