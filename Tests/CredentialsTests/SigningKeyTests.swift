import Credentials
import Testing

@Suite struct SigningKeyTests {
    private static func error(for pem: String) -> SigningKeyError? {
        do throws(SigningKeyError) {
            _ = try SigningKey(pem: SecretBytes(copying: pem))
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: [
        (TestKeys.p384, SigningKeyError.otherCurve(name: "secp384r1")),
        (TestKeys.ed25519, .otherAlgorithm),
        (TestKeys.encrypted, .encrypted),
        (TestKeys.sec1, .notPKCS8(label: "BEGIN EC PRIVATE KEY")),
        (TestKeys.publicOnly, .publicKey),
        (TestKeys.certificate, .certificate),
        (TestKeys.rsa, .rsa),
        ("{\"type\":\"service_account\"}", .notPEM),
        ("", .notPEM),
        (String(TestKeys.rfc7515.prefix(90)), .damaged),
    ])
    func `refuses each other kind of file with an error of its own`(pem: String, expected: SigningKeyError) {
        #expect(Self.error(for: pem) == expected)
    }

    @Test func `errors never quote the key`() {
        for pem in [TestKeys.p384, TestKeys.encrypted, TestKeys.sec1, TestKeys.rsa] {
            let text = Self.error(for: pem)?.description ?? ""
            #expect(!text.isEmpty)
            for line in pem.split(separator: "\n").dropFirst() where line.count > 20 {
                #expect(!text.contains(line.prefix(20)))
            }
        }
    }

    @Test func `takes a key with Windows line ends and text before it`() {
        let pem = "Bag Attributes\r\n" + TestKeys.rfc7515.split(separator: "\n").joined(separator: "\r\n") + "\r\n"
        #expect(Self.error(for: pem) == nil)
    }

    @Test func `a signature is 64 bytes and is accepted by the public half`() throws {
        let key = try SigningKey(pem: SecretBytes(copying: TestKeys.rfc7515))
        let verifier = try VerificationKey.of(key)
        // 300 signatures: one in 128 has an integer with a leading zero byte.
        for number in 0..<300 {
            let message = Array("message \(number)".utf8)
            let signature = key.signature(of: message) ?? []
            let accepted = verifier.accepts(signature: signature, of: message)
            let acceptedForAnother = verifier.accepts(signature: signature, of: message + [0])
            #expect(signature.count == 64)
            #expect(accepted)
            #expect(!acceptedForAnother)
        }
    }

    @Test func `a generated key survives its PEM form`() throws {
        let key = try SigningKey.generated()
        let again = try SigningKey(pem: key.privateKeyPEM()).publicKeyPEM()
        let other = try SigningKey.generated().publicKeyPEM()
        let own = key.publicKeyPEM()
        #expect(own == again)
        #expect(own != other)
        #expect(own.hasPrefix("-----BEGIN PUBLIC KEY-----"))
    }
}

@Suite struct ECDSASignatureTests {
    private static func bytes(_ hex: String) -> [UInt8] {
        var rest = Substring(hex)
        var bytes: [UInt8] = []
        while let byte = UInt8(rest.prefix(2), radix: 16), !rest.isEmpty {
            bytes.append(byte)
            rest = rest.dropFirst(2)
        }
        return bytes
    }

    private static let edges: [(der: [UInt8], raw: [UInt8])] = [
        (bytes("3006020101020101"), zeros(31) + [1] + zeros(31) + [1]),
        (bytes("3027020200800221008000" + String(repeating: "0", count: 60)), zeros(31) + [0x80, 0x80] + zeros(31)),
        (
            bytes("3025022000" + String(repeating: "f", count: 62) + "020103"),
            [0] + [UInt8](repeating: 0xFF, count: 31) + zeros(31) + [3]
        ),
        (
            bytes(
                "304502200ed1215379636c483c2f7f155807d402a3b228033af97c7e17819ac3169ea665"
                    + "022100c50a07d38c3c70e5d8f12daf084a5480a66590c5f293509a8f3f7f8a83a354d5"),
            bytes(
                "0ed1215379636c483c2f7f155807d402a3b228033af97c7e17819ac3169ea665"
                    + "c50a07d38c3c70e5d8f12daf084a5480a66590c5f293509a8f3f7f8a83a354d5")
        ),
    ]

    private static func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

    @Test(arguments: 0..<4) func `turns DER into padded integers`(index: Int) {
        let edge = Self.edges[index]
        #expect(ECDSASignature.raw(fromDER: edge.der) == edge.raw)
    }

    @Test(arguments: [0, 1, 3]) func `turns padded integers into DER`(index: Int) {
        let edge = Self.edges[index]
        #expect(ECDSASignature.der(fromRaw: edge.raw) == edge.der)
    }

    @Test func `refuses what is no signature`() {
        #expect(ECDSASignature.raw(fromDER: []) == nil)
        #expect(ECDSASignature.raw(fromDER: [0x30, 0x01, 0x02]) == nil)
        #expect(ECDSASignature.raw(fromDER: Self.edges[0].der + [0]) == nil)
        #expect(ECDSASignature.der(fromRaw: Self.zeros(63)) == nil)
        let tooWide = Self.bytes("3026022101" + String(repeating: "00", count: 32) + "020101")
        #expect(ECDSASignature.raw(fromDER: tooWide) == nil)
    }
}

extension VerificationKey {
    /// The public half of `key`.
    static func of(_ key: borrowing SigningKey) throws -> VerificationKey {
        guard let verifier = VerificationKey(publicPEM: key.publicKeyPEM()) else { throw MissingPublicHalf() }
        return verifier
    }

    struct MissingPublicHalf: Error {}
}
