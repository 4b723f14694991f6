/// A Google service account with its key: who asks for access tokens. Read from its file for each use and erased with
/// its holder.
package struct ServiceAccount: ~Copyable {
    /// Google's token endpoint: the only one that assertions are made for.
    package static let tokenURI = "https://oauth2.googleapis.com/token"
    /// Longest name, id or address in the file, in bytes; an email address has at most 254.
    package static let nameLimit = 320

    /// The account's address: the assertion's `iss`.
    package let clientEmail: String
    /// The project that the account belongs to.
    package let projectID: String
    /// The id of the key: the assertion's `kid`.
    package let keyID: String
    private let key: RSASigningKey

    /// Reads the account from `file`, under the rules for key files. Throws what is wrong with file or content.
    package init(_ file: KeyFile) throws(ServiceAccountError) {
        let document = Document(json: try Self.content(of: file), path: file.path)
        let members = try document.members()
        guard try document.text("type", members) == "service_account" else { throw document.refusal(.otherType) }
        guard try document.text("token_uri", members) == Self.tokenURI else { throw document.refusal(.otherTokenURI) }
        let clientEmail = try document.name("client_email", members)
        let projectID = try document.name("project_id", members)
        let keyID = try document.name("private_key_id", members)
        let key = try Self.key(document.pem(members), file.path)
        self.clientEmail = clientEmail
        self.projectID = projectID
        self.keyID = keyID
        self.key = key
    }

    private static func content(of file: KeyFile) throws(ServiceAccountError) -> SecretBytes {
        do throws(KeyFileError) {
            return try file.read()
        } catch {
            throw ServiceAccountError(path: file.path, .file(error.problem))
        }
    }

    private static func key(
        _ pem: consuming SecretBytes, _ path: String
    ) throws(ServiceAccountError) -> RSASigningKey {
        do throws(RSASigningKeyError) {
            return try RSASigningKey(pem: pem)
        } catch {
            throw ServiceAccountError(path: path, .key(error))
        }
    }

    /// The signed assertion by which the account asks for an access token to `scope` (RFC 7523). `issuedAt` in seconds
    /// since the Unix epoch; it is good for `life` seconds, an hour at most. Nil only when OpenSSL fails.
    package borrowing func assertion(scope: String, issuedAt: Int64, life: Int64) -> String? {
        precondition((1...3600).contains(life), "Google takes assertions of up to an hour")
        var text: [UInt8] = []
        text.reserveCapacity(1024)
        // Nothing in it needs an escape: names were checked when the file was read.
        Base64URL.encode("{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"\(keyID)\"}".utf8, into: &text)
        text.append(UInt8(ascii: "."))
        let claims =
            "{\"iss\":\"\(clientEmail)\",\"scope\":\"\(scope)\",\"aud\":\"\(Self.tokenURI)\","
            + "\"iat\":\(issuedAt),\"exp\":\(issuedAt + life)}"
        Base64URL.encode(claims.utf8, into: &text)
        guard let signature = key.signature(of: text) else { return nil }
        text.append(UInt8(ascii: "."))
        Base64URL.encode(signature, into: &text)
        return String(decoding: text, as: UTF8.self)
    }

    /// What tells one account and key from another: no secret, and of no use to anybody else.
    package borrowing func fingerprint() -> [UInt8] {
        var digest: [UInt8] = []
        let identity = "\(clientEmail)\n\(projectID)\n\(keyID)\n\(key.publicKeyPEM())"
        SHA256.appendBase64URL(of: Array(identity.utf8), to: &digest)
        return digest
    }
}

/// The content of an account's file, and where it came from.
private struct Document: ~Copyable {
    let json: SecretBytes
    let path: String

    func refusal(_ problem: ServiceAccountError.Problem) -> ServiceAccountError {
        ServiceAccountError(path: path, problem)
    }

    func members() throws(ServiceAccountError) -> [JSONScanner.Member] {
        let found = json.withUnsafeBytes { JSONScanner.members(of: $0.bindMemory(to: UInt8.self)) }
        guard let found else { throw refusal(.notJSON) }
        return found
    }

    /// Where the bytes of a string stand, between its quotes. The first member of that name counts.
    private func content(_ name: String, _ members: [JSONScanner.Member]) throws(ServiceAccountError) -> Range<Int> {
        let found = json.withUnsafeBytes { bytes -> Range<Int>? in
            let member = members.first { bytes[$0.name].elementsEqual(name.utf8) }
            guard let value = member?.value, value.count > 2, bytes[value.lowerBound] == UInt8(ascii: "\"") else {
                return nil
            }
            return value.lowerBound + 1..<value.upperBound - 1
        }
        guard let found else { throw refusal(.missing(name)) }
        return found
    }

    func text(_ name: String, _ members: [JSONScanner.Member]) throws(ServiceAccountError) -> String {
        let range = try content(name, members)
        let found = json.withUnsafeBytes { JSONStringContent.text($0[range]) }
        guard range.count <= ServiceAccount.nameLimit, let found else { throw refusal(.malformed(name)) }
        return found
    }

    /// A name that can stand in a JWT as it is: printable ASCII without quotes, backslashes and spaces.
    func name(_ name: String, _ members: [JSONScanner.Member]) throws(ServiceAccountError) -> String {
        let text = try text(name, members)
        let isPlain = text.utf8.allSatisfy {
            $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\")
        }
        guard isPlain else { throw refusal(.malformed(name)) }
        return text
    }

    /// The key's PEM with its escapes resolved, in memory of its own that is erased.
    func pem(_ members: [JSONScanner.Member]) throws(ServiceAccountError) -> SecretBytes {
        let range = try content("private_key", members)
        var isText = true
        let pem = json.withUnsafeBytes { bytes in
            SecretBytes(capacity: range.count) { room in
                guard let count = JSONStringContent.decode(bytes[range], into: room) else {
                    isText = false
                    return 0
                }
                return count
            }
        }
        guard isText else { throw refusal(.malformed("private_key")) }
        return pem
    }
}
