import COpenSSL

/// The public half of a P-256 key: checks ES256 signatures. Used by stand-ins of a provider and by tests.
package struct VerificationKey: ~Copyable {
    private let key: OpaquePointer

    /// The key in `publicPEM` (`BEGIN PUBLIC KEY`); nil when it is none.
    package init?(publicPEM: String) {
        let text = Array(publicPEM.utf8)
        let found = text.withUnsafeBytes { bytes -> OpaquePointer? in
            guard let source = BIO_new_mem_buf(bytes.baseAddress, Int32(bytes.count)) else { return nil }
            defer { BIO_free(source) }
            return PEM_read_bio_PUBKEY(source, nil, nil, nil)
        }
        ERR_clear_error()
        guard let found else { return nil }
        guard EVP_PKEY_get_base_id(found) == EVP_PKEY_EC else {
            EVP_PKEY_free(found)
            return nil
        }
        key = found
    }

    deinit {
        EVP_PKEY_free(key)
    }

    /// Whether `signature` (r‖s, 64 bytes) over `message` was made with the private half.
    package borrowing func accepts(signature: [UInt8], of message: [UInt8]) -> Bool {
        guard let der = ECDSASignature.der(fromRaw: signature), let context = EVP_MD_CTX_new() else { return false }
        defer {
            EVP_MD_CTX_free(context)
            ERR_clear_error()
        }
        guard EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, key) == 1 else { return false }
        return EVP_DigestVerify(context, der, der.count, message, message.count) == 1
    }
}
