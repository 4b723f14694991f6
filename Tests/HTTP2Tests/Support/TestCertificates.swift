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
    /// The authority that clients in tests trust.
    let authority: Credential
    /// One that they do not.
    let stranger: Credential
    /// For localhost and 127.0.0.1.
    let good: Credential
    /// PEM file of the authority.
    let caFile: String

    static let shared = TestCertificates()

    private init() {
        authority = CertificateTemplate.authority("test authority").issued(by: nil)
        stranger = CertificateTemplate.authority("strange authority").issued(by: nil)
        good = CertificateTemplate().issued(by: authority)
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
}
