import COpenSSL

/// A signed token in compact form (RFC 7519, RFC 7515 7.1), read without yet believing it.
package struct JSONWebToken: Equatable, Sendable {
    /// The header's `alg`.
    package let algorithm: String
    /// The header's `kid`, if it has one.
    package let keyID: String?
    /// The claim `iss`, if there is one.
    package let issuer: String?
    /// The claim `iat` in seconds since the Unix epoch, if it is there and a number.
    package let issuedAt: Int64?
    /// Header, dot and claims as they were sent: what the signature is over.
    package let signedPart: [UInt8]
    /// The decoded signature.
    package let signature: [UInt8]

    /// Reads `compact`; nil when it is not three base64url parts of which two are JSON objects.
    package init?(compact: some Collection<UInt8>) {
        let parts = compact.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Base64URL.decode(parts[0]), let claims = Base64URL.decode(parts[1]),
            let signature = Base64URL.decode(parts[2]), let headerMembers = JSONMembers(header),
            let claimMembers = JSONMembers(claims), let algorithm = headerMembers.string("alg")
        else { return nil }
        self.algorithm = algorithm
        keyID = headerMembers.string("kid")
        issuer = claimMembers.string("iss")
        issuedAt = claimMembers.integer("iat")
        signedPart = Array(parts[0]) + [UInt8(ascii: ".")] + Array(parts[1])
        self.signature = signature
    }

    /// Whether this is an ES256 token whose signature `key` accepts.
    package func isSigned(by key: borrowing VerificationKey) -> Bool {
        algorithm == "ES256" && key.accepts(signature: signature, of: signedPart)
    }

    /// A provider token for APNs: header `alg` and `kid`, claims `iss` and `iat` (a number), ES256.
    ///
    /// `keyID` and `teamID` are ten letters and digits each; configuration has checked them. Nil only when OpenSSL
    /// fails.
    package static func compact(
        keyID: String, teamID: String, issuedAt: Int64, signedBy key: borrowing SigningKey
    ) -> String? {
        var text: [UInt8] = []
        // Once its copy is a string, nobody needs this one.
        defer { text.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) } }
        text.reserveCapacity(256)
        Base64URL.encode("{\"alg\":\"ES256\",\"kid\":\"\(keyID)\"}".utf8, into: &text)
        text.append(UInt8(ascii: "."))
        Base64URL.encode("{\"iss\":\"\(teamID)\",\"iat\":\(issuedAt)}".utf8, into: &text)
        guard let signature = key.signature(of: text) else { return nil }
        text.append(UInt8(ascii: "."))
        Base64URL.encode(signature, into: &text)
        return String(decoding: text, as: UTF8.self)
    }
}
