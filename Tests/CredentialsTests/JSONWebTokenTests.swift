import Credentials
import Testing

@Suite struct JSONWebTokenTests {
    private static let rfcToken = """
        eyJhbGciOiJFUzI1NiJ9\
        .eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ\
        .DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q
        """

    @Test func `verifies the ES256 example of RFC 7515 A_3`() throws {
        let verifier = try VerificationKey.of(SigningKey(pem: SecretBytes(copying: TestKeys.rfc7515)))
        let token = try #require(JSONWebToken(compact: Self.rfcToken.utf8))
        #expect(token.algorithm == "ES256")
        #expect(token.issuer == "joe")
        #expect(token.issuedAt == nil)
        let accepted = token.isSigned(by: verifier)
        #expect(accepted)
    }

    @Test func `refuses the example when one character of any part is changed`() throws {
        let verifier = try VerificationKey.of(SigningKey(pem: SecretBytes(copying: TestKeys.rfc7515)))
        for index in [25, 60, 125, 160] {
            var text = Array(Self.rfcToken.utf8)
            text[index] = text[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            let accepted = JSONWebToken(compact: text).map { $0.isSigned(by: verifier) } ?? false
            #expect(!accepted)
        }
    }

    @Test func `a token of ours has exactly the header and claims that APNs wants`() throws {
        let key = try SigningKey.generated()
        let made = JSONWebToken.compact(
            keyID: "ABC123DEFG", teamID: "DEF123GHIJ", issuedAt: 1_700_000_000, signedBy: key)
        let text = try #require(made)
        let verifier = try VerificationKey.of(key)
        let stranger = try VerificationKey.of(SigningKey.generated())
        let parts = text.utf8.split(separator: UInt8(ascii: "."))
        let header = try #require(Base64URL.decode(parts[0]))
        let claims = try #require(Base64URL.decode(parts[1]))
        #expect(String(decoding: header, as: UTF8.self) == "{\"alg\":\"ES256\",\"kid\":\"ABC123DEFG\"}")
        #expect(String(decoding: claims, as: UTF8.self) == "{\"iss\":\"DEF123GHIJ\",\"iat\":1700000000}")
        let token = try #require(JSONWebToken(compact: text.utf8))
        #expect(token.keyID == "ABC123DEFG")
        #expect(token.issuedAt == 1_700_000_000)
        let accepted = token.isSigned(by: verifier)
        let acceptedByStranger = token.isSigned(by: stranger)
        #expect(accepted)
        #expect(!acceptedByStranger)
        #expect(!text.contains("="))
    }

    @Test(arguments: ["", ".", "..", "a.b", "a.b.c.d", "eyJhbGciOiJFUzI1NiJ9..", "e30.e30.", "bearer x.y.z"])
    func `refuses what is no token`(text: String) {
        #expect(JSONWebToken(compact: text.utf8) == nil)
    }

    @Test func `iat as a string is no number`() throws {
        var text: [UInt8] = []
        Base64URL.encode("{\"alg\":\"ES256\",\"kid\":\"K\"}".utf8, into: &text)
        text.append(UInt8(ascii: "."))
        Base64URL.encode("{\"iss\":\"T\",\"iat\":\"1700000000\"}".utf8, into: &text)
        text += Array(".AA".utf8)
        let token = try #require(JSONWebToken(compact: text))
        #expect(token.issuedAt == nil)
        #expect(token.issuer == "T")
    }
}

@Suite struct Base64URLTests {
    @Test(arguments: [
        ("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("fooba", "Zm9vYmE"),
        ("foobar", "Zm9vYmFy"), ("~~~???", "fn5-Pz8_"),
    ])
    func `encodes and decodes the vectors of RFC 4648`(plain: String, encoded: String) {
        var text: [UInt8] = []
        Base64URL.encode(plain.utf8, into: &text)
        #expect(String(decoding: text, as: UTF8.self) == encoded)
        #expect(Base64URL.decode(encoded.utf8).map { String(decoding: $0, as: UTF8.self) } == plain)
    }

    @Test(arguments: ["A", "Zg=", "Zg==", "Zh", "Zm+v", "Zm/v", "Z g"])
    func `refuses padding, other alphabets and stray bits`(text: String) {
        #expect(Base64URL.decode(text.utf8) == nil)
    }
}

@Suite struct JSONScannerTests {
    private static func isObject(_ text: String) -> Bool {
        Array(text.utf8).withUnsafeBufferPointer { JSONScanner.isObject($0) }
    }

    @Test(arguments: [
        "{}", " { } \n", "{\"a\":1}", "{\"a\":[1,-2.5e+3,0,{\"b\":null}],\"c\":\"\\u00e9\\n\\\"\"}",
        "{\"a\":true,\"b\":false}",
    ])
    func `accepts objects`(text: String) {
        #expect(Self.isObject(text))
    }

    @Test(arguments: [
        "", "[]", "1", "\"{}\"", "{", "}", "{}x", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{\"a\":01}",
        "{\"a\":1.}",
        "{\"a\":+1}", "{\"a\":tru}", "{\"a\":\"\n\"}", "{\"a\":\"\\x\"}", "{\"a\":\"\\u12g4\"}", "{\"a\":[1,]}", "{}{}",
    ])
    func `refuses everything else`(text: String) {
        #expect(!Self.isObject(text))
    }

    @Test func `refuses nesting beyond its limit instead of running out of stack`() {
        let nested = String(repeating: "[", count: 60) + String(repeating: "]", count: 60)
        #expect(Self.isObject("{\"a\":\(nested)}"))
        #expect(!Self.isObject("{\"a\":" + String(repeating: "[", count: 100_000)))
    }

    @Test func `reads members by name`() throws {
        let text = """
            {"reason":"Unregistered", "timestamp" : 1437179036000,"nested":{"reason":"x"},"f":1.5}
            """
        let members = try #require(JSONMembers(Array(text.utf8)))
        #expect(members.string("reason") == "Unregistered")
        #expect(members.integer("timestamp") == 1_437_179_036_000)
        #expect(members.string("timestamp") == nil)
        #expect(members.integer("f") == nil)
        #expect(members.string("nested") == nil)
        #expect(members.string("absent") == nil)
    }
}
