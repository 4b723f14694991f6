import Credentials
import Foundation
import Testing

/// What we sign, judged by the `openssl` command: another reader of signatures than our own.
@Suite struct OpenSSLCommandTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// What `openssl dgst -verify` says, and its status.
    private func verify(_ message: [UInt8], signature: [UInt8], publicPEM: String) throws -> (String, Int32) {
        let key = try directory.file("public.pem", publicPEM)
        let signatureFile = URL(fileURLWithPath: directory.path + "/signature")
        let messageFile = URL(fileURLWithPath: directory.path + "/message")
        try Data(signature).write(to: signatureFile)
        try Data(message).write(to: messageFile)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [
            "openssl", "dgst", "-sha256", "-verify", key, "-signature", signatureFile.path, messageFile.path,
        ]
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let said = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (
            String(decoding: said, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines),
            process.terminationStatus
        )
    }

    private func parts(_ token: String) throws -> (signed: [UInt8], signature: [UInt8]) {
        let parts = token.utf8.split(separator: UInt8(ascii: "."))
        return (Array(parts[0]) + [UInt8(ascii: ".")] + Array(parts[1]), try #require(Base64URL.decode(parts[2])))
    }

    @Test func `openssl accepts a provider token for APNs`() throws {
        let key = try SigningKey.generated()
        let made = JSONWebToken.compact(
            keyID: "ABC123DEFG", teamID: "DEF123GHIJ", issuedAt: 1_700_000_000, signedBy: key)
        let (signed, raw) = try parts(#require(made))
        // OpenSSL writes a signature as DER, a token as two plain numbers.
        let signature = try #require(ECDSASignature.der(fromRaw: raw))
        let pem = key.publicKeyPEM()
        #expect(try verify(signed, signature: signature, publicPEM: pem) == ("Verified OK", 0))
        #expect(try verify(signed + [0], signature: signature, publicPEM: pem).1 != 0)
    }

    @Test func `openssl accepts an assertion for Google`() throws {
        let path = try directory.file("account.json", ServiceAccountTests.json())
        let account = try ServiceAccount(KeyFile(path: path, credentialsDirectory: nil))
        let made = account.assertion(scope: "https://example.com/scope", issuedAt: 1_700_000_000, life: 3600)
        let (signed, signature) = try parts(#require(made))
        let pem = try RSASigningKey(pem: SecretBytes(copying: TestKeys.rfc7515RSA)).publicKeyPEM()
        #expect(try verify(signed, signature: signature, publicPEM: pem) == ("Verified OK", 0))
        #expect(try verify(signed + [0], signature: signature, publicPEM: pem).1 != 0)
    }
}
