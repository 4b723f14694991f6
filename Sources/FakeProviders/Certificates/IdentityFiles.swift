import Credentials
import Glibc

/// The files through which a stand-in and its clients agree on certificates and keys.
package enum IdentityFiles {
    /// Writes `ca.pem`, `server.pem` and `server.key` into `directory`, which is made if it is not there.
    package static func write(_ identity: ServerIdentity, to directory: String) throws(FakeServerError) {
        if mkdir(directory, 0o700) != 0 && errno != EEXIST { throw .file(path: directory, errno: errno) }
        try replace(directory + "/ca.pem", with: Array(identity.authorityPEM.utf8), mode: 0o644)
        try replace(directory + "/server.pem", with: Array(identity.certificatePEM.utf8), mode: 0o644)
        try replace(directory + "/server.key", with: Array(identity.privateKeyPEM.utf8), mode: 0o600)
    }

    /// Makes a test key for provider tokens and writes it to `path` as PKCS#8, as a `.p8` file is.
    package static func makeProviderKey(at path: String) throws(FakeServerError) {
        guard let key = try? SigningKey.generated() else { throw .certificate("no provider key") }
        let pem = key.privateKeyPEM().withUnsafeBytes { Array($0) }
        try replace(path, with: pem, mode: 0o600)
    }

    /// The public half of the key in `path`: a `.p8` file, or the public key itself as PEM.
    package static func providerKey(
        at path: String, keyID: String, teamID: String
    ) throws(FakeServerError) -> FakeAPNSKey {
        let text = try read(path)
        if VerificationKey(publicPEM: text) != nil {
            return FakeAPNSKey(keyID: keyID, teamID: teamID, publicKeyPEM: text)
        }
        guard let key = try? SigningKey(pem: SecretBytes(copying: text)) else { throw .providerKey(keyID: keyID) }
        return FakeAPNSKey(keyID: keyID, teamID: teamID, publicKeyPEM: key.publicKeyPEM())
    }

    /// Writes `text` to `path` so that a reader finds all of it or none.
    package static func replace(_ path: String, with text: [UInt8], mode: UInt32) throws(FakeServerError) {
        let draft = path + ".new"
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)
        guard descriptor >= 0 else { throw .file(path: draft, errno: errno) }
        let written = Glibc.write(descriptor, text, text.count)
        let failure = written == text.count ? 0 : max(errno, EIO)
        close(descriptor)
        guard failure == 0 else { throw .file(path: draft, errno: failure) }
        guard rename(draft, path) == 0 else { throw .file(path: path, errno: errno) }
    }

    /// The text in `path`, its first `limit` bytes: as much as a key file may have.
    static func read(_ path: String, limit: Int = KeyFile.sizeLimit) throws(FakeServerError) -> String {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .file(path: path, errno: errno) }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: limit)
        let count = Glibc.read(descriptor, &bytes, bytes.count)
        guard count > 0 else { throw .file(path: path, errno: count < 0 ? errno : ENODATA) }
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}
