import COpenSSL
import Foundation

/// A certificate with its key, signed by the test authority or by itself.
struct Credential: Sendable {
    // Addresses of objects that are never changed or freed once they are made, so every thread may read them.
    private let certificateAddress: Int
    private let keyAddress: Int

    init(certificate: OpaquePointer, key: OpaquePointer) {
        certificateAddress = Int(bitPattern: certificate)
        keyAddress = Int(bitPattern: key)
    }

    var certificate: OpaquePointer? { OpaquePointer(bitPattern: certificateAddress) }
    var key: OpaquePointer? { OpaquePointer(bitPattern: keyAddress) }
}

/// Where a server's certificate and key are.
struct ServerFiles {
    let certificate: String
    let key: String

    func remove() {
        unlink(certificate)
        unlink(key)
    }
}

/// Certificates of this run: an authority, and servers signed by it.
struct TestCertificates: Sendable {
    /// For localhost and 127.0.0.1.
    let good: Credential
    /// For a host that is not ours.
    let foreign: Credential
    /// Ended an hour ago.
    let expired: Credential
    /// Signed by an authority that the client does not know.
    let unknown: Credential
    /// PEM file of the authority.
    let caFile: String

    static let shared = TestCertificates()

    private init() {
        let authority = Self.make(name: "test authority", alternative: nil, signer: nil)
        let stranger = Self.make(name: "strange authority", alternative: nil, signer: nil)
        let names = "DNS:localhost,IP:127.0.0.1"
        good = Self.make(name: "localhost", alternative: names, signer: authority)
        foreign = Self.make(name: "other.example", alternative: "DNS:other.example", signer: authority)
        expired = Self.make(name: "localhost", alternative: names, signer: authority, end: -3600)
        unknown = Self.make(name: "localhost", alternative: names, signer: stranger)
        let name = "http2-tests-\(ProcessInfo.processInfo.processIdentifier).pem"
        caFile = FileManager.default.temporaryDirectory.appendingPathComponent(name).path
        let file = BIO_new_file(caFile, "w")
        precondition(PEM_write_bio_X509(file, authority.certificate) == 1, "cannot write \(caFile)")
        BIO_free(file)
    }

    /// The good server's certificate and key as PEM files, for servers that are programs of their own.
    func writeServerFiles() throws -> ServerFiles {
        let base = FileManager.default.temporaryDirectory.appendingPathComponent("http2-peer-\(UUID().uuidString)").path
        let paths = ServerFiles(certificate: base + ".crt", key: base + ".key")
        let certificate = BIO_new_file(paths.certificate, "w")
        let key = BIO_new_file(paths.key, "w")
        defer {
            BIO_free(certificate)
            BIO_free(key)
        }
        guard PEM_write_bio_X509(certificate, good.certificate) == 1,
            PEM_write_bio_PrivateKey(key, good.key, nil, nil, 0, nil, nil) == 1
        else { throw POSIXError(.EIO) }
        return paths
    }

    private static func make(name: String, alternative: String?, signer: Credential?, end: Int = 86_400) -> Credential {
        let key = makeKey()
        guard let certificate = X509_new() else { preconditionFailure("out of memory") }
        X509_set_version(certificate, 2)
        ASN1_INTEGER_set(X509_get_serialNumber(certificate), Int.random(in: 1...1 << 40))
        X509_gmtime_adj(X509_getm_notBefore(certificate), -86_400)
        X509_gmtime_adj(X509_getm_notAfter(certificate), end)
        let subject = X509_get_subject_name(certificate)
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, name, -1, -1, 0)
        X509_set_issuer_name(certificate, signer.map { X509_get_subject_name($0.certificate) } ?? subject)
        X509_set_pubkey(certificate, key)
        if let alternative {
            add(NID_subject_alt_name, alternative, to: certificate)
        } else {
            add(NID_basic_constraints, "critical,CA:TRUE", to: certificate)
        }
        precondition(X509_sign(certificate, signer?.key ?? key, EVP_sha256()) > 0, "cannot sign")
        return Credential(certificate: certificate, key: key)
    }

    private static func makeKey() -> OpaquePointer {
        let context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil)
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        EVP_PKEY_keygen_init(context)
        EVP_PKEY_CTX_set_group_name(context, "P-256")
        EVP_PKEY_keygen(context, &key)
        guard let key else { preconditionFailure("cannot make a key") }
        return key
    }

    private static func add(_ kind: Int32, _ value: String, to certificate: OpaquePointer) {
        let extensions = X509V3_EXT_conf_nid(nil, nil, kind, value)
        X509_add_ext(certificate, extensions, -1)
        X509_EXTENSION_free(extensions)
    }
}
