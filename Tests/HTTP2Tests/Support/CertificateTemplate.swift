import COpenSSL

/// What a certificate is to say. The defaults make one that a client accepts from a server on the loopback.
struct CertificateTemplate: Sendable {
    enum Key: Sendable {
        case p256
        /// RSA of so many bits.
        case rsa(Int)
    }

    enum Digest: Sendable {
        case sha1, sha256
    }

    /// The common name.
    var name = "localhost"
    /// Subject alternative names in OpenSSL's notation; nil for none.
    var alternative: String? = "DNS:localhost,IP:127.0.0.1"
    /// Extended key usage in OpenSSL's notation; nil for any.
    var usage: String?
    var isAuthority = false
    var key = Key.p256
    var digest = Digest.sha256
    /// When it begins and ends, in seconds from now.
    var begin = -86_400
    var end = 86_400

    init(
        _ name: String = "localhost", alternative: String? = "DNS:localhost,IP:127.0.0.1", usage: String? = nil,
        key: Key = .p256, digest: Digest = .sha256, begin: Int = -86_400, end: Int = 86_400
    ) {
        self.name = name
        self.alternative = alternative
        self.usage = usage
        self.key = key
        self.digest = digest
        self.begin = begin
        self.end = end
    }

    static func authority(_ name: String) -> CertificateTemplate {
        var template = CertificateTemplate(name, alternative: nil)
        template.isAuthority = true
        return template
    }

    /// A certificate with a key of its own, signed by `signer`, or by itself.
    func issued(by signer: Credential?) -> Credential {
        let key = makeKey()
        guard let certificate = X509_new() else { preconditionFailure("out of memory") }
        X509_set_version(certificate, 2)
        ASN1_INTEGER_set(X509_get_serialNumber(certificate), Int.random(in: 1...1 << 40))
        X509_gmtime_adj(X509_getm_notBefore(certificate), begin)
        X509_gmtime_adj(X509_getm_notAfter(certificate), end)
        let subject = X509_get_subject_name(certificate)
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, name, -1, -1, 0)
        X509_set_issuer_name(certificate, signer.map { X509_get_subject_name($0.certificate) } ?? subject)
        X509_set_pubkey(certificate, key)
        if isAuthority { add(NID_basic_constraints, "critical,CA:TRUE", to: certificate) }
        if let alternative { add(NID_subject_alt_name, alternative, to: certificate) }
        if let usage { add(NID_ext_key_usage, usage, to: certificate) }
        let digest = digest == .sha1 ? EVP_sha1() : EVP_sha256()
        precondition(X509_sign(certificate, signer?.key ?? key, digest) > 0, "cannot sign")
        return Credential(certificate: certificate, key: key)
    }

    private func makeKey() -> OpaquePointer {
        let context: OpaquePointer?
        var made: OpaquePointer?
        switch key {
        case .p256:
            context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil)
            EVP_PKEY_keygen_init(context)
            EVP_PKEY_CTX_set_group_name(context, "P-256")
        case .rsa(let bits):
            context = EVP_PKEY_CTX_new_id(EVP_PKEY_RSA, nil)
            EVP_PKEY_keygen_init(context)
            EVP_PKEY_CTX_set_rsa_keygen_bits(context, Int32(bits))
        }
        defer { EVP_PKEY_CTX_free(context) }
        EVP_PKEY_keygen(context, &made)
        guard let made else { preconditionFailure("cannot make a key") }
        return made
    }

    private func add(_ kind: Int32, _ value: String, to certificate: OpaquePointer) {
        let part = X509V3_EXT_conf_nid(nil, nil, kind, value)
        precondition(X509_add_ext(certificate, part, -1) == 1, "cannot add \(value)")
        X509_EXTENSION_free(part)
    }
}
