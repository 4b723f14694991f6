import FakeProviders
import Foundation
import Support

/// Values of one stage that must come out nowhere, recognisable wherever they do.
struct Canary {
    /// What is looked for, with the name under which it is reported.
    let texts: [(name: String, text: String)]
    /// The same key as bytes: as DER, and its private number in both orders of bytes.
    let bytes: [(name: String, bytes: [UInt8])]

    /// The end of every device token.
    static let tokenEnd = "c0ffee5ca1ab1edeadbea7f00dface0ddba11cab005e"
    /// Values of payloads.
    static let tool = "canary.tool.of.the.aviary"
    static let approval = "0ca4a71e-5eed-4c0f-8bad-c0ffee0c0ffe"
    /// What a key file holds that is no key.
    static let wrongKey = """
        -----BEGIN PRIVATE KEY-----
        Y2FuYXJ5IHRoYXQgaXMgbm8ga2V5IGNhbmFyeSB0aGF0IGlzIG5vIGtleSBjYW5h
        cnkgdGhhdCBpcyBubyBrZXk=
        -----END PRIVATE KEY-----

        """

    /// The canaries of the key in `keyFile`, and of the tokens made with it as the provider has seen them.
    init(keyFile: String, bearers: Set<String>) throws {
        let key = try String(contentsOfFile: keyFile, encoding: .utf8)
        let lines = Self.lines(key)
        let der = Array(Data(base64Encoded: lines.joined()) ?? Data())
        // RFC 5208 around RFC 5915: the private number is the octet string of 32 bytes behind version 1.
        let mark: [UInt8] = [0x02, 0x01, 0x01, 0x04, 0x20]
        guard let place = der.firstRange(of: mark), der.count >= place.upperBound + 32 else {
            throw TestSetupError("\(keyFile) holds no P-256 key in PKCS#8")
        }
        let number = Array(der[place.upperBound..<place.upperBound + 32])
        bytes = [("key in DER", der), ("private number", number), ("private number, reversed", number.reversed())]
        var texts = [
            ("device token", Self.tokenEnd), ("tool", Self.tool), ("approval", Self.approval), ("bearer", "bearer "),
        ]
        texts += (lines + Self.lines(Self.wrongKey)).map { ("line of a key", $0) }
        texts += bytes.map { ($0.name, $0.bytes.map { String(format: "%02x", $0) }.joined()) }
        texts += bearers.map { ("provider token", String($0.dropFirst("bearer ".count))) }
        // Header and claims of any provider token: what a JSON object begins with in base64url.
        texts.append(("some JWT", "eyJhbGciOi"))
        self.texts = texts
    }

    /// Lines of a key that are its own, as every key of its kind begins alike.
    private static func lines(_ pem: String) -> [String] {
        pem.split(separator: "\n").map(String.init).filter { !$0.hasPrefix("-") }
    }

    /// Names of the canaries that are in `text`.
    func found(in text: String) -> [String] {
        texts.filter { text.contains($0.text) }.map(\.name)
    }

    /// Where the database holds one: `table.column: canary`.
    func found(in stage: Stage) async throws -> Set<String> {
        let columns = try await stage.texts(
            """
            SELECT format('%I.%I', c.table_name, c.column_name) || ' ' || c.data_type
            FROM information_schema.columns c
            JOIN information_schema.tables t USING (table_schema, table_name)
            WHERE c.table_schema = 'postbell' AND t.table_type = 'BASE TABLE'
            """)
        var places: Set<String> = []
        for column in columns {
            let parts = column.split(separator: " ", maxSplits: 1)
            let names = parts[0].split(separator: ".")
            let value = parts[1] == "bytea" ? "encode(held.\(names[1]), 'escape')" : "held.\(names[1])::text"
            let list = texts.map { "('\($0.name)', '\($0.text)')" }.joined(separator: ", ")
            places.formUnion(
                try await stage.texts(
                    """
                    SELECT DISTINCT '\(parts[0]): ' || needle.called
                    FROM postbell.\(names[0]) held, (VALUES \(list)) needle(called, words)
                    WHERE position(needle.words in \(value)) > 0
                    """))
        }
        return places
    }
}
