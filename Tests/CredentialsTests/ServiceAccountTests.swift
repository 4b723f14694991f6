import Credentials
import Foundation
import Testing

@Suite struct ServiceAccountTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// A file as Google makes it, with `changes` in the place of its own members; nil leaves one out.
    static func json(_ changes: [String: String?] = [:]) -> String {
        var members: [(String, String)] = [
            ("type", "service_account"), ("project_id", "example-1"), ("private_key_id", "0123abcd"),
            ("private_key", TestKeys.rfc7515RSA.replacing("\n", with: "\\n")),
            ("client_email", "push@example-1.iam.gserviceaccount.com"), ("client_id", "100000000000000000000"),
            ("auth_uri", "https://accounts.google.com/o/oauth2/auth"),
            ("token_uri", "https://oauth2.googleapis.com/token"), ("universe_domain", "googleapis.com"),
        ]
        for (name, value) in changes {
            members.removeAll { $0.0 == name }
            if let value { members.append((name, value)) }
        }
        return "{" + members.map { "\"\($0)\": \"\($1)\"" }.joined(separator: ",\n") + "}"
    }

    private func account(_ content: String, mode: Int = 0o600) throws -> ServiceAccount {
        let path = try directory.file("account.json", content, mode: mode)
        return try ServiceAccount(KeyFile(path: path, credentialsDirectory: nil))
    }

    private func error(_ content: String, mode: Int = 0o600) throws -> ServiceAccountError? {
        do {
            _ = try account(content, mode: mode)
            return nil
        } catch let error as ServiceAccountError {
            return error
        }
    }

    @Test func `reads an account and signs an assertion that Google takes`() throws {
        let account = try account(Self.json())
        let projectID = account.projectID
        #expect(projectID == "example-1")
        let made = account.assertion(scope: "https://example.com/scope", issuedAt: 1_700_000_000, life: 3600)
        let parts = try #require(made).utf8.split(separator: UInt8(ascii: "."))
        let header = try #require(Base64URL.decode(parts[0]))
        let claims = try #require(Base64URL.decode(parts[1]))
        #expect(String(decoding: header, as: UTF8.self) == "{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"0123abcd\"}")
        #expect(
            String(decoding: claims, as: UTF8.self) == """
                {"iss":"push@example-1.iam.gserviceaccount.com","scope":"https://example.com/scope",\
                "aud":"https://oauth2.googleapis.com/token","iat":1700000000,"exp":1700003600}
                """)
        let key = try RSASigningKey(pem: SecretBytes(copying: TestKeys.rfc7515RSA))
        let signed = Array(parts[0]) + [UInt8(ascii: ".")] + Array(parts[1])
        let expected = key.signature(of: signed)
        #expect(Base64URL.decode(parts[2]) == expected)
    }

    @Test func `resolves the escapes that writers of JSON use`() throws {
        // Some escape `=` and `/` too.
        let escaped = TestKeys.rfc7515RSA.replacing("\n", with: "\\r\\n").replacing("=", with: "\\u003d")
            .replacing("/", with: "\\/")
        let found = try error(Self.json(["private_key": escaped]))
        #expect(found == nil)
    }

    private static let refusals: [(String, ServiceAccountError.Problem)] = [
        ("", .file(.empty)), ("{", .notJSON), ("[]", .notJSON), (TestKeys.rfc7515RSA, .notJSON),
        (json(["type": "authorized_user"]), .otherType), (json(["type": nil]), .missing("type")),
        (json(["private_key": nil]), .missing("private_key")), (json(["private_key": ""]), .missing("private_key")),
        (json(["private_key": "\\ud83d"]), .malformed("private_key")),
        (json(["private_key": "none"]), .key(.notPEM)),
        (json(["private_key": TestKeys.rfc7515.replacing("\n", with: "\\n")]), .key(.notRSA)),
        (json(["private_key": TestKeys.rsa.replacing("\n", with: "\\n")]), .key(.tooSmall(bits: 1024))),
        (json(["private_key": TestKeys.encrypted.replacing("\n", with: "\\n")]), .key(.encrypted)),
        (json(["client_email": nil]), .missing("client_email")),
        (json(["client_email": "a\\\"b"]), .malformed("client_email")),
        (json(["client_email": String(repeating: "a", count: 321)]), .malformed("client_email")),
        (json(["project_id": nil]), .missing("project_id")),
        (json(["private_key_id": nil]), .missing("private_key_id")),
        (json(["private_key_id": "\\n"]), .malformed("private_key_id")),
        (json(["token_uri": nil]), .missing("token_uri")),
        (json(["token_uri": "https://oauth2.example.com/token"]), .otherTokenURI),
        (json(["token_uri": "http://oauth2.googleapis.com/token"]), .otherTokenURI),
        (json().replacing("\"service_account\"", with: "1"), .missing("type")),
    ]

    @Test(arguments: refusals.indices) func `refuses what is no service account`(index: Int) throws {
        let (content, problem) = Self.refusals[index]
        let found = try error(content)
        #expect(found?.problem == problem)
    }

    @Test func `keeps the rules for key files`() throws {
        let exposed = try error(Self.json(), mode: 0o644)
        #expect(exposed?.problem == .file(.exposed(mode: 0o644)))
        let large = try error(Self.json() + String(repeating: " ", count: KeyFile.sizeLimit))
        guard case .file(.tooLarge) = large?.problem else {
            Issue.record("expected a refusal of its size")
            return
        }
    }

    @Test(arguments: refusals.indices) func `each refusal is one line without a byte of the content`(index: Int) throws
    {
        let (content, _) = Self.refusals[index]
        let found = try error(content)
        let line = try #require(found).description
        #expect(line.hasPrefix("service account file \(directory.path)/account.json "))
        #expect(line.contains("; ") && !line.contains("\n"))
        for secret in ["authorized_user", "example.com", "push@", "0123abcd", "MII"] {
            #expect(!line.contains(secret))
        }
    }

    @Test func `another key or account has another fingerprint, and the same file the same`() throws {
        let first = try account(Self.json()).fingerprint()
        let again = try account(Self.json()).fingerprint()
        #expect(first == again && !first.isEmpty)
        for name in ["client_email", "private_key_id", "project_id"] {
            let other = try account(Self.json([name: "other"])).fingerprint()
            #expect(other != first)
        }
    }
}
