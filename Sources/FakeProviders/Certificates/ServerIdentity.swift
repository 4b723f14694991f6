import COpenSSL

/// A throw-away certificate authority with one server certificate: enough for TLS with full verification, worth nothing
/// to anybody. Made anew in memory for each server; never reuse it for anything that matters.
package struct ServerIdentity: Equatable, Sendable {
    /// The authority's certificate: what a client must be given to trust the server.
    package let authorityPEM: String
    /// The server's certificate.
    package let certificatePEM: String
    /// The server's private key, PKCS#8.
    package let privateKeyPEM: String

    /// An identity from files made earlier.
    package init(authorityPEM: String, certificatePEM: String, privateKeyPEM: String) {
        self.authorityPEM = authorityPEM
        self.certificatePEM = certificatePEM
        self.privateKeyPEM = privateKeyPEM
    }

    /// A new authority and a server certificate for `names` (OpenSSL's notation for alternative names), valid from
    /// `begin` to `end` seconds from now; times in the past make an expired one.
    package static func generated(
        names: String = "DNS:localhost,IP:127.0.0.1,IP:::1", begin: Int = -3600, end: Int = 30 * 86_400
    ) throws(FakeServerError) -> ServerIdentity {
        guard let authorityKey = newKey() else { throw .certificate("no key for the authority") }
        defer { EVP_PKEY_free(authorityKey) }
        guard let serverKey = newKey() else { throw .certificate("no key for the server") }
        defer { EVP_PKEY_free(serverKey) }
        let authorityName = "Postbell test authority"
        let authority = CertificateRequest(
            subject: authorityName, serial: 1, key: authorityKey, begin: min(begin, -3600), end: max(end, 86_400),
            extensions: [
                (NID_basic_constraints, "critical,CA:TRUE"), (NID_key_usage, "critical,keyCertSign,cRLSign"),
                (NID_subject_key_identifier, "hash"),
            ])
        guard let authorityCertificate = authority.signed(by: authorityKey, issuer: nil) else {
            throw .certificate("the authority's certificate cannot be made")
        }
        defer { X509_free(authorityCertificate) }
        let server = CertificateRequest(
            subject: "localhost", serial: 2, key: serverKey, begin: begin, end: end,
            extensions: [
                (NID_basic_constraints, "critical,CA:FALSE"), (NID_key_usage, "critical,digitalSignature"),
                (NID_ext_key_usage, "serverAuth"), (NID_subject_alt_name, names),
                (NID_authority_key_identifier, "keyid"),
            ])
        guard let certificate = server.signed(by: authorityKey, issuer: authorityCertificate) else {
            throw .certificate("the server's certificate cannot be made")
        }
        defer { X509_free(certificate) }
        return ServerIdentity(
            authorityPEM: pem { PEM_write_bio_X509($0, authorityCertificate) },
            certificatePEM: pem { PEM_write_bio_X509($0, certificate) },
            privateKeyPEM: pem { PEM_write_bio_PKCS8PrivateKey($0, serverKey, nil, nil, 0, nil, nil) })
    }

    private static func newKey() -> OpaquePointer? {
        guard let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil) else { return nil }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_CTX_set_group_name(context, "prime256v1") == 1,
            EVP_PKEY_keygen(context, &key) == 1
        else { return nil }
        return key
    }

    private static func pem(_ write: (OpaquePointer) -> Int32) -> String {
        guard let sink = BIO_new(BIO_s_mem()) else { return "" }
        defer { BIO_free(sink) }
        guard write(sink) == 1 else { return "" }
        var text = [UInt8](repeating: 0, count: 8192)
        let count = BIO_read(sink, &text, Int32(text.count))
        return String(decoding: text.prefix(max(0, Int(count))), as: UTF8.self)
    }
}

/// What a certificate is to say.
private struct CertificateRequest {
    let subject: String
    let serial: Int
    let key: OpaquePointer
    let begin: Int
    let end: Int
    let extensions: [(Int32, String)]

    /// The certificate, signed; `issuer` nil makes it sign itself. The caller frees it.
    func signed(by signer: OpaquePointer, issuer: OpaquePointer?) -> OpaquePointer? {
        guard let certificate = X509_new() else { return nil }
        // X.509 counts versions from 0: 2 is version 3, the one with extensions.
        X509_set_version(certificate, 2)
        ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial)
        X509_gmtime_adj(X509_getm_notBefore(certificate), begin)
        X509_gmtime_adj(X509_getm_notAfter(certificate), end)
        X509_set_pubkey(certificate, key)
        X509_NAME_add_entry_by_txt(
            X509_get_subject_name(certificate), "CN", Self.asciiString, Array(subject.utf8), Int32(subject.utf8.count),
            -1, 0)
        X509_set_issuer_name(certificate, X509_get_subject_name(issuer ?? certificate))
        var context = X509V3_CTX()
        X509V3_set_ctx(&context, issuer ?? certificate, certificate, nil, nil, 0)
        for (identifier, value) in extensions {
            guard let part = X509V3_EXT_conf_nid(nil, &context, identifier, value) else {
                X509_free(certificate)
                return nil
            }
            X509_add_ext(certificate, part, -1)
            X509_EXTENSION_free(part)
        }
        guard X509_sign(certificate, signer, EVP_sha256()) > 0 else {
            X509_free(certificate)
            return nil
        }
        return certificate
    }

    /// OpenSSL's `MBSTRING_ASC`, a macro of a form that Swift does not import.
    private static let asciiString: Int32 = 0x1001
}
