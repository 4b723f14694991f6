import Testing

@testable import HTTP2

/// The URL of a proxy, and what is never seen of it.
@Suite struct HTTPProxyTests {
    static let fit: [(url: String, host: String, port: UInt16, authorization: String?)] = [
        ("http://proxy.example:3128", "proxy.example", 3128, nil),
        ("HTTP://proxy.example/", "proxy.example", 80, nil),
        ("proxy.example:8080", "proxy.example", 8080, nil),
        ("http://10.1.2.3:1", "10.1.2.3", 1, nil),
        ("http://[2001:db8::1]:65535/", "2001:db8::1", 65_535, nil),
        ("http://[::1]", "::1", 80, nil),
        // RFC 7617 2: the example of the standard itself.
        ("http://Aladdin:open%20sesame@p:1", "p", 1, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        // RFC 7617 2.1: UTF-8.
        ("http://test:123%C2%A3@p:1", "p", 1, "Basic dGVzdDoxMjPCow=="),
        ("user@p:1", "p", 1, "Basic dXNlcjo="),
        ("http://u:a@b:c@p:1", "p", 1, "Basic dTphQGI6Yw=="),
        ("http://ab:c@p:1", "p", 1, "Basic YWI6Yw=="),
    ]

    @Test(arguments: fit)
    func aFitURLIsRead(url: String, host: String, port: UInt16, authorization: String?) throws {
        let proxy = try HTTPProxy(url: url)
        #expect(proxy.host == host)
        #expect(proxy.port == port)
        #expect(proxy.credentials.map { String(decoding: $0.authorization, as: UTF8.self) } == authorization)
    }

    static let unfit: [(url: String, complaint: String)] = [
        ("https://canary:canary@p:1", "is not one of http://"),
        ("socks5://p:1", "is not one of http://"),
        ("", "names no host"),
        ("http://", "names no host"),
        ("http://:3128", "names no host"),
        ("http://canary:ca/nary@p:1", "has more behind its host and port"),
        ("http://p:1/path", "has more behind its host and port"),
        ("http://p:1?x", "has more behind its host and port"),
        ("http://p:", "has a port that is no number"),
        ("http://p:0", "has a port that is no number"),
        ("http://p:65536", "has a port that is no number"),
        ("http://p:+1", "has a port that is no number"),
        ("http://canary:canary", "has a port that is no number"),
        ("http://[::1", "has a bracket without its other half"),
        ("http://[::1]3128", "has brackets around no IPv6 address"),
        ("http://[canary]:1", "has brackets around no IPv6 address"),
        ("http://can ary:1", "has a host that is neither a name nor an address"),
        ("http://können:1", "has a host that is neither a name nor an address"),
        ("http://[::1%25eth0]:1", "has a host that is neither a name nor an address"),
        ("http://p\r\nX: canary:1", "has a host that is neither a name nor an address"),
        ("http://:canary@p:1", "has an empty user"),
        ("http://@p:1", "has an empty user"),
        ("http://can%3Aary:x@p:1", "has a user with a colon in it"),
        ("http://canary:%0D%0Acanary@p:1", "has a control character"),
        ("http://canary:\u{7F}@p:1", "has a control character"),
        ("http://canary:100%@p:1", "has a % in its user or password"),
        ("http://canary:%g0@p:1", "has a % in its user or password"),
        ("http://canary:" + String(repeating: "x", count: 2000) + "@p:1", "has a user and password of more than"),
    ]

    @Test(arguments: unfit)
    func anUnfitURLIsRefusedWithoutShowingAnyOfIt(url: String, complaint: String) {
        let error = #expect(throws: HTTPProxyError.self) { try HTTPProxy(url: url) }
        #expect(error?.complaint.hasPrefix(complaint) == true, "\(error?.complaint ?? "")")
        #expect(error.map { !"\($0)".contains("canary") && !String(reflecting: $0).contains("canary") } == true)
    }

    @Test func userAndPasswordAreNeverPrinted() throws {
        let proxy = try HTTPProxy(url: "http://canary:secret@proxy.example:3128")
        var configuration = HTTP2ClientConfiguration(host: "api.example", port: 443)
        configuration.proxy = proxy
        var seen = "\(proxy) \(String(reflecting: proxy)) \(configuration) \(String(reflecting: configuration)) "
        seen += "\(Mirror(reflecting: proxy).children.map { "\($0)" }) \(String(describing: proxy.credentials)) "
        dump(configuration, to: &seen)
        dump(proxy.credentials, to: &seen)
        #expect(seen.contains("proxy.example"))
        // "canary:secret" in Base64 and as decimal bytes: both must be absent too.
        for secret in ["canary", "secret", "Y2FuYXJ5OnNlY3JldA", "66, 97, 115"] {
            #expect(!seen.contains(secret), "\(secret) is printed")
        }
    }
}
