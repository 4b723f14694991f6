import Credentials
import FakeProviders
import Foundation
import Support

/// What must come out nowhere of a worker that sends to FCM through a proxy with a login.
extension Canary {
    /// The end of every registration token.
    static let registrationEnd = ":APA91b-canary-of-the-aviary_end"
    static let proxyUser = "canary-user"
    static let proxyPassword = "sings/at:d@wn%"
    /// Both as a URL has them.
    static let proxyLogin = "canary-user:sings%2Fat%3Ad%40wn%25"
    /// What a token endpoint says in words of its own.
    static let complaint = "complaint-of-the-canary"

    /// The canaries of the account in `google`, of all tokens and assertions that it has had until now, and of the
    /// proxy's login.
    init(google: GoogleStage) async throws {
        let pem = try Self.privateKey(in: google.file)
        let der = Array(Data(base64Encoded: pem.joined()) ?? Data())
        guard let numbers = RSANumbers(der: der) else {
            throw TestSetupError("\(google.file) holds no RSA key in PKCS#8")
        }
        bytes = numbers.needles
        let basic = Data("\(Self.proxyUser):\(Self.proxyPassword)".utf8).base64EncodedString()
        var texts = [
            ("registration token", Self.registrationEnd), ("tool", Self.tool), ("approval", Self.approval),
            ("bearer", "earer "), ("some access token", "ya29."), ("some JWT", "eyJhbGciOi"),
            ("assertion in a form", "assertion="), ("complaint", Self.complaint), ("proxy user", Self.proxyUser),
            ("proxy password", Self.proxyPassword), ("proxy login", Self.proxyLogin), ("Basic login", basic),
        ]
        texts += pem.dropFirst(numbers.publicBytes / Self.bytesPerLine + 1).filter { $0.utf8.count == 64 }
            .map { ("line of a key", $0) }
        texts += bytes.map { ($0.name, $0.bytes.map { String(format: "%02x", $0) }.joined()) }
        texts += google.issued.tokens.map { ("access token", $0) }
        texts += try await Self.assertions(seenBy: google).map { ("assertion", $0) }
        self.texts = texts
    }

    /// Of base64 in PEM.
    private static let bytesPerLine = 48

    /// The lines of PEM in an account's file.
    private static func privateKey(in file: String) throws -> [String] {
        let json = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(filePath: file))) as? [String: Any]
        guard let pem = json?["private_key"] as? String else { throw TestSetupError("\(file) has no key") }
        return pem.split(separator: "\n").map(String.init).filter { !$0.hasPrefix("-") }
    }

    /// The assertions that the endpoint has had, made again: RS256 signs the same text always alike.
    private static func assertions(seenBy google: GoogleStage) async throws -> [String] {
        let times = await Set(google.tokens.requests.compactMap(\.issuedAt))
        let account = try ServiceAccount(KeyFile(path: google.file, credentialsDirectory: nil))
        return times.compactMap {
            account.assertion(
                scope: "https://www.googleapis.com/auth/firebase.messaging", issuedAt: $0, life: 3600)
        }
    }
}

/// The private numbers of an RSA key in PKCS#8.
private struct RSANumbers {
    /// A part of each number in both orders of bytes, as long as a memory search needs. It is taken from the middle: an
    /// allocator writes over the beginning of what was freed.
    let needles: [(name: String, bytes: [UInt8])]
    /// Bytes of the DER before the first private one.
    let publicBytes: Int

    /// RFC 5208 5 around RFC 8017 A.1.2: version, n, e, d, p, q, dP, dQ, qInv.
    init?(der: [UInt8]) {
        var outer = DERReader(rest: der[...])
        guard var info = outer.next(), info.next() != nil, info.next() != nil, var octets = info.next(),
            var key = octets.next(), key.next() != nil, key.next() != nil, key.next() != nil
        else { return nil }
        publicBytes = key.rest.startIndex
        var needles: [(name: String, bytes: [UInt8])] = []
        for name in ["d", "p", "q", "dP", "dQ", "qInv"] {
            guard let number = key.next()?.rest, number.count >= 120 else { return nil }
            let middle = Array(number.dropFirst(40).prefix(32))
            needles += [("private \(name)", middle), ("private \(name), reversed", middle.reversed())]
        }
        self.needles = needles
    }
}

/// Reads values of DER one after the other (X.690 8.1).
private struct DERReader {
    var rest: ArraySlice<UInt8>

    /// The content of the next value.
    mutating func next() -> DERReader? {
        guard rest.popFirst() != nil, var length = rest.popFirst().map(Int.init) else { return nil }
        if length >= 0x80 {
            let count = length - 0x80
            length = rest.prefix(count).reduce(0) { $0 << 8 | Int($1) }
            rest = rest.dropFirst(count)
        }
        guard rest.count >= length else { return nil }
        defer { rest = rest.dropFirst(length) }
        return DERReader(rest: rest.prefix(length))
    }
}
