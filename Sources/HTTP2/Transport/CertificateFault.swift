import COpenSSL
import Glibc

/// What is wrong with a certificate of the peer's, in words that name the certificate.
///
/// OpenSSL's own words say what, but not of which certificate of the chain, and not with which of its values.
struct CertificateFault {
    let code: HTTP2ConnectionError.Code
    let reason: String

    /// Reads the fault that OpenSSL has just found while it verified a chain for `host`.
    init(_ store: OpaquePointer, host: String) {
        let error = X509_STORE_CTX_get_error(store)
        code = Self.code(error)
        let words = String(cString: X509_verify_cert_error_string(Int(error)))
        reason = X509_STORE_CTX_get_current_cert(store).map { Self.reason(error, $0, host: host, words) } ?? words
    }

    private static func code(_ error: Int32) -> HTTP2ConnectionError.Code {
        switch error {
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
            .wrongHost
        case X509_V_ERR_CERT_HAS_EXPIRED, X509_V_ERR_CERT_NOT_YET_VALID:
            .certificateExpired
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_CERT_UNTRUSTED:
            .unknownAuthority
        default:
            .certificate
        }
    }

    private static func reason(
        _ error: Int32, _ certificate: OpaquePointer, host: String, _ words: String
    ) -> String {
        let subject = name(X509_get_subject_name(certificate))
        switch error {
        case X509_V_ERR_CERT_HAS_EXPIRED:
            return "the certificate of \(subject) has expired (\(time(X509_get0_notAfter(certificate))))"
        case X509_V_ERR_CERT_NOT_YET_VALID:
            let begin = time(X509_get0_notBefore(certificate))
            return "the certificate of \(subject) is not valid yet (before \(begin))"
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
            return "the certificate of \(subject) is signed by itself"
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
            return "the authority \(subject), at the end of the chain, is not trusted here"
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
            let issuer = name(X509_get_issuer_name(certificate))
            return "the certificate of \(subject) is issued by \(issuer), which is neither trusted here nor sent along"
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
            guard let names = alternativeNames(certificate) else {
                return "the certificate of \(subject) has no subject alternative name, so none is \(host)"
            }
            return "the certificate is for \(names), not for \(host)"
        case X509_V_ERR_INVALID_PURPOSE:
            return "the certificate of \(subject) is not for servers"
        case X509_V_ERR_INVALID_CA:
            return "\(subject) may not sign certificates"
        case X509_V_ERR_EE_KEY_TOO_SMALL, X509_V_ERR_CA_KEY_TOO_SMALL:
            return "the certificate of \(subject) has too weak a key: \(key(certificate))"
        case X509_V_ERR_CA_MD_TOO_WEAK:
            let digest = String(cString: OBJ_nid2ln(X509_get_signature_nid(certificate)))
            return "the certificate of \(subject) is signed with too weak a digest: \(digest)"
        default:
            return "the certificate of \(subject): \(words)"
        }
    }

    // MARK: Values of a certificate

    /// Longest text that is taken over from a certificate.
    private static let textLimit = 100

    /// The common name, or what comes nearest to one. Written by a stranger, so only its printable ASCII is kept.
    private static func name(_ name: OpaquePointer?) -> String {
        for part in [NID_commonName, NID_organizationalUnitName, NID_organizationName] {
            var text = [CChar](repeating: 0, count: textLimit + 1)
            let count = X509_NAME_get_text_by_NID(name, part, &text, Int32(text.count))
            if count > 0 { return printable(text.prefix(Int(count)).map { UInt8(bitPattern: $0) }) }
        }
        return "an unnamed subject"
    }

    private static func printable(_ bytes: [UInt8]) -> String {
        String(decoding: bytes.filter { $0 >= 0x20 && $0 < 0x7F }, as: UTF8.self)
    }

    /// A time of a certificate, which is always UTC (RFC 5280 4.1.2.5).
    private static func time(_ time: UnsafePointer<ASN1_TIME>?) -> String {
        var parts = tm()
        guard ASN1_TIME_to_tm(time, &parts) == 1 else { return "a time that cannot be read" }
        var text = [CChar](repeating: 0, count: 32)
        let count = strftime(&text, text.count, "%Y-%m-%d %H:%M:%S UTC", &parts)
        return printable(text.prefix(count).map { UInt8(bitPattern: $0) })
    }

    /// The names a certificate is for, in OpenSSL's notation; nil for none.
    private static func alternativeNames(_ certificate: OpaquePointer) -> String? {
        let index = X509_get_ext_by_NID(certificate, NID_subject_alt_name, -1)
        guard index >= 0, let names = X509_get_ext(certificate, index), let sink = BIO_new(BIO_s_mem()) else {
            return nil
        }
        defer { BIO_free(sink) }
        guard X509V3_EXT_print(sink, names, 0, 0) == 1 else { return nil }
        var text = [UInt8](repeating: 0, count: textLimit)
        let count = BIO_read(sink, &text, Int32(text.count))
        return count > 0 ? printable(Array(text.prefix(Int(count)))) : nil
    }

    private static func key(_ certificate: OpaquePointer) -> String {
        guard let key = X509_get0_pubkey(certificate) else { return "one that cannot be read" }
        let type = EVP_PKEY_get0_type_name(key).map { String(cString: $0) } ?? "unknown"
        return "\(type), \(EVP_PKEY_get_bits(key)) bits"
    }
}
