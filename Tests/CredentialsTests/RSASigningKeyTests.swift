import Credentials
import Testing

@Suite struct RSASigningKeyTests {
    /// RFC 7515 A.2.1: what is signed.
    private static let rfcInput = """
        eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9\
        pc19yb290Ijp0cnVlfQ
        """
    /// RFC 7515 A.2.1: the signature, which is always the same.
    private static let rfcSignature = """
        cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujG\
        bds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K\
        0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6\
        LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw
        """

    private static func error(for pem: String) -> RSASigningKeyError? {
        do throws(RSASigningKeyError) {
            _ = try RSASigningKey(pem: SecretBytes(copying: pem))
            return nil
        } catch {
            return error
        }
    }

    @Test func `signs the RS256 example of RFC 7515 A_2 byte for byte`() throws {
        let key = try RSASigningKey(pem: SecretBytes(copying: TestKeys.rfc7515RSA))
        let signature = key.signature(of: Array(Self.rfcInput.utf8)) ?? []
        var text: [UInt8] = []
        Base64URL.encode(signature, into: &text)
        #expect(String(decoding: text, as: UTF8.self) == Self.rfcSignature)
        let claims = try #require(Base64URL.decode(Self.rfcInput.utf8.split(separator: UInt8(ascii: "."))[1]))
        #expect(JSONMembers(claims)?.string("iss") == "joe")
    }

    @Test(arguments: [
        (TestKeys.rsa, RSASigningKeyError.tooSmall(bits: 1024)),
        (TestKeys.rfc7515, .notRSA), (TestKeys.ed25519, .notRSA), (TestKeys.sec1, .notRSA),
        (TestKeys.encrypted, .encrypted),
        (TestKeys.publicOnly, .notPrivate), (TestKeys.certificate, .notPrivate),
        (TestKeys.rfc7515RSA.replacing("PRIVATE KEY", with: "RSA PRIVATE KEY"), .notPKCS8),
        ("", .notPEM), ("secret", .notPEM),
        (String(TestKeys.rfc7515RSA.prefix(400)), .damaged),
    ])
    func `refuses each other kind of key with an error of its own`(pem: String, expected: RSASigningKeyError) {
        #expect(Self.error(for: pem) == expected)
    }
}
